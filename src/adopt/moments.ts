const moment = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,6})?Z$/;

/** Whether all values are times in UTC (RFC 3339) that are kept as texts. */
export function isMoments(values: readonly string[]): boolean {
  return values.length > 0 && values.every((value) => moment.test(value));
}

/** SQL of the time in a text: immutable, as the cast of the whole text is not, so that an index can hold it. */
export function momentOf(text: string): string {
  const part = (from: number, length: number): string => `substr(${text}, ${from}, ${length})::int`;
  return (
    `make_timestamp(${part(1, 4)}, ${part(6, 2)}, ${part(9, 2)}, ${part(12, 2)}, ${part(15, 2)},\n      ` +
    `rtrim(substr(${text}, 18), 'Z')::float8) at time zone 'UTC'`
  );
}
