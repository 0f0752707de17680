import { hash, type KeyObject } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Observe } from '../base/events.js';
import { readText } from '../base/paths.js';
import { fieldTypes, getType } from './definition/field-types.js';
import { listFilterRanges } from './definition/filter-kinds.js';
import { canFail, isVisibleToWriteScope } from './definition/record-schema.js';
import {
  type AuditFieldTypes,
  type Field,
  type Group,
  getColumns,
  type JsonShape,
  listCodecsInUse,
  listLeaves,
  type Resource,
  type ResourceWrite,
} from './definition/resource.js';
import { compileBodyChecks } from './definition/write-validators.js';
import { loadCodecModule } from './projection/codec.js';
import { type Keyring, parseKeyring } from './projection/keyring.js';
import {
  compileRedaction,
  type LoggedForm,
  type ProjectionOptions,
  type Redaction,
  type RedactionRules,
} from './projection/redact.js';
import { compileSerializer, type RowSerializer } from './serializer/row-serializer.js';
import { compileStatements, type FieldSelection, type ResourceStatements } from './statements/statements.js';
import { compileSyncStatements, type SyncStatements } from './statements/sync-statements.js';
import { compileWriteStatements } from './statements/write-statements.js';

/** Serves reads of rows; a sync pass has another one for rows with versions. */
export interface CompiledRows {
  readonly resource: Resource;
  readonly statements: ResourceStatements;
  readonly serializer: RowSerializer;
  /** Selects the members of these names, and `id`; null: all members were named. */
  readonly select: (fields: ReadonlySet<string>) => CompiledSelection | null;
  readonly filterRanges: ReturnType<typeof listFilterRanges>;
}

/** Compiled from the definition at start-up; a request only picks from it. */
export interface CompiledResource extends CompiledRows {
  /** SHA-256 of all that decides how a stored row is shown, except the data keys. */
  readonly projectionHash: string;
  readonly sync: CompiledSync | null;
  readonly tag: TagColumns | null;
  readonly write: CompiledWrite | null;
}

/** Keeps the serializer that is compiled when a client first asks for the selection. */
export interface CompiledSelection extends FieldSelection {
  readonly serializer: RowSerializer;
}

const selectionsKept = 32;

export interface CompiledSync {
  readonly statements: SyncStatements;
  /** Selects and writes records with their version. */
  readonly rows: CompiledRows;
}

/** Rows have the columns of a read, in the same order. */
export type CompiledWrite = ReturnType<typeof compileWrite>;
export type WritableMember = CompiledWrite['members'][number];

/** Compiles the resources for requests. Throws an error when the codec module cannot be loaded. */
export async function compileResources(
  { codecModule, decodeLegacy }: { readonly codecModule: string; readonly decodeLegacy: ProjectionOptions['legacy'] },
  resources: readonly Resource[],
  keyring: Keyring,
  observe: Observe,
): Promise<CompiledResource[]> {
  const projection: ProjectionOptions = {
    keyring,
    legacy: decodeLegacy,
    redaction: makeRedaction(resources),
    decode: await loadCodecModule(codecModule),
    moduleText: codecModule === '' ? undefined : readText(codecModule),
  };
  return resources.map((resource) => compileResource(resource, projection, observe, resources));
}

/** Compiles a definition that loadResources has accepted, one of `all`. */
export function compileResource(
  resource: Resource,
  options: ProjectionOptions,
  observe: Observe,
  all: readonly Resource[] = [resource],
): CompiledResource {
  const tag = findTagColumns(resource);
  const rows = compileShownRows(resource, options, observe);
  const { write } = resource;
  // 64 bits: versions differ when the gateway shows the same row otherwise
  const versioned = { ...resource, versionSeed: BigInt(`0x${hashProjection(resource, options, all).slice(0, 16)}`) };
  const statements = compileSyncStatements(versioned);
  return {
    ...rows,
    projectionHash: hashProjection(resource, { ...options, keyring: parseKeyring('{}') }, all),
    sync: statements && { statements, rows: compileShownRows(versioned, options, observe) },
    tag,
    write:
      write && tag
        ? compileWrite({ ...resource, write }, options, observe, { serializer: rows.serializer, tag })
        : null,
  };
}

