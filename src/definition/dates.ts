/** Whether the text is YYYY-MM-DD and a real date of the proleptic Gregorian calendar, years 0001 to 9999. */
export function isDate(text: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text) || text.startsWith('0000')) return false;
  const date = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text);
}

const printedForm = /^(\d{4}|[1-9]\d{4,6})(-\d{2}-\d{2})( (?:[01]\d|2[0-3])(?::[0-5]\d){2}(?:\.\d{1,6})?\+00)?( BC)?$/;
/** The last years of the two types, and the first whole year before Christ (PostgreSQL 8.5, Table 8.9). */
const years = { date: 5_874_897, timestamp: 294_276, beforeChrist: 4713 };

/** Whether the text is a date as PostgreSQL prints it in ISO style: 2026-03-29, 20226-01-05, 0044-03-15 BC, -infinity. */
export function isPrintedDate(text: string): boolean {
  return isPrinted(text, 'date');
}

/** Whether the text is a timestamptz as PostgreSQL prints it in ISO style and UTC: 2026-03-29 01:59:59.123456+00, infinity. */
export function isPrintedInstant(text: string): boolean {
  return isPrinted(text, 'timestamp');
}

function isPrinted(text: string, type: 'date' | 'timestamp'): boolean {
  if (text === 'infinity' || text === '-infinity') return true;
  const [, digits, day, time, era] = printedForm.exec(text) ?? [];
  const year = Number(digits);
  if (digits === undefined || (time !== undefined) !== (type === 'timestamp') || year === 0) return false;
  if (year > (era === undefined ? years[type] : years.beforeChrist)) return false;
  const fromZero = (era === undefined ? year : 1 - year) % 400; // the calendar repeats itself; 1 BC is year 0
  return isDate(`${2000 + (fromZero < 0 ? fromZero + 400 : fromZero)}${day}`);
}

/** Whether of two dates, or of two moments, as PostgreSQL prints them the first is the earlier one. */
export function isEarlier(a: string, b: string): boolean {
  const [yearA, restA] = placeOf(a);
  const [yearB, restB] = placeOf(b);
  return yearA === yearB ? restA < restB : yearA < yearB;
}

/** The year, negative before Christ, and the text behind it, whose order is that of the year's days and moments. */
function placeOf(text: string): readonly [number, string] {
  if (text === 'infinity') return [Number.POSITIVE_INFINITY, ''];
  if (text === '-infinity') return [Number.NEGATIVE_INFINITY, ''];
  const end = text.indexOf('-');
  const year = Number(text.slice(0, end));
  return [text.endsWith(' BC') ? -year : year, text.slice(end)];
}

/** Whether the text is an RFC 3339 date-time with its offset: 2026-03-29T01:59:59.123Z. No leap seconds; PostgreSQL rounds to microseconds. */
export function isInstant(text: string): boolean {
  const time = /^[Tt]([01]\d|2[0-3])(:[0-5]\d){2}(\.\d{1,9})?([Zz]|[+-](0\d|1[0-4]):[0-5]\d)$/;
  return isDate(text.slice(0, 10)) && time.test(text.slice(10));
}
