import type { Row, WordSource } from '../../postgres/row.js';
import { encodeJson, type JsonBytes, nullJson } from './json-bytes.js';
import { openingList, quote } from './json-characters.js';

// A value of each type becomes JSON here: from the text in which PostgreSQL sends a column, or from the JSON that to_json prints.

/** Appends the value of the column at `at`, which is never NULL. */
export type ValueAppender = (row: Row, at: number, json: JsonBytes) => void;
/** Appends the scalar from `start` to `end` of a JSON value. */
export type ScalarAppender = (from: WordSource, start: number, end: number, json: JsonBytes) => void;

const trueJson = encodeJson('true');
const falseJson = encodeJson('false');
const digitNine = 0x39;
const letterT = 0x74;
const letterF = 0x66;
const hyphen = 0x2d;

/** Copies a value whose text is JSON. */
export const appendPlain: ValueAppender = (row, at, json) =>
  json.appendSpan(row, row.starts[at] as number, row.ends[at] as number);
/** Quotes a text that needs no escapes. */
export const appendQuoted: ValueAppender = (row, at, json) =>
  json.appendQuoted(row, row.starts[at] as number, row.ends[at] as number);
export const appendEscaped: ValueAppender = (row, at, json) =>
  json.appendStringSpan(row, row.starts[at] as number, row.ends[at] as number);
export const appendBoolean: ValueAppender = (row, at, json) =>
  json.appendConstant(row.bytes[row.starts[at] as number] === letterT ? trueJson : falseJson);
/** Appends null for NaN and Infinity, which alone end in a letter. */
export const appendFinite: ValueAppender = (row, at, json) => {
  if ((row.bytes[(row.ends[at] as number) - 1] as number) <= digitNine) appendPlain(row, at, json);
  else json.appendConstant(nullJson);
};
/** Appends null for infinite dates and years beyond 9999: all other dates are 10 bytes long. */
export const appendCalendarDate: ValueAppender = (row, at, json) => {
  if ((row.ends[at] as number) - (row.starts[at] as number) === 10) appendQuoted(row, at, json);
  else json.appendConstant(nullJson);
};
/** Appends null for infinite moments and years beyond 9999, which have no space after ten bytes, or no zone. */
export const appendInstant: ValueAppender = (row, at, json) => {
  const { bytes } = row;
  const start = row.starts[at] as number;
  const zone = (row.ends[at] as number) - 3;
  if (bytes[start + 10] === 0x20 && bytes[zone] === 0x2b) json.appendInstant(row, start, zone);
  else json.appendConstant(nullJson);
};

export const appendJson: ScalarAppender = (from, start, end, json) => json.appendSpan(from, start, end);
/** Appends a number as a text, because ids are strings. */
export const appendJsonText: ScalarAppender = (from, start, end, json) => {
  const first = from.bytes[start] as number;
  if (first === quote) appendJson(from, start, end, json);
  else if (first < openingList) json.appendQuoted(from, start, end);
  else json.appendConstant(nullJson);
};
/** Appends null unless the test of the first byte, or of the value's ends, accepts it. */
const appendIf =
  (isOfType: (first: number, bytes: Buffer, start: number, end: number) => boolean): ScalarAppender =>
  (from, start, end, json) => {
    if (isOfType(from.bytes[start] as number, from.bytes, start, end)) appendJson(from, start, end, json);
    else json.appendConstant(nullJson);
  };
/** PostgreSQL writes NaN and infinity as texts. */
export const appendJsonNumber = appendIf((first) => first <= digitNine && first !== quote);
export const appendJsonBoolean = appendIf((first) => first === letterT || first === letterF);
export const appendJsonDate = appendIf(
  (_, bytes, start, end) => end - start === 12 && bytes[start + 5] === hyphen && bytes[start + 8] === hyphen,
);

/** Offsets before 1937 have seconds. */
const printed = /^"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:\.(\d+))?(?:Z|([+-])(\d\d)(?::?(\d\d))?(?::?(\d\d))?)?"$/;

/** Turns text of to_json into RFC 3339 in UTC with milliseconds. A value without a zone is UTC; infinite and other values become null. */
export const appendJsonInstant: ScalarAppender = ({ bytes }, start, end, json) => {
  const parts = printed.exec(bytes.toString('latin1', start, end));
  const [, day, time, fraction = '', sign, hours = '0', minutes = '0', seconds = '0'] = parts ?? [];
  const offset = (Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds)) * (sign === '-' ? -1000 : 1000);
  const moment = new Date(Date.parse(`${day}T${time}.${fraction.slice(0, 3).padEnd(3, '0')}Z`) - offset);
  const year = parts === null ? 0 : moment.getUTCFullYear(); // NaN for an invalid date
  json.appendText(year >= 1 && year <= 9999 ? `"${moment.toISOString()}"` : 'null');
};