export type TagColumns = NonNullable<ReturnType<typeof findTagColumns>>;

/** Finds the columns that make the tag of a record; null without a version. */
function findTagColumns(resource: Resource) {
  if (resource.version === undefined) return null;
  const columns = getColumns(resource);
  const documents = listLeaves(resource).filter(({ field }) => field.type === 'json');
  return {
    versionAt: columns.indexOf(resource.version),
    /** Columns with JSON can show rows of other tables, which change without the version. */
    documentsAt: [...new Set(documents.map(({ field }) => columns.indexOf(field.column)))],
  };
}

function compileShownRows(resource: Resource, options: ProjectionOptions, observe: Observe): CompiledRows {
  return {
    resource,
    statements: compileStatements(resource),
    serializer: compileSerializer(resource, options, observe),
    select: compileSelections(resource, options, observe),
    filterRanges: listFilterRanges(resource.filters),
  };
}

function compileSelections(resource: Resource, options: ProjectionOptions, observe: Observe): CompiledRows['select'] {
  const selections = new LRUCache<string, CompiledSelection>({ max: selectionsKept });
  const all = listLeaves(resource);
  return (asked) => {
    const members = all.filter(({ field, path }) => field.column === 'id' || asked.has(path[0] as string));
    if (members.length === all.length) return null;
    const fields = [...new Set(members.map(({ path }) => path[0] as string))];
    const columns = getColumns(resource, members);
    const name = JSON.stringify(fields);
    const selection = selections.get(name) ?? {
      fields,
      columns,
      serializer: compileSerializer(resource, options, observe, members, columns),
    };
    selections.set(name, selection);
    return selection;
  };
}

/** Raise the number when a change of the code shows a stored row otherwise: all copies then read it again. */
const projectionRevision = 3;

/** Hashes all that decides how a row is shown: fields, codecs, keys, CODEC_MODULE, and for the log the rules by `all`. */
function hashProjection(resource: Resource, options: ProjectionOptions, all: readonly Resource[]): string {
  const { keyring, legacy, moduleText = '' } = options;
  const keys = keyring.ids.map((id) => [id, hash('sha256', (keyring.get(id) as KeyObject).export())]).sort();
  const describeShown = ({ fields, table, ...audit }: Resource): unknown => {
    const { auditEntity, auditFields, auditFieldsOfOthers, auditNames } = audit;
    return [dropProse(fields), table, [auditEntity, auditFields, auditFieldsOfOthers, auditNames]];
  };
  const isLog = JSON.stringify(resource.fields).includes('"audit-diff"');
  const inputs = [projectionRevision, keys, legacy, moduleText, listCodecsInUse(resource), describeShown(resource)];
  return hash('sha256', JSON.stringify([...inputs, isLog ? all.map(describeShown) : []]));
}

/** Leaves out the descriptions and examples of members, by their place: a member can be named `example`, too. */
function dropProse(members: Readonly<Record<string, Field | Group | JsonShape>>): object {
  const dropIn = ({ description, example, ...member }: Partial<Field & Group>): object => ({
    ...member,
    ...(member.group && { group: dropProse(member.group) }),
    ...(member.fields && { fields: dropProse(member.fields) }),
    ...(member.items && { items: dropIn(member.items) }),
    ...(member.schema && { schema: dropDescriptions(member.schema) }),
    ...(member.write && { write: dropDescriptions(member.write) }),
  });
  return Object.fromEntries(Object.entries(members).map(([name, member]) => [name, dropIn(member)]));
}

