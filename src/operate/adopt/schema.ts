import type { DiffShape } from '../../resource/projection/audit-diff.js';

// A schema as `adopt` found it.

export class AdoptRefused extends Error {
  override readonly name = 'AdoptRefused';
}

export interface Column {
  readonly table: string;
  readonly name: string;
  /** As SQL writes it. */
  readonly quoted: string;
  /** In small letters, unique in the table. */
  readonly inView: string;
  /** format_type without a length; of a domain its base type; "enum" of every enumerated type. */
  readonly type: string;
  /** Of an id that is no column of its own. */
  readonly composedOf?: readonly Column[];
  /** The enumerated type below a domain, as SQL writes it. */
  readonly enumOfDomain: string | null;
  /** Of a varchar or char; null: no bound. */
  readonly length: number | null;
  readonly notNull: boolean;
  /** By a default, an identity or a generated column. */
  readonly made: boolean;
  /** Generated, or an identity that is always generated. */
  readonly computed: boolean;
  /** Computed by each read, so that no index can have it. */
  readonly isVirtual: boolean;
  /** Read by the expression of a generated column. */
  readonly madeOf: readonly string[];
  /** Part of a foreign key, to a table of any schema. */
  readonly refers: boolean;
  /** By a BEFORE UPDATE trigger of the app. */
  readonly moved: boolean;
  /** Of a serial; an identity needs no privilege on its own. */
  readonly sequence: string | null;
  readonly isArray: boolean;
  /** Of a composite type, also of each item of an array; null of any other type. */
  readonly members: readonly TypeMember[] | null;
  /** Shown whatever it seems to hold. */
  readonly isWanted?: true;
  readonly comment: string | null;
  /** Of its enumerated type, or those that a CHECK allows; empty: any. */
  readonly labels: readonly string[];
  /** A sample, not NULL; only forms and words of logs get into a draft. */
  readonly values: string[];
  /** Of a column that may mark rows: its commonest values, also NULL, in a larger sample, with the number of rows. */
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
  /** ON DELETE CASCADE. */
  readonly cascades: boolean;
  /** ON DELETE SET NULL or SET DEFAULT. */
  readonly survives: boolean;
  /** Only the name of the column says so. */
  readonly isGuess?: true;
}

export interface Index {
  /** Null for a key that gives no order of a column, such as an expression. */
  readonly columns: readonly (string | null)[];
  readonly descending: readonly boolean[];
  readonly isUnique: boolean;
  /** As PostgreSQL prints it. */
  readonly condition: string | null;
}

export interface Table {
  readonly name: string;
  readonly quoted: string;
  /** An estimate, of all partitions. */
  readonly rows: number;
  readonly comment: string | null;
  readonly columns: readonly Column[];
  readonly primaryKey: readonly string[];
  /** A column by which other tables name its rows, where none does by the primary key. */
  readonly named?: string | undefined;
  /** Another table inherits from it. */
  readonly isInherited: boolean;
  /** Empty: no partitions. */
  readonly partitionKey: readonly string[];
  readonly foreignKeys: readonly ForeignKey[];
  readonly indexes: readonly Index[];
  /** No replica has its rows. */
  readonly isUnlogged: boolean;
  /** On INSERT and UPDATE. */
  readonly triggers: readonly {
    readonly name: string;
    /** With the rights of the role that writes. */
    readonly asCaller: boolean;
    /** It reads them, and they must be set. */
    readonly parameters: readonly string[];
  }[];
  readonly rowSecurity: boolean;
  /** Of the app; they hide rows from the role of ADMIN_URL. */
  readonly policies: readonly {
    readonly name: string;
    readonly restricts: boolean;
    /** Roles of the app that may read the table. */
    readonly apps: string | null;
  }[];
}

export function columnOf(table: Table, name: string | undefined): Column | undefined {
  return table.columns.find((column) => column.name === name);
}

export interface AuditLog {
  readonly entity: Column;
  readonly entityId: Column;
  readonly action: Column;
  readonly diff: Column;
  /** Absent: no value of the sample has a shape that the gateway reads. */
  readonly shape?: DiffShape;
  readonly entities: readonly string[];
}

export interface Tenant {
  /** A row per workspace; absent: none was found. */
  readonly root?: Table;
  /** It need not be the primary key. */
  readonly rootId?: Column;
  /** Absent: the table has none. */
  readonly columnIn: (table: Table) => Column | undefined;
  readonly column: string;
  readonly reason: string;
  readonly isSure: boolean;
}

