import { elementsOf, membersOf, stringAt } from './json-scan.js';

/** A place in a JSON array or object. */
export type Place = string | number;

/** How the app's audit log stores the changes of an entry. */
export interface DiffShape {
  /** Place of the field's name in a change of a list; absent: the diff is an object, and the names of its members are those of the fields. */
  readonly field?: Place;
  readonly old: Place;
  readonly new: Place;
}

/** [{"veld", "oud", "nieuw"}]: the shape that the API has, and the default of definitions. */
export const apiDiff: DiffShape = { field: 'veld', old: 'oud', new: 'nieuw' };

/** A change of a stored diff: the name of the field, and both values as JSON text. */
export interface StoredChange {
  readonly name: string;
  readonly before: string;
  readonly after: string;
}

/**
 * The changes in the JSON text of a diff. A value that is missing is null; an element that is no change is left out. Throws
 * MalformedJson when the text does not have the shape.
 */
export function changesOf(diff: string, shape: DiffShape): StoredChange[] {
  const { field } = shape;
  const changes: StoredChange[] = [];
  const add = (name: string | undefined, parts: Parts): void => {
    if (name === undefined) return;
    changes.push({ name, before: partAt(parts, shape.old) ?? 'null', after: partAt(parts, shape.new) ?? 'null' });
  };
  if (field === undefined) for (const [name, change] of membersOf(diff)) add(name, partsOf(change));
  else for (const parts of elementsOf(diff).map(partsOf)) add(nameAt(parts, field), parts);
  return changes;
}

/** A change that is to be stored. */
export interface NewChange {
  readonly name: string;
  readonly before: unknown;
  readonly after: unknown;
}

/** The JSON text of the changes in the shape of the app's log. */
export function diffOf(changes: readonly NewChange[], shape: DiffShape): string {
  const both = ({ before, after }: NewChange): [Place, unknown][] => [
    [shape.old, before],
    [shape.new, after],
  ];
  const { field } = shape;
  if (field === undefined)
    return JSON.stringify(Object.fromEntries(changes.map((change) => [change.name, container(both(change))])));
  return JSON.stringify(changes.map((change) => container([[field, change.name], ...both(change)])));
}

function container(parts: readonly (readonly [Place, unknown])[]): unknown {
  if (parts.every(([place]) => typeof place === 'string')) return Object.fromEntries(parts);
  const array: unknown[] = Array(1 + Math.max(...parts.map(([place]) => Number(place)))).fill(null);
  for (const [place, value] of parts) array[Number(place)] = value;
  return array;
}

/** The parts of a change with their places, each as JSON text. */
type Parts = readonly (readonly [Place, string])[];

/** Throws MalformedJson. */
function partsOf(change: string): Parts {
  if (change.startsWith('{')) return membersOf(change);
  return change.startsWith('[') ? elementsOf(change).map((part, place) => [place, part]) : [];
}

function nameAt(parts: Parts, place: Place): string | undefined {
  const name = partAt(parts, place);
  return name?.startsWith('"') ? stringAt(name, 0, name.length) : undefined;
}

/** Of a name that is repeated in an object the last value counts, as in JSON.parse. */
function partAt(parts: Parts, place: Place): string | undefined {
  return parts.findLast((part) => part[0] === place)?.[1];
}
