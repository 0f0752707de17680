import type { DiffShape } from '../../resource/projection/audit-diff.js';

// A schema as `adopt` found it.

export class AdoptRefused extends Error {
  override readonly name = 'AdoptRefused';
}

export interface Column {
  readonly table: string;
  readonly name: string;
  /** The name is written as an identifier of SQL. */
  readonly quoted: string;
  /** The name is in small letters, and unique in the table. */
  readonly inView: string;
  /** PostgreSQL's format_type without a length; a domain has its base type, and "enum" means every enumerated type. */
  readonly type: string;
  /** An id that is no column is composed of these. */
  readonly composedOf?: readonly Column[];
  /** A domain over an enumerated type names it here, as SQL writes it. */
  readonly enumOfDomain: string | null;
  /** A varchar or char has a length; null is no bound. */
  readonly length: number | null;
  readonly notNull: boolean;
  /** A default, an identity or a generation makes the value. */
  readonly made: boolean;
  /** The column is generated, or an identity that is always generated. */
  readonly computed: boolean;
  /** Each read computes it, so no index can have it. */
  readonly isVirtual: boolean;
  /** The expression of a generated column reads it. */
  readonly madeOf: readonly string[];
  /** The column is part of a foreign key to a table of any schema. */
  readonly refers: boolean;
  /** A BEFORE UPDATE trigger of the app moves it. */
  readonly moved: boolean;
  /** A BEFORE INSERT trigger of the app fills it. */
  readonly filled: boolean;
  /** A serial has one; an identity needs no privilege on its own. */
  readonly sequence: string | null;
  readonly isArray: boolean;
  /** A composite type, or array of one, has members; any other type has null. */
  readonly members: readonly TypeMember[] | null;
  /** The operator wants it shown whatever it seems to hold. */
  readonly isWanted?: true;
  readonly comment: string | null;
  /** Its enumerated type or a CHECK allows these; empty allows any. */
  readonly labels: readonly string[];
  /** The sample holds no NULL; only forms and words of logs get into a draft. */
  readonly values: string[];
  /** A column that may mark rows has its commonest values, also NULL, of a larger sample, with the number of rows. */
  readonly counts: ValueCount[];
}

export interface ValueCount {
  readonly value: string | null;
  readonly rows: number;
}

export type TypeMember = Pick<Column, 'name' | 'type' | 'isArray' | 'values'>;

export interface ForeignKey {
  readonly table: string;
  readonly columns: readonly string[];
  readonly references: readonly string[];
  readonly cascades: boolean;
  /** The key is ON DELETE SET NULL or SET DEFAULT. */
  readonly survives: boolean;
  /** Only the name of the column says so. */
  readonly isGuess?: true;
}

export interface Index {
  /** A key that gives no order of a column, such as an expression, is null. */
  readonly columns: readonly (string | null)[];
  readonly descending: readonly boolean[];
  readonly isUnique: boolean;
  /** PostgreSQL prints it so. */
  readonly condition: string | null;
}

export interface Table {
  readonly name: string;
  readonly quoted: string;
  /** The estimate includes all partitions. */
  readonly rows: number;
  readonly comment: string | null;
  readonly columns: readonly Column[];
  readonly primaryKey: readonly string[];
  /** Other tables name its rows by this column, and none does by the primary key. */
  readonly named?: string | undefined;
  /** Another table inherits from it. */
  readonly isInherited: boolean;
  /** An empty list means no partitions. */
  readonly partitionKey: readonly string[];
  readonly foreignKeys: readonly ForeignKey[];
  readonly indexes: readonly Index[];
  /** No replica has its rows. */
  readonly isUnlogged: boolean;
  /** They run on INSERT and UPDATE. */
  readonly triggers: readonly {
    readonly name: string;
    /** The trigger has the rights of the role that writes. */
    readonly asCaller: boolean;
    /** It reads them, and they must be set. */
    readonly parameters: readonly string[];
  }[];
  readonly rowSecurity: boolean;
  /** The app's policies hide rows from the role of ADMIN_URL. */
  readonly policies: readonly {
    readonly name: string;
    readonly restricts: boolean;
    /** These roles of the app may read the table. */
    readonly apps: string | null;
  }[];
}

export function findColumn(table: Table, name: string | undefined): Column | undefined {
  return table.columns.find((column) => column.name === name);
}

export interface AuditLog {
  readonly entity: Column;
  readonly entityId: Column;
  readonly action: Column;
  readonly diff: Column;
  /** It is absent if no value of the sample has a shape that the gateway reads. */
  readonly shape?: DiffShape;
  readonly entities: readonly string[];
}

export interface Tenant {
  /** The table has a row per workspace; absent: none was found. */
  readonly root?: Table;
  /** It need not be the primary key. */
  readonly rootId?: Column;
  readonly columnIn: (table: Table) => Column | undefined;
  readonly column: string;
  readonly reason: string;
  readonly isSure: boolean;
}

