import type { CodecName } from '../projection/codecs.js';

/** How PostgreSQL's text form of a column becomes JSON. `check` holds it against the view's column type. */
export type FieldType = 'uuid' | 'bigint' | 'text' | 'integer' | 'number' | 'boolean' | 'date' | 'timestamp' | 'json';

/** JSON Schema 2020-12, as it appears in OpenAPI 3.1. */
export type JsonSchema = { readonly [keyword: string]: unknown };

/** Who may write a field, and what is accepted. Only fields with `write` are in the write scope. */
export interface WriteRule {
  /** Must be given on POST, and may not be null. */
  readonly required?: boolean;
  /** View in which a record of the same workspace must have this id. */
  readonly references?: string;
  /** What the app's audit log calls the field, where that is not its column in the view. */
  readonly auditName?: string;
  /** Keywords beside the type: lengths, bounds. */
  readonly schema?: JsonSchema;
}

/** One member of a record, filled from one column of the view. */
export interface Field {
  readonly column: string;
  readonly type: FieldType;
  readonly nullable?: boolean;
  readonly description: string;
  /** How the stored value is encoded; absent means plain. */
  readonly codec?: CodecName;
  /** What is taken out before it leaves: images in a text or in a jsonb value, or what an audit diff may not show. */
  readonly clean?: 'text-images' | 'json-images' | 'audit-diff';
  /** Shape of a `json` field. */
  readonly schema?: JsonSchema;
  readonly example?: unknown;
  readonly write?: WriteRule;
}

/** An object member made of several columns, such as an address. */
export interface Group {
  readonly description: string;
  readonly group: Readonly<Record<string, Field>>;
}

/** How a query parameter restricts the rows; the SQL of each stands in compile/statements. */
export type FilterKind = 'equals' | 'dateFrom' | 'dateTo' | 'dayFrom' | 'dayTo';

export interface Filter {
  readonly column: string;
  readonly kind: FilterKind;
  /** For `equals`: the column's type; a value that cannot be of it matches nothing. */
  readonly type: 'uuid' | 'text';
  readonly description: string;
}

/** A column of the total order; its text form as PostgreSQL prints it is what a cursor carries. */
export interface OrderColumn {
  readonly column: string;
  readonly type: 'uuid' | 'bigint' | 'date' | 'timestamp';
}

/**
 * All the gateway knows of a resource. Validators, row writers, SQL, JSON Schema and OpenAPI are compiled from it at
 * start-up; a definition that contradicts itself refuses to boot.
 */
export interface Resource {
  /** Path segment and scope suffix: /api/v1/klanten, read:klanten. */
  readonly name: string;
  /** Name of one record in OpenAPI. */
  readonly record: string;
  readonly description: string;
  /** View in the database, with a workspace_id column beside those of the fields. */
  readonly view: string;
  /** The app's table that encrypted values are bound to (AAD). */
  readonly table: string;
  readonly fields: Readonly<Record<string, Field | Group>>;
  readonly order: readonly [OrderColumn, OrderColumn];
  readonly filters: Readonly<Record<string, Filter>>;
  /** Whether GET /name/{id} exists. */
  readonly detail: boolean;
  /** Column the ETag of a detail is derived from. */
  readonly version?: string;
  /** The view that POST and PATCH go through, on the primary. */
  readonly writeView?: string;
  /** What the app's audit log calls such an entity; needed with writeView. */
  readonly auditEntity?: string;
  /** Fields of the audit log that a reader of it may see beside the resource's own columns. */
  readonly auditFields?: readonly string[];
  /** The same for entities of the audit log that are no resource, by name. */
  readonly auditFieldsOfOthers?: Readonly<Record<string, readonly string[]>>;
}

/** A leaf of the record: the path of its JSON members and its field. */
export interface Leaf {
  readonly path: readonly string[];
  readonly field: Field;
}

/** The leaves in the order of the definition, which is the order of columns in SQL and of members in JSON. */
export function leaves(resource: Resource): Leaf[] {
  return Object.entries(resource.fields).flatMap(([name, field]) =>
    'group' in field
      ? Object.entries(field.group).map(([inner, leaf]) => ({ path: [name, inner], field: leaf }))
      : [{ path: [name], field }],
  );
}

/** "/adres/straat": RFC 6901 pointer of a leaf. */
export function pointer(path: readonly string[]): string {
  return path.map((name) => `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}
