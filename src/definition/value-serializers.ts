import type { Row } from '../db/row.js';
import type { JsonBytes } from '../projection/json-bytes.js';
import type { FieldType } from './resource.js';

/** Writes the JSON of a value of a row, by the position of its column; never given NULL. */
export type ValueWriter = (row: Row, at: number, json: JsonBytes) => void;

const nullBytes = Buffer.from('null');
const trueBytes = Buffer.from('true');
const falseBytes = Buffer.from('false');

const raw: ValueWriter = ({ bytes, starts, ends }, at, json) =>
  json.raw(bytes, starts[at] as number, ends[at] as number);
const quoted: ValueWriter = ({ bytes, starts, ends }, at, json) =>
  json.quoted(bytes, starts[at] as number, ends[at] as number);

/** PostgreSQL's text form (ISO dates, UTC) → JSON. Infinite dates and numbers, which JSON does not have, become null. */
export const valueWriters: Readonly<Record<FieldType, ValueWriter>> = {
  uuid: quoted,
  bigint: quoted,
  text: ({ bytes, starts, ends }, at, json) => json.string(bytes, starts[at] as number, ends[at] as number),
  integer: raw,
  number: (row, at, json) => {
    const last = row.bytes[(row.ends[at] as number) - 1] as number;
    if (last <= 0x39) raw(row, at, json);
    else json.raw(nullBytes); // NaN, Infinity
  },
  boolean: ({ bytes, starts }, at, json) => json.raw(bytes[starts[at] as number] === 0x74 ? trueBytes : falseBytes),
  date: (row, at, json) => {
    if ((row.ends[at] as number) - (row.starts[at] as number) === 10) quoted(row, at, json);
    else json.raw(nullBytes);
  },
  timestamp: writeTimestamp,
  json: raw,
};

const instant = Buffer.from('"0000-00-00T00:00:00.000Z"');
const dateAt = 1;
const timeAt = 12;
const millisecondsAt = 21;

/** "2026-03-29 01:59:59.123456+00" → "2026-03-29T01:59:59.123Z" (RFC 3339; microseconds are cut, not rounded). */
function writeTimestamp({ bytes, starts, ends }: Row, at: number, json: JsonBytes): void {
  const start = starts[at] as number;
  const zone = (ends[at] as number) - 3;
  // Not so in "infinity", years before Christ and beyond 9999.
  if (bytes[start + 10] !== 0x20 || bytes[zone] !== 0x2b) return json.raw(nullBytes);
  for (let i = 0; i < 10; i++) instant[dateAt + i] = bytes[start + i] as number;
  for (let i = 0; i < 8; i++) instant[timeAt + i] = bytes[start + 11 + i] as number;
  for (let i = 0; i < 3; i++) {
    const from = start + 20 + i;
    instant[millisecondsAt + i] = from < zone ? (bytes[from] as number) : 0x30;
  }
  json.raw(instant);
}
