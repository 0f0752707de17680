/** A write-ahead log position. Comparable within one timeline of one cluster only. */
export type Lsn = bigint;

/** "16/B374D848" → 0x16B374D848 (PostgreSQL 8.20, pg_lsn). */
export function parseLsn(text: string): Lsn {
  const [high, low] = text.split('/') as [string, string];
  return (BigInt(`0x${high}`) << 32n) | BigInt(`0x${low}`);
}