/** A required one. */
export interface Step {
  readonly from: Column;
  readonly table: Table;
  readonly to: Column;
  /** No foreign key says so. */
  readonly isGuess?: true;
  /** Whether the other row refers to this one. */
  readonly isBack?: true;
}

export interface WorkspaceOf {
  /** In the table of the row, or in the table of the last step. */
  readonly tenant: Column;
  /** Empty: the table has the column. */
  readonly steps: readonly Step[];
  /** Of the same worth. */
  readonly rivals: readonly WorkspaceOf[];
}

/** A resource is drafted of it. */
export interface Subject extends WorkspaceOf {
  readonly table: Table;
  readonly id: Column;
  readonly log?: AuditLog;
  /** Of an audit log, beside the diff. */
  readonly documents: readonly Column[];
  /** They refer to records of other workspaces in a sample. */
  readonly crossings: ReadonlySet<string>;
  /** Shown as lists in each record. */
  readonly parts: readonly Table[];
  readonly shown: Shown;
  /** Of a subject that has been counted. */
  readonly ledger?: Ledger;
}

/** A condition that holds for a row that is shown, and what hides the others: a column, or a table. */
export interface Hiding {
  readonly by: string;
  readonly kept: string;
  /** The statement joins the view of that table. */
  readonly isJoined?: true;
}

export interface Shown {
  /** To the workspace, by views of records above. */
  readonly way: { readonly tenant: Column | undefined; readonly steps: readonly Step[] };
  readonly own: readonly Hiding[];
  readonly above: readonly Hiding[];
  /** By references of which nothing tells whether a deleted record takes the row with it: such rows are shown. */
  readonly open: readonly Hiding[];
}

/** Rows that one cause hides, or that are shown although it should hide them. */
export interface Cause {
  readonly by: string;
  readonly rows: number;
  /** Three of them. */
  readonly ids: readonly string[];
}

/** `shown` and the rows of `hidden` add up to `rows`. */
export interface Ledger {
  readonly table: string;
  readonly rows: number;
  /** The number of rows in the whole table, about, where some pages of it were counted. */
  readonly sampledOf?: number;
  /** They hide rows from the role of ADMIN_URL, which are not counted. */
  readonly policies?: readonly string[];
  readonly shown: number;
  readonly hidden: readonly Cause[];
  /** Only of a view that exists. */
  readonly shownAlthough: readonly Cause[];
  /** Shown although the record that they refer to is not; nothing tells whether it takes them with it. */
  readonly open: readonly Cause[];
  readonly emptied: readonly Emptied[];
}

/** Values of a JSON column of which `show` leaves nothing, or a part. */
export interface Emptied {
  readonly column: string;
  readonly values: number;
  readonly whole: number;
  readonly part: number;
}

/** They make users owners of workspaces. */
export interface Owners extends WorkspaceOf {
  /** The users, their memberships, or the workspaces. */
  readonly table: Table;
  /** Absent: the table holds the users. */
  readonly user?: Pick<Step, 'from' | 'to'>;
  /** To a table with the names of roles. */
  readonly role?: Step & { readonly name: Column };
}

export interface Survey {
  readonly tenant: Tenant;
  readonly subjects: readonly Subject[];
  readonly tables: readonly Table[];
  readonly leftOut: readonly { readonly table: Pick<Table, 'name' | 'quoted'>; readonly reason: string }[];
  readonly users: Table | undefined;
  readonly owners: Owners | undefined;
  /** A sentence about schemas with the same tables, or empty. */
  readonly twins: string;
  readonly workspaces: ReadonlyMap<Table, WorkspaceOf>;
  /** Workspaces without an owner who may have tokens made. */
  readonly ownerless?: { readonly rows: number; readonly of: number; readonly ids: readonly string[] } | undefined;
  /** Filters that need an index of their own. */
  readonly allFilters: boolean;
}

/** A guess that can hurt, for the operator. */
export interface Point {
  readonly text: string;
  /** About so many. */
  readonly rows?: number;
  /** The place of what is decided alike in many tables: asked once for the schema, and noted in each file. */
  readonly of?: string;
}

/** Decided alike in many tables; `names` are those in this one. */
export function sharedPoint(text: string, { name, rows }: Pick<Table, 'name' | 'rows'>, names = ''): Point {
  return { text, rows, of: names === '' ? name : `${name} (${names})` };
}
