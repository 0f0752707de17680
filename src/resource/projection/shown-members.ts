import type { WordSource } from '../../postgres/row.js';
import { constantJson, type JsonBytes } from './json-bytes.js';
import { eachChild, nameAt, openingList, openingObject } from './json-walk.js';

/** Writes the JSON value in bytes[start, end) as the API shows it. Throws MalformedJson. */
export type JsonWriter = (from: WordSource, start: number, end: number, json: JsonBytes) => void;

const nullJson = constantJson('null');
const colon = constantJson(':');
const brackets = {
  list: [constantJson('['), constantJson(']')],
  object: [constantJson('{'), constantJson('}')],
} as const;

/** The pointers that lead through a place in free JSON, and whether one ends there. */
interface Place {
  isShown: boolean;
  readonly members: Map<string, Place>;
}

/**
 * Makes the writer of free JSON of which only the members at these pointers (RFC 6901) are shown: texts, numbers, true, false and null, and lists
 * of them. Pointers go through lists, so that /points/x is the x of each point. What they do not name is left out; a value that is no object
 * or list is null.
 */
export function shownMembers(pointers: readonly string[]): JsonWriter {
  const root: Place = { isShown: false, members: new Map() };
  for (const pointer of pointers) {
    let place = root;
    for (const name of pointerTokens(pointer)) {
      const next = place.members.get(name) ?? { isShown: false, members: new Map() };
      place.members.set(name, next);
      place = next;
    }
    place.isShown = true;
  }
  return (from, start, end, json) => {
    if (!writeShown(root, from, start, end, json)) json.constant(nullJson);
  };
}

/** "/a~1b/c" → ["a/b", "c"]. */
export function pointerTokens(pointer: string): string[] {
  const [, ...tokens] = pointer.split('/').map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'));
  return tokens;
}

/** Writes what is shown of the value at the place; returns false, and has written nothing, when that is nothing. */
function writeShown(place: Place, from: WordSource, start: number, end: number, json: JsonBytes): boolean {
  const { bytes } = from;
  const isList = bytes[start] === openingList;
  const isObject = bytes[start] === openingObject;
  if (!isList && !isObject) {
    if (place.isShown) json.part(from, start, end);
    return place.isShown;
  }
  if (isObject && place.members.size === 0) return false;
  const [opening, closing] = brackets[isList ? 'list' : 'object'];
  json.constant(opening);
  const first = json.length;
  eachChild(bytes, start, (at, to, name, nameEnd) => {
    const inner = isList ? place : place.members.get(nameAt(bytes, name, nameEnd));
    if (inner === undefined) return;
    const before = json.length;
    if (before > first) json.comma();
    if (isObject) {
      json.part(from, name, nameEnd);
      json.constant(colon);
    }
    if (!writeShown(inner, from, at, to, json)) json.cut(before);
  });
  json.constant(closing);
  return true;
}
