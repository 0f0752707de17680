import { splitPointer } from '../../base/members.js';
import type { WordSource } from '../../postgres/row.js';
import { removeImage } from './images.js';
import { encodeJson, type JsonBytes, nullJson } from './json-bytes.js';
import { openingList, openingObject } from './json-characters.js';
import { hasName, type JsonName, makeJsonName, skipValue, visitEach } from './json-walk.js';

/** Returns the end of the value at `start`. Throws MalformedJson. */
export type JsonAppender = (from: WordSource, start: number, json: JsonBytes) => number;

const colon = encodeJson(':');
const brackets = {
  list: [encodeJson('['), encodeJson(']')],
  object: [encodeJson('{'), encodeJson('}')],
} as const;

/** A node of the tree of pointers in free JSON; a pointer ends at a node that is shown. */
interface PointerNode {
  isShown: boolean;
  readonly members: { readonly name: JsonName; readonly place: PointerNode }[];
}

/** Deeper lists and objects are left out: jsonb may nest deeper than the stack is tall. */
const depthMax = 100;

/** Shows scalars, and lists of them, at these pointers (RFC 6901), also through lists. Appends null for other scalars. */
export function makeShownMembersAppender(pointers: readonly string[]): JsonAppender {
  const root = makePlaces(pointers);
  return (from, start, json) => {
    const before = json.length;
    const end = appendShown(root, from, start, json);
    if (json.length === before) json.appendConstant(nullJson);
    return end;
  };
}

function makePlaces(pointers: readonly string[]): PointerNode {
  const root: PointerNode = { isShown: false, members: [] };
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

/** Appends the shown part of a value, which can be nothing; returns the end. */
function appendShown(node: PointerNode, from: WordSource, start: number, json: JsonBytes, depth = 0): number {
  const { bytes } = from;
  const isList = bytes[start] === openingList;
  const isObject = bytes[start] === openingObject;
  if (depth > depthMax || (!isList && (!isObject || node.members.length === 0))) {
    const end = skipValue(bytes, start);
    if (node.isShown && !isObject && !isList) appendScalar(from, start, end, json);
    return end;
  }
  const [opening, closing] = brackets[isList ? 'list' : 'object'];
  json.appendConstant(opening);
  const first = json.length;
  const end = visitEach(bytes, start, (at, name, nameEnd) => {
    const inner = isList ? node : findMember(node, bytes, name, nameEnd);
    if (inner === undefined) return skipValue(bytes, at);
    const before = json.length;
    if (before > first) json.appendComma();
    if (isObject) {
      json.appendSpan(from, name, nameEnd);
      json.appendConstant(colon);
    }
    const valueAt = json.length;
    const to = appendShown(inner, from, at, json, depth + 1);
    if (json.length === valueAt) json.truncate(before);
    return to;
  });
  json.appendConstant(closing);
  return end;
}

function appendScalar(from: WordSource, start: number, end: number, json: JsonBytes): void {
  const before = json.length;
  json.appendSpan(from, start, end);
  removeImage(json, before);
}

function findMember({ members }: PointerNode, bytes: Buffer, start: number, end: number): PointerNode | undefined {
  for (let i = 0; i < members.length; i++) {
    const { name, place } = members[i] as PointerNode['members'][number];
    if (hasName(bytes, start, end, name)) return place;
  }
  return undefined;
}
