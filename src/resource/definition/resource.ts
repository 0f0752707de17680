import { toPointer } from '../../base/members.js';
import { shortenName } from '../../postgres/statement.js';
import type { DiffMemberNames, DiffShape } from '../projection/audit-diff.js';
import { type Codec, listCodecColumns } from '../projection/codec.js';
import type { FieldType, IdType, JsonSchema } from './field-types.js';
import type { Filter } from './filter-kinds.js';

// config/resource.schema.json explains the keys that have no comment here.

/** Only fields with `write` are in the write scope. */
export interface WriteRule {
  readonly required?: boolean;
  /** View of the record that must have this id; the loader sets it. */
  readonly references?: string;
  readonly auditName?: string;
  readonly schema?: JsonSchema;
}

export interface JsonShape {
  /** Absent: the name in the API. */
  readonly column?: string;
  readonly type: FieldType;
  readonly nullable?: boolean;
  readonly description?: string;
  readonly values?: readonly string[];
  readonly schema?: JsonSchema;
  readonly example?: unknown;
  readonly references?: string;
  readonly items?: JsonShape;
  readonly fields?: Readonly<Record<string, JsonShape>>;
  /** Pointers to the shown members of free JSON. */
  readonly show?: readonly string[];
  /** The field is counted in the register of reads, and shielded in the log. */
  readonly personal?: true;
}

export interface Field extends JsonShape {
  readonly column: string;
  readonly pointer?: string;
  readonly description: string;
  /** Absent: the field is not encoded. */
  readonly codec?: string;
  readonly clean?: 'audit-diff';
  /** The log shows the old and the new text. */
  readonly log?: 'text';
  readonly diff?: DiffShape;
  readonly words?: DiffMemberNames;
  readonly write?: WriteRule;
}

/** Begins a description of `adopt` where the operator must decide. */
export const openPrefix = 'OPEN: ';

export interface Group {
  readonly description: string;
  readonly group: Readonly<Record<string, Field>>;
}

export type AuditFieldTypes = Readonly<Record<string, FieldType>>;

export type Direction = 'asc' | 'desc';

export interface OrderColumn {
  readonly column: string;
  readonly type: FieldType;
}

/** Texts of the order columns of a row as PostgreSQL prints them, with microseconds; a cursor carries them. */
export type OrderKey = readonly string[];

export interface AuditRule {
  readonly created: string;
  readonly changed: string;
  readonly actorType: string;
  readonly view?: string;
  readonly columns: AuditColumns;
}

export type AuditColumns = Readonly<
  Record<'entity' | 'entityId' | 'action' | 'actorType' | 'actorId' | 'changes', string>
>;

/** The diff comes from the definition of the audit log. */
export interface ResourceAudit extends AuditRule {
  readonly view: string;
  readonly records: string;
  readonly diff: DiffShape;
}

/** Change of the column by the gateway, because no trigger of the app moves it. */
export type Move = 'increment' | 'now';

export interface ResourceWrite {
  readonly view: string;
  /** The operator's view below the write view. */
  readonly records: string;
  readonly ids: 'gateway' | 'database';
  readonly creates: boolean;
  readonly onCreate: Readonly<Record<string, 'owner'>>;
  readonly onChange: Readonly<Record<string, Move>>;
  readonly audit: ResourceAudit | false;
}

export interface ResourceSync {
  /** Rows of other tables that a record shows. */
  readonly parts: Readonly<Record<string, { readonly view: string; readonly idType: IdType }>>;
  readonly appendOnly?: { readonly horizonHours: number };
}