/** Leaves out the descriptions within a schema, which decides nothing that is shown but the states of a text. */
function dropDescriptions(schema: object): object {
  const keep = (key: string, value: unknown) =>
    key === 'description' && typeof value === 'string' ? undefined : value;
  return JSON.parse(JSON.stringify(schema, keep));
}

function compileWrite(
  resource: Resource & { readonly write: ResourceWrite },
  options: ProjectionOptions,
  observe: Observe,
  { serializer, tag }: { readonly serializer: RowSerializer; readonly tag: TagColumns },
) {
  const { audit, creates } = resource.write;
  const columns = getColumns(resource);
  const all = listLeaves(resource);
  const shownToWriters = all.filter(({ field }) => isVisibleToWriteScope(resource, field));
  return {
    resource: resource.name,
    creates,
    ...compileBodyChecks(resource),
    statements: compileWriteStatements(resource),
    /** Form of writes in the app's audit log; false: the app logs them itself. */
    audit: audit && { ...audit, entity: resource.auditEntity as string },
    idType: resource.idType,
    idAt: columns.indexOf('id'),
    tag,
    /** A writable member has a column, its position in a row, and a name in the app's audit log. */
    members: all.flatMap(({ field: { column, type, write }, path: [name = ''] }) =>
      write ? [{ name, column, at: columns.indexOf(column), type, auditName: write.auditName ?? column }] : [],
    ),
    fullRecord: serializer,
    /** Serializes the record for tokens without the read scope: writable members, id, version and timestamps. */
    writeScopeRecord: compileSerializer(resource, options, observe, shownToWriters),
  };
}

export function makeRedaction(resources: readonly Resource[]): Redaction {
  const names = resources.flatMap((resource) => [...listFieldNames(resource), ...(resource.auditNames ?? [])]);
  return compileRedaction(makeRedactionRules(resources), names);
}

/** Lists the names that the log can give to fields: of the view, the API and the log, and as paths. */
function listFieldNames(resource: Resource): string[] {
  return listLeaves(resource).flatMap(({ field, path }) => [
    ...[field.column, ...path, path.join('.'), path.join('/')],
    ...(field.write?.auditName === undefined ? [] : [field.write.auditName]),
  ]);
}

/** Makes a rule per resource: the fields that it lists, and those neither encoded, JSON nor personal, by each of their names. */
function makeRedactionRules(resources: readonly Resource[]): RedactionRules {
  const rules: Record<string, ReadonlyMap<string, LoggedForm>> = Object.create(null); // an entity of the app can have any name
  const chooseForm = (type: Field['type']) => chooseLoggedForm(type === 'text' ? { type, log: 'text' } : { type });
  const listForms = (types: AuditFieldTypes = {}): [string, LoggedForm][] =>
    Object.entries(types).map(([name, type]) => [name, chooseForm(type)]);
  for (const { auditFieldsOfOthers = {} } of resources)
    for (const [entity, types] of Object.entries(auditFieldsOfOthers)) rules[entity] = new Map(listForms(types));
  for (const resource of resources) {
    if (resource.auditEntity === undefined) continue;
    const listedFields = listLeaves(resource)
      .filter(({ field, path }) => !canFail(field) && !field.personal && path.length === 1)
      .flatMap(({ field, path }) =>
        [field.column, path[0] as string, field.write?.auditName ?? []]
          .flat()
          .map((name) => [name, chooseLoggedForm(field)] as const),
      );
    rules[resource.auditEntity] = new Map([...listedFields, ...listForms(resource.auditFields)]);
  }
  return rules;
}

/** Shows nothing of a text whose definition says no more. */
function chooseLoggedForm(field: Pick<Field, 'type' | 'values' | 'schema' | 'log'>): LoggedForm {
  const { type, values, schema, log } = field;
  if (log === 'text') return fieldTypes.enum.isLogged;
  if (type !== 'text') return getType(type).isLogged ?? (() => false);
  const states = new Set([values ?? [], schema?.enum ?? []].flat().map((state) => JSON.stringify(state)));
  return (json) => states.has(json);
}
