import { splitPointer } from '../../base/members.js';
import type { WordSource } from '../../postgres/row.js';
import { removeImage } from './images.js';
import { encodeJson, type JsonBytes, nullJson } from './json-bytes.js';
import { hasName, type JsonName, makeJsonName, openingList, openingObject, skipValue, visitEach } from './json-walk.js';

/** Returns the end of the value at `start`. Throws MalformedJson. */
export type JsonWriter = (from: WordSource, start: number, json: JsonBytes) => number;

const colon = encodeJson(':');
const brackets = {
  list: [encodeJson('['), encodeJson(']')],
  object: [encodeJson('{'), encodeJson('}')],
} as const;

/** A node of the tree of pointers in free JSON; a pointer ends at a node that is shown. */
interface Place {
  isShown: boolean;
  readonly members: { readonly name: JsonName; readonly place: Place }[];
}

/** Deeper lists and objects are left out: jsonb may nest deeper than the stack is tall. */
const depthMax = 100;

/** Shows scalars, and lists of them, at these pointers (RFC 6901), also through lists. Writes null for other scalars. */
export function makeShownMembersWriter(pointers: readonly string[]): JsonWriter {
  const root = makePlaces(pointers);
  return (from, start, json) => {
    const before = json.length;
    const end = writeShown(root, from, start, json);
    if (json.length === before) json.constant(nullJson);
    return end;
  };
}

function makePlaces(pointers: readonly string[]): Place {
  const root: Place = { isShown: false, members: [] };
  for (const pointer of pointers) {
    let node = root;
    for (const name of splitPointer(pointer)) {
      const known = node.members.find((member) => member.name.text === name);
      const next = known?.place ?? { isShown: false, members: [] };
      if (known === undefined) node.members.push({ name: makeJsonName(name), place: next });
      node = next;
    }
    node.isShown = true;
  }
  return root;
}

/** Writes the shown part of a value, which can be nothing; returns the end. */
function writeShown(node: Place, from: WordSource, start: number, json: JsonBytes, depth = 0): number {
  const { bytes } = from;
  const isList = bytes[start] === openingList;
  const isObject = bytes[start] === openingObject;
  if (depth > depthMax || (!isList && (!isObject || node.members.length === 0))) {
    const end = skipValue(bytes, start);
    if (node.isShown && !isObject && !isList) writeScalar(from, start, end, json);
    return end;
  }
  const [opening, closing] = brackets[isList ? 'list' : 'object'];
  json.constant(opening);
  const first = json.length;
  const end = visitEach(bytes, start, (at, name, nameEnd) => {
    const inner = isList ? node : findMember(node, bytes, name, nameEnd);
    if (inner === undefined) return skipValue(bytes, at);
    const before = json.length;
    if (before > first) json.comma();
    if (isObject) {
      json.part(from, name, nameEnd);
      json.constant(colon);
    }
    const valueAt = json.length;
    const to = writeShown(inner, from, at, json, depth + 1);
    if (json.length === valueAt) json.truncate(before);
    return to;
  });
  json.constant(closing);
  return end;
}

function writeScalar(from: WordSource, start: number, end: number, json: JsonBytes): void {
  const before = json.length;
  json.part(from, start, end);
  removeImage(json, before);
}

function findMember({ members }: Place, bytes: Buffer, start: number, end: number): Place | undefined {
  for (let i = 0; i < members.length; i++) {
    const { name, place } = members[i] as Place['members'][number];
    if (hasName(bytes, start, end, name)) return place;
  }
  return undefined;
}