/** The reference is required. */
export interface ReferenceStep {
  readonly from: Column;
  readonly table: Table;
  readonly to: Column;
  /** No foreign key says so. */
  readonly isGuess?: true;
  /** The other row refers to this one. */
  readonly isBack?: true;
}

export interface WorkspaceOf {
  /** The column is in the table of the row, or in the table of the last step. */
  readonly tenant: Column;
  /** They are empty if the table has the column. */
  readonly steps: readonly ReferenceStep[];
  /** They are worth the same. */
  readonly rivals: readonly WorkspaceOf[];
}

/** A resource is drafted of it. */
export interface Subject extends WorkspaceOf {
  readonly table: Table;
  readonly id: Column;
  readonly log?: AuditLog;
  /** An audit log has them beside the diff. */
  readonly documents: readonly Column[];
  /** They refer to records of other workspaces in a sample. */
  readonly crossings: ReadonlySet<string>;
  /** Each record shows them as lists. */
  readonly parts: readonly Table[];
  readonly shown: ShownRows;
  /** A subject has it once it has been counted. */
  readonly ledger?: Ledger;
}

/** A shown row meets the condition; a column or a table hides the others. */
export interface Hiding {
  readonly by: string;
  readonly kept: string;
  /** The statement joins the view of that table. */
  readonly isJoined?: true;
}

export interface ShownRows {
  /** It leads to the workspace through views of records above. */
  readonly way: { readonly tenant: Column | undefined; readonly steps: readonly ReferenceStep[] };
  readonly own: readonly Hiding[];
  readonly above: readonly Hiding[];
  /** Nothing tells whether a deleted record takes the row with it: such rows are shown. */
  readonly open: readonly Hiding[];
}

/** One cause hides these rows, or should hide them although they are shown. */
export interface Cause {
  readonly by: string;
  readonly rows: number;
  /** It names three of them. */
  readonly ids: readonly string[];
}

/** The view is in the database; its id is `id` of the row. */
export interface ViewId {
  readonly name: string;
  /** The alias of the table stands before the column. */
  readonly id: string;
  /** Row-level security adds them where it binds the owner of the view. */
  readonly policies: string | null;
}

/** A shown row meets the conditions: the views of the records above it, as they are today, show these. */
export interface View extends ViewId {
  /** The deletion of the record takes the row with it. */
  readonly taken: readonly Hiding[];
  readonly open: readonly Hiding[];
}

/** `shown` and the rows of `hidden` add up to `rows`. */
export interface Ledger {
  readonly table: string;
  readonly rows: number;
  /** If only some pages were counted, the whole table has about so many rows. */
  readonly sampledOf?: number;
  /** They hide rows from the role of ADMIN_URL, which are not counted. */
  readonly policies?: readonly string[];
  readonly shown: number;
  readonly hidden: readonly Cause[];
  /** Only a view that exists has them. */
  readonly shownAlthough: readonly Cause[];
  /** They are shown although the record that they refer to is not; nothing tells whether it takes them with it. */
  readonly open: readonly Cause[];
  readonly emptied: readonly Emptied[];
}

/** `show` leaves nothing, or only a part, of these values of a JSON column. */
export interface Emptied {
  readonly column: string;
  readonly values: number;
  readonly whole: number;
  readonly part: number;
}

/** They make users owners of workspaces. */
export interface Owners extends WorkspaceOf {
  /** It holds the users, their memberships, or the workspaces. */
  readonly table: Table;
  /** It is absent if the table holds the users. */
  readonly user?: Pick<ReferenceStep, 'from' | 'to'>;
  /** It leads to a table with the names of roles. */
  readonly role?: ReferenceStep & { readonly name: Column };
}

export interface Survey {
  readonly tenant: Tenant;
  readonly subjects: readonly Subject[];
  readonly tables: readonly Table[];
  readonly leftOut: readonly { readonly table: Pick<Table, 'name' | 'quoted'>; readonly reason: string }[];
  readonly users: Table | undefined;
  readonly owners: Owners | undefined;
  /** A sentence about schemas with the same tables; it can be empty. */
  readonly twins: string;
  readonly workspaces: ReadonlyMap<Table, WorkspaceOf>;
  /** These workspaces lack an owner who may have tokens made. */
  readonly ownerless?: { readonly rows: number; readonly of: number; readonly ids: readonly string[] } | undefined;
  /** Filters that need an index of their own are drafted too. */
  readonly allFilters: boolean;
}

/** A guess that can hurt is put before the operator. */
export interface Point {
  readonly text: string;
  /** About so many rows are concerned. */
  readonly rows?: number;
  /** Many tables share the decision: it is asked once for the schema, and noted in each file. */
  readonly of?: string;
  /** The first has the most rows. */
  readonly places?: readonly string[];
}

/** Many tables decide it alike; `names` are those in this one. */
export function sharePoint(text: string, { name, rows }: Pick<Table, 'name' | 'rows'>, names = ''): Point {
  return { text, rows, of: names === '' ? name : `${name} (${names})` };
}
