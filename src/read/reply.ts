/** The size of a list's page, for the log and the metrics. */
export interface PageSize {
  readonly perPage: number;
  /** Null until the page is complete. */
  rows: number | null;
}

/** The answer to a read or write, before HTTP: no header of the transport, no Koa. */
export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /**
   * The whole body, or its pieces as they become available; null for none (304). The bytes of a piece may be overwritten
   * as soon as the next piece is requested.
   */
  readonly body: string | Buffer | AsyncGenerator<Buffer> | null;
  /** Gives the memory of the body back; to be called when the response is closed. */
  readonly release?: () => void;
  /** The size of a list's page. */
  readonly page?: PageSize;
  /** Time spent waiting for the database before the first byte, in milliseconds. */
  readonly databaseMs: number;
}

/** `Data-As-Of`, or nothing when it is not known. */
export function dataAsOf(asOfMs: number | null): Record<string, string> {
  const instant = instantOf(asOfMs);
  return instant === null ? {} : { 'Data-As-Of': instant };
}

/** Epoch milliseconds in RFC 3339; null when they are not known. */
export function instantOf(ms: number | null): string | null {
  if (ms === null) return null;
  if (ms !== last.ms) last = { ms, text: new Date(ms).toISOString() };
  return last.text;
}

/** The instant of the last response: many responses in turn have the same, because it comes from the probe of the replica. */
let last = { ms: Number.NaN, text: '' };
