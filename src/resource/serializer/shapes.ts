import { viewWords, type WordSource } from '../../postgres/row.js';
import { getType } from '../definition/field-types.js';
import type { JsonShape } from '../definition/resource.js';
import { removeImage } from '../projection/images.js';
import { type ConstantJson, encodeJson, type JsonBytes, nullJson } from '../projection/json-bytes.js';
import { openingList, openingObject } from '../projection/json-characters.js';
import { hasName, type JsonName, makeJsonName, skipValue, visitEach } from '../projection/json-walk.js';
import { type JsonAppender, makeShownMembersAppender } from '../projection/shown-members.js';

const openList = encodeJson('[');
const closeList = encodeJson(']');
const closeObject = encodeJson('}');
const letterN = 0x6e;

/** Appends all fields of the definition in their order, null when missing, and no others. */
export function makeShapeAppender(shape: JsonShape): JsonAppender {
  const { type, items, fields, show = [] } = shape;
  if (items !== undefined) return makeListAppender(makeValueAppender(items));
  if (fields !== undefined) return makeObjectAppender(fields);
  return type === 'json' ? makeShownMembersAppender(show) : makeScalarAppender(shape);
}

function makeScalarAppender({ type }: JsonShape): JsonAppender {
  const { fromJson } = getType(type);
  return (from, start, json) => {
    const end = skipValue(from.bytes, start);
    const before = json.length;
    fromJson(from, start, end, json);
    if (type === 'text') removeImage(json, before);
    return end;
  };
}

function appendNull(from: WordSource, start: number, json: JsonBytes): number {
  json.appendConstant(nullJson);
  return skipValue(from.bytes, start);
}

function makeValueAppender(shape: JsonShape): JsonAppender {
  const append = makeShapeAppender(shape);
  return (from, start, json) => (from.bytes[start] === letterN ? appendNull : append)(from, start, json);
}

function makeListAppender(append: JsonAppender): JsonAppender {
  return (from, start, json) => {
    if (from.bytes[start] !== openingList) return appendNull(from, start, json);
    json.appendConstant(openList);
    const first = json.length;
    const end = visitEach(from.bytes, start, (at) => {
      if (json.length > first) json.appendComma();
      return append(from, at, json);
    });
    json.appendConstant(closeList);
    return end;
  };
}

interface ObjectMember {
  readonly name: JsonName;
  readonly before: ConstantJson;
  readonly append: JsonAppender;
}

/** Appends members in the definition's order. PostgreSQL mostly has it too; otherwise they are appended again by position. */
function makeObjectAppender(fields: Readonly<Record<string, JsonShape>>): JsonAppender {
  const members = Object.entries(fields).map(
    ([name, shape], i): ObjectMember => ({
      name: makeJsonName(shape.column ?? name),
      before: encodeJson(`${i === 0 ? '{' : ','}${JSON.stringify(name)}:`),
      append: makeValueAppender(shape),
    }),
  );
  return (from, start, json) => {
    const { bytes } = from;
    if (bytes[start] !== openingObject) return appendNull(from, start, json);
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
      const { before, append } = members[next++] as ObjectMember;
      json.appendConstant(before);
      return append(from, at, json);
    });
    if (next < 0) json.truncate(first);
    for (let i = Math.max(0, next); i < members.length; i++) {
      const { before, append } = members[i] as ObjectMember;
      json.appendConstant(before);
      if (places[i] === 0) json.appendConstant(nullJson);
      else append(from, places[i] as number, json);
    }
    json.appendConstant(closeObject);
    return end;
  };
}

export function appendShaped(append: JsonAppender, text: string, json: JsonBytes): void {
  const bytes = Buffer.from(text);
  append({ bytes, words: viewWords(bytes) }, 0, json);
}
