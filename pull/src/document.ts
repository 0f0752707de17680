/**
 * Tables of a copy, made from the OpenAPI document of the gateway by one rule:
 *
 * - A resource is a table of its name. Names are snake_case: `createdAt` is `created_at`.
 * - A member is a column. The members of a group are columns that begin with its name: `adres.plaats` is `adres_plaats`.
 * - An array of objects is a table of its own, RESOURCE_MEMBER, with the id of its record (RECORD_id) and its
 *   `position` in the record, from 1.
 * - Anything else without a single type is a column of JSON.
 */

/** A schema of the document. */
type Schema = { readonly [keyword: string]: unknown };
/** An OpenAPI document, parsed. */
export type OpenApiDocument = Schema;

/** The type of a column; each destination has its own name for it. */
export type ColumnType = 'text' | 'timestamp' | 'date' | 'integer' | 'number' | 'boolean' | 'json';

/** A column, and the members that lead to its value. */
export interface Column {
  readonly name: string;
  readonly path: readonly string[];
  readonly type: ColumnType;
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
}

/** A column whose values are ids of another resource. */
export interface Reference {
  readonly column: string;
  readonly resource: string;
}

/** A resource that can be copied. */
export interface Resource extends Table {
  readonly parts: readonly PartTable[];
  readonly references: readonly Reference[];
  /** Records of a page at most. */
  readonly perPageMax: number;
}

/** Columns of every table of records beside its members: the version that the gateway gave, and the hash of what was stored. */
export const versionColumn = 'sync_version';
export const hashColumn = 'sync_hash';

const own = (value: object, name: string): unknown =>
  Object.hasOwn(value, name) ? (value as Schema)[name] : undefined;
const isObject = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The document does not describe resources as a gateway does. */
export class UnfitDocument extends Error {}

/** The resources that can be synced, those that refer to others before those they refer to: so no reference dangles after a run. */
export function resourcesOf(document: OpenApiDocument): Resource[] {
  const paths = Object.keys(objectAt(document, document, ['paths']));
  const names = paths.flatMap((path) => /^\/sync\/([\w-]+)$/.exec(path)?.[1] ?? []);
  const resources = names.map((name) => resourceOf(document, name));
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

function resourceOf(document: Schema, name: string): Resource {
  const operation = objectAt(document, document, ['paths', `/sync/${name}`, 'get']);
  const page = objectAt(document, operation, ['responses', '200', 'content', 'application/json', 'schema']);
  const record = objectAt(document, page, ['properties', 'data', 'items']);
  const members = Object.entries(objectAt(document, record, ['properties']));
  const taken = new Set([versionColumn, hashColumn]);
  const columns: Column[] = [];
  const parts: PartTable[] = [];
  const references: Reference[] = [];
  const recordName = snake(String(record['x-record'] ?? name));
  const add = (path: readonly string[], given: unknown): void => {
    const schema = follow(document, given);
    if (!isObject(schema) || path.length > 4) throw unfit(name);
    const elements = path.length === 1 ? elementsOf(document, schema) : null;
    const inner = typesOf(schema).join() === 'object' ? own(schema, 'properties') : undefined;
    const description = String(schema.description ?? '');
    if (elements !== null) parts.push(partOf(document, name, recordName, path[0] as string, elements, description));
    else if (isObject(inner)) for (const [member, each] of Object.entries(inner)) add([...path, member], each);
    else {
      const column = { name: free(path.map(snake).join('_'), taken), path, type: typeOf(schema), comment: description };
      columns.push(path.join() === 'id' ? { ...column, type: 'text' } : column);
      const reference = own(schema, 'x-references');
      if (typeof reference === 'string') references.push({ column: column.name, resource: reference });
    }
  };
  for (const [member, schema] of members) if (member !== 'syncVersion') add([member], schema);
  if (!columns.some(({ name }) => name === 'id')) throw unfit(name);
  const comment = String(record.description ?? '');
  return { name: snake(name), comment, columns, parts, references, perPageMax: perPageMaxOf(document, operation) };
}

function partOf(
  document: Schema,
  resource: string,
  recordName: string,
  member: string,
  elements: Schema,
  comment: string,
): PartTable {
  const owner = `${recordName}_id`;
  const taken = new Set([owner, 'position']);
  const columns = Object.entries(objectAt(document, elements, ['properties'])).map(([name, given]): Column => {
    const schema = follow(document, given);
    if (!isObject(schema)) throw unfit(resource);
    return {
      name: free(snake(name), taken),
      path: [name],
      type: typeOf(schema),
      comment: String(schema.description ?? ''),
    };
  });
  return { name: `${snake(resource)}_${snake(member)}`, comment, member, owner, columns };
}

/** The schema of the elements, if they are objects with known members. */
function elementsOf(document: Schema, schema: Schema): Schema | null {
  if (!typesOf(schema).includes('array')) return null;
  const items = follow(document, own(schema, 'items'));
  return isObject(items) && isObject(own(items, 'properties')) ? items : null;
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

function typeOf(schema: Schema): ColumnType {
  const types = typesOf(schema);
  if (types.length !== 1) return 'json';
  if (types[0] === 'string')
    return schema.format === 'date-time' ? 'timestamp' : schema.format === 'date' ? 'date' : 'text';
  const plain: readonly unknown[] = ['integer', 'number', 'boolean'];
  return plain.includes(types[0]) ? (types[0] as ColumnType) : 'json';
}

/** `createdAt` → `created_at`. */
function snake(name: string): string {
  return name
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replace(/[^A-Za-z0-9_]/g, '_')
    .toLowerCase();
}

/** The name, with a number behind it where another member has it. */
function free(name: string, taken: Set<string>): string {
  let found = name;
  for (let i = 2; taken.has(found); i++) found = `${name}_${i}`;
  taken.add(found);
  return found;
}

/** The object at a path; references into the document are followed. */
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

/** The target of a reference into the document (RFC 6901), or the value itself. */
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
