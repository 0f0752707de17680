/**
 * Tables of a copy, made from the OpenAPI document of the gateway by one rule:
 *
 * - A resource is a table of its name. Names are snake_case: `createdAt` is `created_at`, `work-orders` is `work_orders`.
 * - A member is a column. The members of a group are columns that begin with its name: `adres.plaats` is `adres_plaats`.
 * - An array of objects is a table of its own, RESOURCE_MEMBER, with the id of its record (RECORD_id) and its
 *   `position` in the record, from 1. Objects of several variants have the columns of all of them.
 * - Anything else without a single type is a column of JSON.
 */

import { chooseFree, joinNames, shortenName, toSnake } from './names.js';

type Schema = { readonly [keyword: string]: unknown };
export type OpenApiDocument = Schema;

/** Kind of a value; each destination has its own type for it. */
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
  /** True if each record has a value, by the document. */
  readonly isRequired: boolean;
  /** Null if the document names none. */
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
  /** The name in the API. */
  readonly name: string;
  readonly table: Table;
  readonly parts: readonly PartTable[];
  readonly references: readonly Reference[];
  readonly perPageMax: number;
}

/** Columns that `pull` adds to tables of records, and tables that it keeps: members and resources of such a name get a number. */
export const versionColumn = 'sync_version';
export const hashColumn = 'sync_hash';
export const workspaceColumn = 'workspace_id';
export const stateTable = 'pull_state';
export const statusTable = 'pull_status';

