/**
 * Tables of a copy, made from the OpenAPI document of the gateway by one rule:
 *
 * - A resource is a table of its name. Names are snake_case: `createdAt` is `created_at`, `work-orders` is `work_orders`.
 * - A member is a column. The members of a group are columns that begin with its name: `adres.plaats` is `adres_plaats`.
 * - An array of objects is a table of its own, RESOURCE_MEMBER, with the id of its record (RECORD_id) and its
 *   `position` in the record, from 1. Objects of several variants have the columns of all of them.
 * - Anything else without a single type is a column of JSON.
 */

import { free, joined, shortened, snake } from './names.js';

type Schema = { readonly [keyword: string]: unknown };
export type OpenApiDocument = Schema;

/** Each destination has its own types for a kind. */
export type Kind = 'text' | 'timestamp' | 'date' | 'integer' | 'number' | 'boolean' | 'json';

/** Digits of a number before and after its point. */
export interface Digits {
  readonly whole: number;
  readonly scale: number;
}

/** A column, and the members that lead to its value. */
export interface Column {
  readonly name: string;
  readonly path: readonly string[];
  readonly kind: Kind;
  /** The document says that each record has a value. */
  readonly isRequired: boolean;
  /** The document may name none, which is null. */
  readonly digits: Digits | null;
  readonly comment: string;
}

/** A table with the records of a resource, or with the elements of one of its members. */
export interface Table {
  readonly name: string;
  readonly comment: string;
  readonly columns: readonly Column[];
}

/** The elements of an array of objects. */
export interface PartTable extends Table {
  readonly member: string;
  /** Column with the id of the record. */
  readonly owner: string;
  readonly references: readonly Reference[];
}

/** A column whose values are ids of another resource, or of the same one. */
export interface Reference {
  readonly column: string;
  readonly resource: string;
}

export interface Resource {
  /** The API names it so. */
  readonly name: string;
  readonly table: Table;
  readonly parts: readonly PartTable[];
  readonly references: readonly Reference[];
  readonly perPageMax: number;
}

/** `pull` adds these columns to tables of records and keeps these tables for itself: members and resources of such a name get a number. */
export const versionColumn = 'sync_version';
export const hashColumn = 'sync_hash';
export const workspaceColumn = 'workspace_id';
export const stateTable = 'pull_state';
export const statusTable = 'pull_status';

const own = (value: object, name: string): unknown =>
  Object.hasOwn(value, name) ? (value as Schema)[name] : undefined;
const isObject = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The document does not describe resources as a gateway does. */
export class UnfitDocument extends Error {}

export interface TableOptions {
  /** Each table has the column `workspace_id`. */
  readonly hasWorkspace: boolean;
}

/** Puts resources before those they refer to, so no reference dangles after a run. */
export function resourcesOf(document: OpenApiDocument, options: TableOptions = { hasWorkspace: false }): Resource[] {
  const paths = Object.keys(objectAt(document, document, ['paths']));
  const names = paths.flatMap((path) => /^\/sync\/([^/{}]+)$/.exec(path)?.[1] ?? []);
  const resources = names.map((name) => resourceOf(document, name, options));
  const ordered: Resource[] = [];
  const place = (resource: Resource, above: readonly string[]): void => {
    if (ordered.includes(resource) || above.includes(resource.name)) return;
    for (const each of resources)
      if (each.references.some((reference) => reference.resource === resource.name))
        place(each, [...above, resource.name]);
    ordered.push(resource);
  };
  for (const resource of resources) place(resource, []);
  return ordered;
}

/** Throws UnfitDocument where two would be one table. */
export function refuseTwins(resources: readonly Resource[]): void {
  const owners = new Map<string, string>();
  for (const { name, table, parts } of resources)
    for (const [each, whose] of [
      [table.name, name],
      ...parts.map((part) => [part.name, `${name}.${part.member}`] as const),
    ] as const) {
      const other = owners.get(each);
      if (other !== undefined)
        throw new UnfitDocument(
          `${other} and ${whose} would both be the table ${each}: copy them with --resources, apart.`,
        );
      owners.set(each, whose);
    }
}

