import type { Digits, Kind } from './document.js';

/** Gives each value of the API one text for its kind: it is stored, must be printed again, and is hashed. Undefined: it does not fit. */
export const toCanonical: Readonly<Record<Kind, (json: string) => string | undefined>> = {
  text: (json) => (json.startsWith('"') ? formatText(json) : undefined),
  timestamp: (json) => (json.startsWith('"') ? parseMoment(formatText(json)) : undefined),
  date: (json) => (json.startsWith('"') ? parseDate(formatText(json)) : undefined),
  integer: expandNumber,
  number: expandNumber,
  boolean: (json) => (json === 'true' || json === 'false' ? json : undefined),
  json: makeStorable,
};

/** Widens a column for a value that its kind cannot hold: any text for moments and dates, otherwise the value's JSON. */
export const widenKind = (kind: Kind, json: string): Kind =>
  (kind === 'timestamp' || kind === 'date') && json.startsWith('"') ? 'text' : 'json';

const unstorable = /\\u(0000|[dD][89a-fA-F])/;
/** Matches a pair of surrogates, or any other escape: a reverse solidus that is escaped itself begins none. */
const escapes = /\\(?:u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|u[\da-fA-F]{4}|.)/g;

/** Replaces U+0000 and each half of a pair of surrogates, which no text column can hold, by U+FFFD. */
function makeStorable(json: string): string {
  if (!unstorable.test(json)) return json;
  return json.replace(escapes, (each) => (each.length === 6 && unstorable.test(each) ? '\\ufffd' : each));
}

export function formatText(json: string): string {
  return json.includes('\\') ? (JSON.parse(makeStorable(json)) as string) : json.slice(1, -1);
}

const numberForm = /^(-?)(0|[1-9]\d*)(?:\.(\d+))?(?:[eE]([+-]?\d{1,5}))?$/;

/** Digits that a numeric of PostgreSQL holds before and after the point. */
const [wholeMax, scaleMax] = [131_072, 16_383];

/** Writes a number without exponent, sign of zero and zeros at its end. */
function expandNumber(json: string): string | undefined {
  const [, sign = '', whole, part = '', exponent = '0'] = numberForm.exec(json) ?? [];
  if (whole === undefined) return undefined;
  const shift = Number(exponent);
  let [before, after] = [whole, part];
  if (shift > 0) [before, after] = [before + after.slice(0, shift).padEnd(shift, '0'), after.slice(shift)];
  else if (shift < 0) {
    const padded = before.padStart(1 - shift, '0');
    [before, after] = [padded.slice(0, shift), padded.slice(shift) + after];
  }
  before = before.replace(/^0+(?=\d)/, '');
  after = after.replace(/0+$/, '');
  if (before === '0' && after === '') return '0';
  if (before.length > wholeMax || after.length > scaleMax) return undefined;
  return sign + before + (after === '' ? '' : `.${after}`);
}

/** Counts digits; the number has no exponent. */
export function countValueDigits(plain: string): Digits {
  const start = plain.startsWith('-') ? 1 : 0;
  const point = plain.indexOf('.');
  return point < 0
    ? { whole: plain.length - start, scale: 0 }
    : { whole: point - start, scale: plain.length - point - 1 };
}

const momentForm = /^(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?([Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;
const minuteMs = 60_000;

/** Writes a moment in UTC as the API does, with microseconds only if it has some (RFC 3339). */
function parseMoment(text: string): string | undefined {
  const [, date, time, part = '', zone] = momentForm.exec(text) ?? [];
  if (date === undefined || /[^0]/.test(part.slice(6))) return undefined;
  const local = `${date}T${time}.000Z`;
  const localMs = Date.parse(local);
  if (Number.isNaN(localMs) || new Date(localMs).toISOString() !== local) return undefined;
  const utc = new Date(localMs - parseOffsetMs(zone as string)).toISOString();
  if (!/^(?!0000)\d{4}-/.test(utc)) return undefined;
  const micros = part.padEnd(6, '0').slice(0, 6);
  return `${utc.slice(0, 19)}.${micros.endsWith('000') ? micros.slice(0, 3) : micros}Z`;
}

function parseOffsetMs(zone: string): number {
  if (zone.length === 1) return 0;
  const minutes = Number(zone.slice(1, 3)) * 60 + Number(zone.slice(4, 6));
  return (zone.startsWith('-') ? -minutes : minutes) * minuteMs;
}

function parseDate(text: string): string | undefined {
  if (!/^(?!0000)\d{4}-\d\d-\d\d$/.test(text)) return undefined;
  const ms = Date.parse(`${text}T00:00:00.000Z`);
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(text) ? text : undefined;
}
