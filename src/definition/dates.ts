/** Whether the text is YYYY-MM-DD and a real date of the proleptic Gregorian calendar, years 0001 to 9999. */
export function isDate(text: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text) || text.startsWith('0000')) return false;
  const date = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text);
}

/** Whether the text is a timestamptz as PostgreSQL prints it in ISO style and UTC: 2026-03-29 01:59:59.123456+00. */
export function isPrintedInstant(text: string): boolean {
  return isDate(text.slice(0, 10)) && /^ ([01]\d|2[0-3])(:[0-5]\d){2}(\.\d{1,6})?\+00$/.test(text.slice(10));
}

/** Whether the text is an RFC 3339 date-time with its offset: 2026-03-29T01:59:59.123Z. No leap seconds, up to microseconds. */
export function isInstant(text: string): boolean {
  const time = /^[Tt]([01]\d|2[0-3])(:[0-5]\d){2}(\.\d{1,6})?([Zz]|[+-](0\d|1[0-4]):[0-5]\d)$/;
  return isDate(text.slice(0, 10)) && time.test(text.slice(10));
}