function resourceOf(document: Schema, name: string, { hasWorkspace }: TableOptions): Resource {
  const operation = objectAt(document, document, ['paths', `/sync/${name}`, 'get']);
  const page = objectAt(document, operation, ['responses', '200', 'content', 'application/json', 'schema']);
  const record = objectAt(document, page, ['properties', 'data', 'items']);
  const added = hasWorkspace ? [workspaceColumn] : [];
  const taken = new Set([versionColumn, hashColumn, ...added]);
  const columns: Column[] = [];
  const parts: PartTable[] = [];
  const references: Reference[] = [];
  const tableName = free(snake(name), new Set([stateTable, statusTable]));
  const recordName = snake(String(record['x-record'] ?? name));
  const add = (path: readonly string[], given: unknown, isRequired: boolean): void => {
    const schema = follow(document, given);
    if (!isObject(schema) || path.length > groupsMax) throw unfit(name);
    const elements = path.length === 1 ? elementsOf(document, schema) : null;
    const inner = typesOf(schema).join() === 'object' ? own(schema, 'properties') : undefined;
    if (elements !== null) {
      const member = path[0] as string;
      parts.push({
        ...partOf(shortened(`${recordName}_id`), elements, added),
        name: joined([tableName, member]),
        comment: String(schema.description ?? ''),
        member,
      });
    } else if (isObject(inner)) {
      const required = isRequired && !isNullable(schema) ? requiredOf(schema) : [];
      for (const [member, each] of Object.entries(inner)) add([...path, member], each, required.includes(member));
    } else {
      const column = columnOf(free(joined(path), taken), path, schema, isRequired);
      columns.push(path.join() === 'id' ? { ...column, kind: 'text', isRequired: true } : column);
      const reference = own(schema, 'x-references');
      if (typeof reference === 'string') references.push({ column: column.name, resource: reference });
    }
  };
  const required = requiredOf(record);
  for (const [member, schema] of Object.entries(objectAt(document, record, ['properties'])))
    if (member !== 'syncVersion') add([member], schema, required.includes(member));
  if (!columns.some(({ path }) => path.join() === 'id')) throw unfit(name);
  const table = { name: tableName, comment: String(record.description ?? ''), columns };
  return { name, table, parts, references, perPageMax: perPageMaxOf(document, operation) };
}

const groupsMax = 4;

/** Takes the columns of all variants of the elements, required if each variant requires them. */
function partOf(
  owner: string,
  variants: readonly Schema[],
  added: readonly string[],
): Pick<PartTable, 'owner' | 'columns' | 'references'> {
  const taken = new Set([owner, 'position', ...added]);
  const members = new Map<string, Schema[]>();
  for (const variant of variants)
    for (const [member, schema] of Object.entries(own(variant, 'properties') as Schema))
      members.set(member, [...(members.get(member) ?? []), schema as Schema]);
  const references: Reference[] = [];
  const columns = [...members].map(([member, schemas]): Column => {
    const isRequired = variants.every((variant) => requiredOf(variant).includes(member));
    const made = schemas.map((schema) => columnOf('', [member], schema, isRequired));
    const [first] = made as [Column];
    const isOne = made.every(({ kind }) => kind === first.kind);
    const name = free(snake(member), taken);
    const reference = schemas.map((schema) => own(schema, 'x-references')).find((each) => typeof each === 'string');
    if (typeof reference === 'string') references.push({ column: name, resource: reference });
    return {
      ...first,
      name,
      kind: isOne ? first.kind : 'json',
      isRequired: made.every((each) => each.isRequired),
      digits: made.length === 1 ? first.digits : null,
      comment: [...new Set(made.map(({ comment }) => comment).filter((comment) => comment !== ''))].join(' '),
    };
  });
  return { owner, columns, references };
}

function columnOf(name: string, path: readonly string[], schema: Schema, isRequired: boolean): Column {
  const kind = kindOf(schema);
  return {
    name,
    path,
    kind,
    // Any type includes null.
    isRequired: isRequired && !isNullable(schema) && typesOf(schema).length > 0,
    digits: kind === 'number' ? digitsIn(schema) : null,
    comment: meaningOf(schema),
  };
}

/** Says what a column means by the document: people, dbt and assistants read it. */
function meaningOf(schema: Schema): string {
  const values = own(schema, 'enum');
  const listed = Array.isArray(values) ? values.filter((value) => value !== null).join(', ') : '';
  const [example] = [own(schema, 'examples')].flat();
  const reference = own(schema, 'x-references');
  return [
    String(schema.description ?? ''),
    ...(listed === '' ? [] : [`One of: ${listed}.`]),
    ...(listed === '' && typeof example === 'string' ? [`For example ${example}.`] : []),
    ...(typeof reference === 'string' ? [`Refers to the id in ${snake(reference)}.`] : []),
  ]
    .filter((sentence) => sentence !== '')
    .join(' ');
}

