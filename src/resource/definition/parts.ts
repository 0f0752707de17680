import type { WordSource } from '../../postgres/row.js';
import { type ConstantJson, constantJson, type JsonBytes } from '../projection/json-bytes.js';
import { eachChild, openingList, openingObject } from '../projection/json-walk.js';
import { type JsonWriter, shownMembers } from '../projection/shown-members.js';
import { fieldType } from './field-types.js';
import type { Part } from './resource.js';

const nullJson = constantJson('null');
const [openList, closeList, closeObject] = ['[', ']', '}'].map(constantJson) as [
  ConstantJson,
  ConstantJson,
  ConstantJson,
];
const letterN = 0x6e;

/**
 * Makes the writer of a part: a value within JSON that a view makes, such as a row of another table in a list. What the definition says of it is
 * shown: all its fields in their order, null when they are missing, and no others. Null for JSON that is shown as it is stored.
 */
export function partWriter(part: Part): JsonWriter | null {
  const { type, items, fields, show } = part;
  if (items !== undefined) return listWriter(valueWriter(items));
  if (fields !== undefined) return objectWriter(fields);
  if (show !== undefined) return shownMembers(show);
  return type === 'json' ? null : fieldType(type).fromJson;
}

const asStored: JsonWriter = (from, start, end, json) => json.part(from, start, end);

function valueWriter(part: Part): JsonWriter {
  const write = partWriter(part) ?? asStored;
  return (from, start, end, json) => {
    if (from.bytes[start] === letterN) json.constant(nullJson);
    else write(from, start, end, json);
  };
}

function listWriter(write: JsonWriter): JsonWriter {
  return (from, start, _, json) => {
    if (from.bytes[start] !== openingList) return json.constant(nullJson);
    json.constant(openList);
    const first = json.length;
    eachChild(from.bytes, start, (at, end) => {
      if (json.length > first) json.comma();
      write(from, at, end, json);
    });
    json.constant(closeList);
  };
}

/** A field of an object: its name as JSON has it, what is written before its value, and the writer of that. */
interface Member {
  readonly name: Buffer;
  readonly before: ConstantJson;
  readonly write: JsonWriter;
}

function objectWriter(fields: Readonly<Record<string, Part>>): JsonWriter {
  const members = Object.entries(fields).map(
    ([name, part], i): Member => ({
      name: Buffer.from(JSON.stringify(part.column ?? name)),
      before: constantJson(`${i === 0 ? '{' : ','}${JSON.stringify(name)}:`),
      write: valueWriter(part),
    }),
  );
  const starts = new Int32Array(members.length);
  const ends = new Int32Array(members.length);
  return (from, start, _, json) => {
    if (from.bytes[start] !== openingObject) return json.constant(nullJson);
    findMembers(from.bytes, start, members, { starts, ends });
    for (const [i, { before, write }] of members.entries()) {
      json.constant(before);
      if (starts[i] === 0) json.constant(nullJson);
      else write(from, starts[i] as number, ends[i] as number, json);
    }
    json.constant(closeObject);
  };
}

/** Sets where the value of each member begins and ends; 0: it is missing. PostgreSQL repeats the order of a row's columns, so the next name is tried first. */
function findMembers(
  bytes: Buffer,
  start: number,
  members: readonly Member[],
  { starts, ends }: { readonly starts: Int32Array; readonly ends: Int32Array },
): void {
  starts.fill(0);
  let next = 0;
  eachChild(bytes, start, (at, end, name, nameEnd) => {
    const isNext = next < members.length && isEqual(bytes, name, nameEnd, (members[next] as Member).name);
    const found = isNext ? next : members.findIndex((member) => isEqual(bytes, name, nameEnd, member.name));
    if (found < 0) return;
    starts[found] = at;
    ends[found] = end;
    next = found + 1;
  });
}

function isEqual(bytes: Buffer, start: number, end: number, name: Buffer): boolean {
  if (end - start !== name.length) return false;
  for (let i = 0; i < name.length; i++) if (bytes[start + i] !== name[i]) return false;
  return true;
}

/** Writes a text that is JSON by the writer of a part. */
export function writePart(write: JsonWriter, text: string, json: JsonBytes): void {
  const bytes = Buffer.from(text);
  const from: WordSource = { bytes, words: new DataView(bytes.buffer, bytes.byteOffset, bytes.length) };
  write(from, 0, bytes.length, json);
}