const getOwn = (value: object, name: string): unknown =>
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
export function listResources(document: OpenApiDocument, options: TableOptions = { hasWorkspace: false }): Resource[] {
  const paths = Object.keys(getObject(document, document, ['paths']));
  const names = paths.flatMap((path) => /^\/sync\/([^/{}]+)$/.exec(path)?.[1] ?? []);
  const resources = names.map((name) => readResource(document, name, options));
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

/** Throws UnfitDocument if two would be one table. */
export function refuseTwins(resources: readonly Resource[]): void {
  const owners = new Map<string, string>();
  for (const { name, table, parts } of resources)
    for (const [tableName, whose] of [
      [table.name, name],
      ...parts.map((part) => [part.name, `${name}.${part.member}`] as const),
    ] as const) {
      const other = owners.get(tableName);
      if (other !== undefined)
        throw new UnfitDocument(
          `${other} and ${whose} would both be the table ${tableName}: copy them with --resources, apart.`,
        );
      owners.set(tableName, whose);
    }
}

function readResource(document: Schema, name: string, { hasWorkspace }: TableOptions): Resource {
  const operation = getObject(document, document, ['paths', `/sync/${name}`, 'get']);
  const page = getObject(document, operation, ['responses', '200', 'content', 'application/json', 'schema']);
  const record = getObject(document, page, ['properties', 'data', 'items']);
  const added = hasWorkspace ? [workspaceColumn] : [];
  const taken = new Set([versionColumn, hashColumn, ...added]);
  const columns: Column[] = [];
  const parts: PartTable[] = [];
  const references: Reference[] = [];
  const tableName = chooseFree(toSnake(name), new Set([stateTable, statusTable]));
  const recordName = toSnake(String(record['x-record'] ?? name));
  const add = (path: readonly string[], given: unknown, isRequired: boolean): void => {
    const schema = followReference(document, given);
    if (!isObject(schema) || path.length > groupsMax) throw makeUnfit(name);
    const elements = path.length === 1 ? listElements(document, schema) : null;
    const inner = listTypes(schema).join() === 'object' ? getOwn(schema, 'properties') : undefined;
    if (elements !== null) {
      const member = path[0] as string;
      parts.push({
        ...readPart(shortenName(`${recordName}_id`), elements, added),
        name: joinNames([tableName, member]),
        comment: String(schema.description ?? ''),
        member,
      });
    } else if (isObject(inner)) {
      const required = isRequired && !isNullable(schema) ? listRequired(schema) : [];
      for (const [member, each] of Object.entries(inner)) add([...path, member], each, required.includes(member));
    } else {
      const column = readColumn(chooseFree(joinNames(path), taken), path, schema, isRequired);
      columns.push(path.join() === 'id' ? { ...column, kind: 'text', isRequired: true } : column);
      const reference = getOwn(schema, 'x-references');
      if (typeof reference === 'string') references.push({ column: column.name, resource: reference });
    }
  };
  const required = listRequired(record);
  for (const [member, schema] of Object.entries(getObject(document, record, ['properties'])))
    if (member !== 'syncVersion') add([member], schema, required.includes(member));
  if (!columns.some(({ path }) => path.join() === 'id')) throw makeUnfit(name);
  const table = { name: tableName, comment: String(record.description ?? ''), columns };
  return { name, table, parts, references, perPageMax: getPerPageMax(document, operation) };
}

const groupsMax = 4;

/** Takes the columns of all variants of the elements, required if each variant requires them. */
function readPart(
  owner: string,
  variants: readonly Schema[],
  added: readonly string[],
): Pick<PartTable, 'owner' | 'columns' | 'references'> {
  const taken = new Set([owner, 'position', ...added]);
  const members = new Map<string, Schema[]>();
  for (const variant of variants)
    for (const [member, schema] of Object.entries(getOwn(variant, 'properties') as Schema))
      members.set(member, [...(members.get(member) ?? []), schema as Schema]);
  const references: Reference[] = [];
  const columns = [...members].map(([member, schemas]): Column => {
    const isRequired = variants.every((variant) => listRequired(variant).includes(member));
    const variantColumns = schemas.map((schema) => readColumn('', [member], schema, isRequired));
    const [first] = variantColumns as [Column];
    const isOne = variantColumns.every(({ kind }) => kind === first.kind);
    const name = chooseFree(toSnake(member), taken);
    const reference = schemas.map((schema) => getOwn(schema, 'x-references')).find((each) => typeof each === 'string');
    if (typeof reference === 'string') references.push({ column: name, resource: reference });
    return {
      ...first,
      name,
      kind: isOne ? first.kind : 'json',
      isRequired: variantColumns.every((each) => each.isRequired),
      digits: variantColumns.length === 1 ? first.digits : null,
      comment: [...new Set(variantColumns.map(({ comment }) => comment).filter((comment) => comment !== ''))].join(' '),
    };
  });
  return { owner, columns, references };
}

function readColumn(name: string, path: readonly string[], schema: Schema, isRequired: boolean): Column {
  const kind = chooseKind(schema);
  return {
    name,
    path,
    kind,
    // Any type includes null.
    isRequired: isRequired && !isNullable(schema) && listTypes(schema).length > 0,
    digits: kind === 'number' ? countDigits(schema) : null,
    comment: getMeaning(schema),
  };
}

/** Describes a column by the document, for people, dbt and assistants. */
function getMeaning(schema: Schema): string {
  const values = getOwn(schema, 'enum');
  const listed = Array.isArray(values) ? values.filter((value) => value !== null).join(', ') : '';
  const [example] = [getOwn(schema, 'examples')].flat();
  const reference = getOwn(schema, 'x-references');
  return [
    String(schema.description ?? ''),
    ...(listed === '' ? [] : [`One of: ${listed}.`]),
    ...(listed === '' && typeof example === 'string' ? [`For example ${example}.`] : []),
    ...(typeof reference === 'string' ? [`Refers to the id in ${toSnake(reference)}.`] : []),
  ]
    .filter((sentence) => sentence !== '')
    .join(' ');
}

/** Returns the zone in which the days of the API begin; null: the document does not say. */
export function getTimeZone(document: OpenApiDocument): string | null {
  const zone = getOwn(document, 'x-time-zone');
  return typeof zone === 'string' && /^[A-Za-z0-9_+/-]{1,64}$/.test(zone) ? zone : null;
}

/** Returns the schemas of elements that are objects with known members; their references are followed. */
function listElements(document: Schema, schema: Schema): Schema[] | null {
  if (!listTypes(schema).includes('array')) return null;
  const items = followReference(document, getOwn(schema, 'items'));
  if (!isObject(items)) return null;
  const variants =
    getOwn(items, 'properties') === undefined ? (getOwn(items, 'anyOf') ?? getOwn(items, 'oneOf')) : [items];
  if (!Array.isArray(variants) || variants.length === 0) return null;
  const schemas: Schema[] = [];
  for (const each of variants) {
    const variant = followReference(document, each);
    const members = isObject(variant) ? getOwn(variant, 'properties') : undefined;
    if (!isObject(variant) || !isObject(members)) return null;
    const followed = Object.entries(members).map(
      ([member, given]) => [member, followReference(document, given)] as const,
    );
    // `true` is a schema of anything.
    schemas.push({
      ...variant,
      properties: Object.fromEntries(followed.map(([member, one]) => [member, isObject(one) ? one : {}])),
    });
  }
  return schemas;
}

function getPerPageMax(document: Schema, operation: Schema): number {
  const parameters = getOwn(operation, 'parameters');
  for (const each of Array.isArray(parameters) ? parameters : []) {
    const parameter = followReference(document, each);
    if (!isObject(parameter) || parameter.name !== 'perPage') continue;
    const maximum = Number(getOwn(getObject(document, parameter, ['schema']), 'maximum'));
    if (maximum >= 1) return maximum;
  }
  return 1000;
}

const listTypes = ({ type }: Schema): unknown[] =>
  [type].flat().filter((each) => each !== 'null' && each !== undefined);
const isNullable = ({ type }: Schema): boolean => [type].flat().includes('null');

function listRequired(schema: Schema): readonly unknown[] {
  const required = getOwn(schema, 'required');
  return Array.isArray(required) ? required : [];
}

function chooseKind(schema: Schema): Kind {
  const types = listTypes(schema);
  if (types.length !== 1) return getOwn(schema, 'const') === true ? 'boolean' : 'json';
  if (types[0] === 'string')
    return schema.format === 'date-time' ? 'timestamp' : schema.format === 'date' ? 'date' : 'text';
  const plain: readonly unknown[] = ['integer', 'number', 'boolean'];
  return plain.includes(types[0]) ? (types[0] as Kind) : 'json';
}

/** Returns the digits that `multipleOf`, `minimum` and `maximum` allow; null without all of them. */
function countDigits(schema: Schema): Digits | null {
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
function getObject(document: Schema, from: unknown, path: readonly string[]): Schema {
  let value = followReference(document, from);
  for (const step of path) {
    if (!isObject(value)) throw makeUnfit(path.join('/'));
    value = followReference(document, getOwn(value, step));
  }
  if (!isObject(value)) throw makeUnfit(path.join('/'));
  return value;
}

const referencesMax = 20;

/** Resolves a reference into the document (RFC 6901); other values stay. */
function followReference(document: Schema, from: unknown): unknown {
  let value = from;
  for (let i = 0; isObject(value) && typeof value.$ref === 'string'; i++) {
    if (i === referencesMax)
      throw new UnfitDocument('The document of the gateway has a reference that leads to itself.');
    const steps = value.$ref.split('/').slice(1);
    const named = steps.map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
    value = named.reduce<unknown>((at, step) => (isObject(at) ? getOwn(at, step) : undefined), document);
  }
  return value;
}

function makeUnfit(place: string): UnfitDocument {
  return new UnfitDocument(
    `The server at --base does not describe ${place} as a gateway does: give the address of a workspace data gateway.`,
  );
}