/** The source from which validators, serializers, SQL, JSON Schema and OpenAPI are compiled at start-up. */
export interface Resource {
  readonly file: string;
  readonly name: string;
  readonly record: string;
  readonly description: string;
  /** Reads the operator's view of the same name in the schema records. */
  readonly view: string;
  readonly table: string;
  /** Includes the codecs of config/codecs.json. */
  readonly codecs: Readonly<Record<string, Codec>>;
  readonly idType: IdType;
  readonly fields: Readonly<Record<string, Field | Group>>;
  readonly order: readonly OrderColumn[];
  /** Includes `ids`, which every list has. */
  readonly filters: Readonly<Record<string, Filter>>;
  readonly detail: boolean;
  readonly version?: string;
  readonly write?: ResourceWrite;
  readonly sync?: ResourceSync;
  /** Seed of the versions of a sync pass, which are the last column. */
  readonly versionSeed?: bigint;
  readonly auditEntity?: string;
  readonly auditFields?: AuditFieldTypes;
  readonly auditFieldsOfOthers?: Readonly<Record<string, AuditFieldTypes>>;
  readonly auditNames?: readonly string[];
}

/** A file that matches config/resource.schema.json, defaults filled in. */
export interface DefinitionFile
  extends Omit<Resource, 'file' | 'table' | 'idType' | 'order' | 'filters' | 'write' | 'versionSeed'> {
  readonly table?: string;
  readonly order: readonly string[];
  readonly filters: Readonly<Record<string, Omit<Filter, 'type'>>>;
  readonly write?: Omit<ResourceWrite, 'audit' | 'view' | 'records'> & {
    readonly view?: string;
    readonly audit: AuditRule | false;
  };
}

export interface Leaf {
  readonly path: readonly string[];
  readonly field: Field;
}

/** Lists fields in the order of columns in SQL and of members in JSON. */
export function listLeaves({ fields }: Pick<Resource, 'fields'>): Leaf[] {
  return Object.entries(fields).flatMap(([name, field]) =>
    'group' in field
      ? Object.entries(field.group).map(([inner, leaf]) => ({ path: [name, inner], field: leaf }))
      : [{ path: [name], field }],
  );
}

/** Column with the xmin of the app's row, in views with sync and of parts. */
export const rowXid = 'row_xid';
/** Column of generated views with the version, a bigint, of a row and its parts. */
export const versionColumn = 'sync_version';

/** Lists columns in the order of SQL: of the members, of the order, of codecs, and the entity for the redaction of a diff. */
export function getColumns(resource: Resource, members: readonly Leaf[] = listLeaves(resource)): string[] {
  const shownColumns = members.map(({ field }) => field.column);
  const entity = members.some(({ field }) => field.clean === 'audit-diff') ? [getEntityColumn(resource)] : [];
  const readColumns = listCodecsInUse(resource, members).flatMap(listCodecColumns);
  const version = resource.versionSeed === undefined ? [] : [versionColumn];
  return [
    ...new Set([...shownColumns, ...resource.order.map(({ column }) => column), ...entity, ...readColumns]),
    ...version,
  ];
}

export function getEntityColumn({ fields }: Resource): string {
  return (fields.entity as Field).column;
}

export function usesCodecModule(resource: Resource): boolean {
  return listCodecsInUse(resource).some(({ cipher }) => cipher === 'module');
}

export function listCodecsInUse(resource: Resource, members: readonly Leaf[] = listLeaves(resource)): Codec[] {
  const usedCodecs = new Set(members.flatMap(({ field }) => field.codec ?? []));
  return [...usedCodecs].flatMap((name) => {
    const codec = resource.codecs[name] as Codec;
    return codec.older ? [codec, codec.older] : [codec];
  });
}

/** Turns "records.klanten" into "gateway.klanten". */
export function nameWalled(records: string, suffix = ''): string {
  return `gateway.${shortenName(`${records.slice(records.indexOf('.') + 1)}${suffix}`, 63, 22)}`;
}

/** Turns "records.installaties", or "records.installaties_write", a view for writes alone, into "gateway.installaties_write". */
export function nameWalledWrite(records: string): string {
  return nameWalled(records.replace(/_write$/, ''), '_write');
}

/** Turns "gateway.klanten" into "records.klanten". */
export function nameRecords(view: string): string {
  return view.replace(/^gateway\./, 'records.');
}

/** Points to a field in its file (RFC 6901): "/fields/adres/group/straat". */
export function getPlace([first, second]: readonly string[]): string {
  const group = second === undefined ? '' : `/group${toPointer([second])}`;
  return `/fields${toPointer([first as string])}${group}`;
}
