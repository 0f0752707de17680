import type { DiffShape, DiffWords } from '../projection/audit-diff.js';
import { type Codec, codecColumns } from '../projection/codec.js';
import type { FieldType, IdType, JsonSchema } from './field-types.js';
import type { Filter } from './filter-kinds.js';

// A resource as its definition describes it: config/resource.schema.json explains the keys that have no comment here.

/** How a field may be written. Only fields with `write` are in the write scope. */
export interface WriteRule {
  readonly required?: boolean;
  /** The view in which a record of the same workspace must have this id; the loader sets it. */
  readonly references?: string;
  /** Default: the column. */
  readonly auditName?: string;
  readonly schema?: JsonSchema;
}

/** A value within JSON that a view makes. */
export interface Part {
  /** Its name in that JSON; absent: as in the API. */
  readonly column?: string;
  readonly type: FieldType;
  readonly nullable?: boolean;
  readonly description?: string;
  readonly schema?: JsonSchema;
  readonly example?: unknown;
  readonly references?: string;
  /** Of a list: what each element is. */
  readonly items?: Part;
  /** Of an object. */
  readonly fields?: Readonly<Record<string, Part>>;
  /** Of free JSON: pointers of the members that are shown. */
  readonly show?: readonly string[];
}

/** One member of a record, filled from one column of the view. */
export interface Field extends Part {
  readonly column: string;
  readonly pointer?: string;
  readonly description: string;
  /** Name of the codec of the stored value; absent: it is not encoded. */
  readonly codec?: string;
  readonly clean?: 'text-images' | 'json-images' | 'audit-diff';
  readonly diff?: DiffShape;
  readonly words?: DiffWords;
  readonly write?: WriteRule;
}

/** An object member made of several columns, such as an address. */
export interface Group {
  readonly description: string;
  readonly group: Readonly<Record<string, Field>>;
}

/** The direction of a list's total order. */
export type Direction = 'asc' | 'desc';

/** A column of the total order; a cursor carries its text form as PostgreSQL prints it. */
export interface OrderColumn {
  readonly column: string;
  readonly type: FieldType;
}

/** How the gateway writes to the app's audit log. */
export interface AuditRule {
  readonly created: string;
  readonly changed: string;
  readonly actorType: string;
  readonly view?: string;
  readonly columns: AuditColumns;
}

/** Columns of the view that entries of the audit log are inserted through, beside workspace_id. */
export type AuditColumns = Readonly<
  Record<'entity' | 'entityId' | 'action' | 'actorType' | 'actorId' | 'changes', string>
>;

/** An audit rule with the shape of the diff, which the definition of the audit log has. */
export interface LoggedAs extends AuditRule {
  readonly view: string;
  /** The operator's view below it. */
  readonly records: string;
  readonly diff: DiffShape;
}

/** How a PATCH moves a column that no trigger of the app moves. */
export type Move = 'increment' | 'now';

/** How POST and PATCH change a resource. */
export interface ResourceWrite {
  /** The view they go through, on the primary. */
  readonly view: string;
  /** The operator's view below it. */
  readonly records: string;
  readonly ids: 'gateway' | 'database';
  readonly onChange: Readonly<Record<string, Move>>;
  readonly audit: LoggedAs | false;
}

/** How a resource is synced. */
export interface ResourceSync {
  /** Rows of other tables that a record shows, by name, in views of the schema gateway. */
  readonly parts: Readonly<Record<string, { readonly view: string; readonly idType: IdType }>>;
  readonly appendOnly?: { readonly horizonHours: number };
}

/** Validators, serializers, SQL, JSON Schema and OpenAPI are compiled from it at start-up. */
export interface Resource {
  /** Path of its definition, for messages. */
  readonly file: string;
  readonly name: string;
  readonly record: string;
  readonly description: string;
  /** View of the schema gateway (walls.ts) over the operator's view of the same name in the schema records. */
  readonly view: string;
  readonly table: string;
  /** Those of config/codecs.json, and the definition's own. */
  readonly codecs: Readonly<Record<string, Codec>>;
  readonly idType: IdType;
  readonly fields: Readonly<Record<string, Field | Group>>;
  readonly order: readonly OrderColumn[];
  /** Those of the definition, and `ids` of every list. */
  readonly filters: Readonly<Record<string, Filter>>;
  readonly detail: boolean;
  readonly version?: string;
  readonly write?: ResourceWrite;
  readonly sync?: ResourceSync;
  /** Given for the rows of a sync pass, which have a version as their last column and member: the seed of the versions. */
  readonly versionSeed?: bigint;
  readonly auditEntity?: string;
  readonly auditFields?: readonly string[];
  readonly auditFieldsOfOthers?: Readonly<Record<string, readonly string[]>>;
  readonly auditNames?: readonly string[];
}

/** A file of RESOURCES_DIR that fits config/resource.schema.json, defaults filled in. */
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

/** A leaf of the record: the path of its JSON members and its field. */
export interface Leaf {
  readonly path: readonly string[];
  readonly field: Field;
}

/** The leaves in the order of the definition, which is the order of columns in SQL and of members in JSON. */
export function leaves({ fields }: Pick<Resource, 'fields'>): Leaf[] {
  return Object.entries(fields).flatMap(([name, field]) =>
    'group' in field
      ? Object.entries(field.group).map(([inner, leaf]) => ({ path: [name, inner], field: leaf }))
      : [{ path: [name], field }],
  );
}

/** Column of the operator's views with sync, and of those of parts: the xmin of the app's row, of type xid. */
export const xidColumn = 'row_xid';

/** Column of the generated views with the version of a row and its parts, a bigint. */
export const versionColumn = 'sync_version';

/**
 * The columns of a row, in the order of SQL: those of the members, of which several can share one, of the order, that codecs read, and that
 * the redaction of an audit diff goes by. The members are all, or those that a client asked for.
 */
export function columnsOf(resource: Resource, members: readonly Leaf[] = leaves(resource)): string[] {
  const shown = members.map(({ field }) => field.column);
  const entity = members.some(({ field }) => field.clean === 'audit-diff') ? [entityColumn(resource)] : [];
  const read = codecsInUse(resource, members).flatMap(codecColumns);
  const version = resource.versionSeed === undefined ? [] : [versionColumn];
  return [...new Set([...shown, ...resource.order.map(({ column }) => column), ...entity, ...read]), ...version];
}

/** Column with the entity of an entry of the audit log. */
export function entityColumn({ fields }: Resource): string {
  return (fields.entity as Field).column;
}

/** Whether CODEC_MODULE decodes values of the resource. */
export function usesCodecModule(resource: Resource): boolean {
  return codecsInUse(resource).some(({ cipher }) => cipher === 'module');
}

/** The codecs of the members, and those of their older values. */
export function codecsInUse(resource: Resource, members: readonly Leaf[] = leaves(resource)): Codec[] {
  const used = new Set(members.flatMap(({ field }) => field.codec ?? []));
  return [...used].flatMap((name) => {
    const codec = resource.codecs[name] as Codec;
    return codec.older ? [codec, codec.older] : [codec];
  });
}

/** "/fields/adres/group/straat": RFC 6901 pointer of a field in its file, by the path of its member. */
export function placeOf([first, second]: readonly string[]): string {
  const group = second === undefined ? '' : `/group${pointer([second])}`;
  return `/fields${pointer([first as string])}${group}`;
}

/** "/adres/straat": RFC 6901 pointer of a leaf. */
export function pointer(path: readonly string[]): string {
  return path.map((name) => `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}
