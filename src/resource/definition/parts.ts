import { viewWords, type WordSource } from '../../postgres/row.js';
import { removeImage } from '../projection/images.js';
import { type ConstantJson, encodeJson, type JsonBytes, nullJson } from '../projection/json-bytes.js';
import {
  hasName,
  type JsonName,
  makeJsonName,
  openingList,
  openingObject,
  skipValue,
  visitEach,
} from '../projection/json-walk.js';
import { type JsonWriter, makeShownMembersWriter } from '../projection/shown-members.js';
import { getType } from './field-types.js';
import type { JsonPart } from './resource.js';

const [openList, closeList, closeObject] = ['[', ']', '}'].map(encodeJson) as [
  ConstantJson,
  ConstantJson,
  ConstantJson,
];
const letterN = 0x6e;

/** Writes all fields of the definition in their order, null when missing, and no others. */
export function makePartWriter(part: JsonPart): JsonWriter {
  const { type, items, fields, show = [] } = part;
  if (items !== undefined) return makeListWriter(makeValueWriter(items));
  if (fields !== undefined) return makeObjectWriter(fields);
  return type === 'json' ? makeShownMembersWriter(show) : makeScalarWriter(part);
}

function makeScalarWriter({ type }: JsonPart): JsonWriter {
  const { fromJson } = getType(type);
  return (from, start, json) => {
    const end = skipValue(from.bytes, start);
    const before = json.length;
    fromJson(from, start, end, json);
    if (type === 'text') removeImage(json, before);
    return end;
  };
}

function writeNull(from: WordSource, start: number, json: JsonBytes): number {
  json.constant(nullJson);
  return skipValue(from.bytes, start);
}

function makeValueWriter(part: JsonPart): JsonWriter {
  const write = makePartWriter(part);
  return (from, start, json) => (from.bytes[start] === letterN ? writeNull : write)(from, start, json);
}

function makeListWriter(write: JsonWriter): JsonWriter {
  return (from, start, json) => {
    if (from.bytes[start] !== openingList) return writeNull(from, start, json);
    json.constant(openList);
    const first = json.length;
    const end = visitEach(from.bytes, start, (at) => {
      if (json.length > first) json.comma();
      return write(from, at, json);
    });
    json.constant(closeList);
    return end;
  };
}

interface ObjectMember {
  readonly name: JsonName;
  readonly before: ConstantJson;
  readonly write: JsonWriter;
}

/** Writes members in the definition's order. PostgreSQL mostly has it too; otherwise they are written again by position. */
function makeObjectWriter(fields: Readonly<Record<string, JsonPart>>): JsonWriter {
  const members = Object.entries(fields).map(
    ([name, part], i): ObjectMember => ({
      name: makeJsonName(part.column ?? name),
      before: encodeJson(`${i === 0 ? '{' : ','}${JSON.stringify(name)}:`),
      write: makeValueWriter(part),
    }),
  );
  return (from, start, json) => {
    const { bytes } = from;
    if (bytes[start] !== openingObject) return writeNull(from, start, json);
    const first = json.length;
    const places = new Int32Array(members.length);
    let next = 0;
    const end = visitEach(bytes, start, (at, name, nameEnd) => {
      const isNext =
        next >= 0 && next < members.length && hasName(bytes, name, nameEnd, (members[next] as ObjectMember).name);
      const found = isNext ? next : members.findIndex((member) => hasName(bytes, name, nameEnd, member.name));
      if (found >= 0) places[found] = at;
      if (found >= 0 && !isNext) next = -1; // the members have another order
      if (!isNext) return skipValue(bytes, at);
      const { before, write } = members[next++] as ObjectMember;
      json.constant(before);
      return write(from, at, json);
    });
    if (next < 0) json.truncate(first);
    for (let i = Math.max(0, next); i < members.length; i++) {
      const { before, write } = members[i] as ObjectMember;
      json.constant(before);
      if (places[i] === 0) json.constant(nullJson);
      else write(from, places[i] as number, json);
    }
    json.constant(closeObject);
    return end;
  };
}

export function writePart(write: JsonWriter, text: string, json: JsonBytes): void {
  const bytes = Buffer.from(text);
  write({ bytes, words: viewWords(bytes) }, 0, json);
}
