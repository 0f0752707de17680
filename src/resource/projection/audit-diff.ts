import { findValueEnd, MalformedJson, parseString, scanContainer, skipSpace } from './json-scan.js';

export type KeyOrIndex = string | number;

export interface DiffShape {
  /** Absent: the diff is an object whose members are the fields. */
  readonly field?: KeyOrIndex;
  readonly old: KeyOrIndex;
  readonly new: KeyOrIndex;
}

/** Shape of a definition that names none: [{"field", "old", "new"}]. */
export const usualDiff: DiffShape = { field: 'field', old: 'old', new: 'new' };

/** Names in the API: {field, old, new}, or {field, shielded: true}. */
export interface DiffMemberNames {
  readonly field: string;
  readonly old: string;
  readonly new: string;
  readonly shielded: string;
}

export const usualWords: DiffMemberNames = { field: 'field', old: 'old', new: 'new', shielded: 'shielded' };

export interface StoredChange {
  readonly name: string;
  readonly old: string;
  readonly new: string;
}

/** Works by position in the text, so that numbers keep every digit; the last of a repeated member counts. Throws MalformedJson. */
export function readStoredChanges(json: string, { field, old: oldAt, new: newAt }: DiffShape): StoredChange[] {
  const changes: StoredChange[] = [];
  const places = [field, oldAt, newAt];
  const isList = field !== undefined;
  const start = skipSpace(json, 0);
  if (json[start] !== (isList ? '[' : '{')) throw new MalformedJson();
  const end = scanContainer(json, start, (key, at) => {
    const texts = ['', 'null', 'null'] as [string, string, string];
    const changeEnd = readTexts(json, at, places, texts);
    const [name, old, next] = texts;
    if (!isList) changes.push({ name: key, old, new: next });
    else if (name.startsWith('"')) changes.push({ name: parseString(name, 0, name.length), old, new: next });
    return changeEnd;
  });
  if (skipSpace(json, end) !== json.length) throw new MalformedJson();
  return changes;
}

/** Fills `texts` from these places; a scalar has none. Returns the end. */
function readTexts(json: string, start: number, places: readonly (KeyOrIndex | undefined)[], texts: string[]): number {
  const isObject = json[start] === '{';
  if (!isObject && json[start] !== '[') return findValueEnd(json, start);
  return scanContainer(json, start, (name, at) => {
    const end = findValueEnd(json, at);
    const index = places.indexOf(isObject ? name : Number(name));
    if (index >= 0) texts[index] = json.slice(at, end);
    return end;
  });
}

export interface NewChange {
  readonly name: string;
  readonly before: unknown;
  readonly after: unknown;
}

export function composeDiff(changes: readonly NewChange[], shape: DiffShape): string {
  const both = ({ before, after }: NewChange): [KeyOrIndex, unknown][] => [
    [shape.old, before],
    [shape.new, after],
  ];
  const { field } = shape;
  if (field === undefined)
    return JSON.stringify(Object.fromEntries(changes.map((change) => [change.name, makeContainer(both(change))])));
  return JSON.stringify(changes.map((change) => makeContainer([[field, change.name], ...both(change)])));
}

function makeContainer(texts: readonly (readonly [KeyOrIndex, unknown])[]): unknown {
  if (texts.every(([place]) => typeof place === 'string')) return Object.fromEntries(texts);
  const array: unknown[] = Array(1 + Math.max(...texts.map(([place]) => Number(place)))).fill(null);
  for (const [place, value] of texts) array[Number(place)] = value;
  return array;
}