/** Returns the zone in which the days of the API begin; null: the document does not say. */
export function timeZoneOf(document: OpenApiDocument): string | null {
  const zone = own(document, 'x-time-zone');
  return typeof zone === 'string' && /^[A-Za-z0-9_+/-]{1,64}$/.test(zone) ? zone : null;
}

/** Returns the schemas of elements that are objects with known members; their references are followed. */
function elementsOf(document: Schema, schema: Schema): Schema[] | null {
  if (!typesOf(schema).includes('array')) return null;
  const items = follow(document, own(schema, 'items'));
  if (!isObject(items)) return null;
  const variants = own(items, 'properties') === undefined ? (own(items, 'anyOf') ?? own(items, 'oneOf')) : [items];
  if (!Array.isArray(variants) || variants.length === 0) return null;
  const found: Schema[] = [];
  for (const each of variants) {
    const variant = follow(document, each);
    const members = isObject(variant) ? own(variant, 'properties') : undefined;
    if (!isObject(variant) || !isObject(members)) return null;
    const followed = Object.entries(members).map(([member, given]) => [member, follow(document, given)] as const);
    // `true` is a schema of anything.
    found.push({
      ...variant,
      properties: Object.fromEntries(followed.map(([member, one]) => [member, isObject(one) ? one : {}])),
    });
  }
  return found;
}

function perPageMaxOf(document: Schema, operation: Schema): number {
  const parameters = own(operation, 'parameters');
  for (const each of Array.isArray(parameters) ? parameters : []) {
    const parameter = follow(document, each);
    if (!isObject(parameter) || parameter.name !== 'perPage') continue;
    const maximum = Number(own(objectAt(document, parameter, ['schema']), 'maximum'));
    if (maximum >= 1) return maximum;
  }
  return 1000;
}

const typesOf = ({ type }: Schema): unknown[] => [type].flat().filter((each) => each !== 'null' && each !== undefined);
const isNullable = ({ type }: Schema): boolean => [type].flat().includes('null');

function requiredOf(schema: Schema): readonly unknown[] {
  const required = own(schema, 'required');
  return Array.isArray(required) ? required : [];
}

function kindOf(schema: Schema): Kind {
  const types = typesOf(schema);
  if (types.length !== 1) return own(schema, 'const') === true ? 'boolean' : 'json';
  if (types[0] === 'string')
    return schema.format === 'date-time' ? 'timestamp' : schema.format === 'date' ? 'date' : 'text';
  const plain: readonly unknown[] = ['integer', 'number', 'boolean'];
  return plain.includes(types[0]) ? (types[0] as Kind) : 'json';
}

/** Returns the digits that `multipleOf`, `minimum` and `maximum` allow; null without all of them. */
function digitsIn(schema: Schema): Digits | null {
  const [step, from, to] = [
    schema.multipleOf,
    schema.minimum ?? schema.exclusiveMinimum,
    schema.maximum ?? schema.exclusiveMaximum,
  ];
  if (typeof step !== 'number' || typeof from !== 'number' || typeof to !== 'number') return null;
  const whole = Math.trunc(Math.max(Math.abs(from), Math.abs(to))).toString();
  const scale = /^(?:\d+(?:\.(\d+))?)(?:e-(\d+))?$/.exec(String(step));
  if (scale === null || !/^\d+$/.test(whole)) return null;
  return { whole: whole.length, scale: (scale[1]?.length ?? 0) + Number(scale[2] ?? 0) };
}

/** Follows references into the document on the path. */
function objectAt(document: Schema, from: unknown, path: readonly string[]): Schema {
  let value = follow(document, from);
  for (const step of path) {
    if (!isObject(value)) throw unfit(path.join('/'));
    value = follow(document, own(value, step));
  }
  if (!isObject(value)) throw unfit(path.join('/'));
  return value;
}

const referencesMax = 20;

/** Resolves a reference into the document (RFC 6901); other values stay. */
function follow(document: Schema, from: unknown): unknown {
  let value = from;
  for (let i = 0; isObject(value) && typeof value.$ref === 'string'; i++) {
    if (i === referencesMax)
      throw new UnfitDocument('The document of the gateway has a reference that leads to itself.');
    const steps = value.$ref.split('/').slice(1);
    const named = steps.map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
    value = named.reduce<unknown>((at, step) => (isObject(at) ? own(at, step) : undefined), document);
  }
  return value;
}

function unfit(place: string): UnfitDocument {
  return new UnfitDocument(
    `The server at --base does not describe ${place} as a gateway does: give the address of a workspace data gateway.`,
  );
}
