import type { DiffShape } from '../../resource/projection/audit-diff.js';

// A schema as `adopt` found it: what its other files hand to each other.

/** A schema that cannot be adopted; the message says why and what to do. */
export class AdoptRefused extends Error {
  override readonly name = 'AdoptRefused';
}

export interface Column {
  /** The name of its table. */
  readonly table: string;
  readonly name: string;
  /** The name as SQL writes it. */
  readonly quoted: string;
  /** The name in the view, of small letters; no other column of the table has it. */
  readonly inView: string;
  /** As format_type prints it without a length; of a domain the type below all domains; "enum" of every enumerated type. */
  readonly type: string;
  /** Of an id that is no column of its own: the columns that make it together. */
  readonly composedOf?: readonly Column[];
  /** Of a domain over an enumerated type, the name of that type as SQL writes it. */
  readonly enumOfDomain: string | null;
  /** Characters that a varchar or char holds; null: no bound. */
  readonly length: number | null;
  readonly notNull: boolean;
  /** Whether the database fills it: a default, also that of a domain, an identity, a generated column. */
  readonly made: boolean;
  /** Whether the database alone fills it: a generated column, or an identity that is always generated. */
  readonly computed: boolean;
  /** Whether each read computes it, so that no index can have it. */
  readonly isVirtual: boolean;
  /** The columns that the expression of a generated column reads. */
  readonly madeOf: readonly string[];
  /** Whether it is part of a foreign key, to a table of any schema. */
  readonly refers: boolean;
  /** Whether a BEFORE UPDATE trigger of the app sets it. */
  readonly moved: boolean;
  /** The sequence of its default (serial); an identity needs no privilege on its own. */
  readonly sequence: string | null;
  readonly isArray: boolean;
  /** Whether the operator wants it to be shown, whatever it seems to hold. */
  readonly isWanted?: true;
  readonly comment: string | null;
  /** Text forms of some values that are not NULL, as `sample` has found them; nothing of them gets into a draft but forms and words of logs. */
  readonly values: string[];
}

export interface ForeignKey {
  /** A table of the same schema. */
  readonly table: string;
  readonly columns: readonly string[];
  readonly references: readonly string[];
  /** Whether the row goes with the one it refers to (ON DELETE CASCADE). */
  readonly cascades: boolean;
  /** Whether the name of the column alone says so: the schema has no such foreign key. */
  readonly isGuess?: true;
}

/** An index that can give rows in order. */
export interface Index {
  /** Its keys; null in the place of one that gives no order of a column, such as an expression. */
  readonly columns: readonly (string | null)[];
  /** Of each key, whether its order is DESC. */
  readonly descending: readonly boolean[];
  readonly isUnique: boolean;
  /** Of a partial index, as PostgreSQL prints it. */
  readonly condition: string | null;
}

export interface Table {
  readonly name: string;
  /** Schema and name as SQL writes them. */
  readonly quoted: string;
  /** PostgreSQL's estimate, of all partitions; by its size before the first ANALYZE. */
  readonly rows: number;
  readonly comment: string | null;
  readonly columns: readonly Column[];
  readonly primaryKey: readonly string[];
  /** The columns that tell a row's partition; none: it has no partitions. */
  readonly partitionKey: readonly string[];
  readonly foreignKeys: readonly ForeignKey[];
  readonly indexes: readonly Index[];
  /** Whether its rows are not in the log of PostgreSQL, so that no replica has them. */
  readonly isUnlogged: boolean;
  /** Functions of triggers that run when a row is inserted or updated. */
  readonly triggers: readonly {
    readonly name: string;
    /** Whether it uses tables with the rights of the role that writes. */
    readonly asCaller: boolean;
    /** Parameters that it reads and that must be set. */
    readonly parameters: readonly string[];
  }[];
  /** Whether the app has row-level security on it. */
  readonly rowSecurity: boolean;
}

/** The column of the table, by name. */
export function columnOf(table: Table, name: string | undefined): Column | undefined {
  return table.columns.find((column) => column.name === name);
}

/** The columns of an audit log. */
export interface AuditLog {
  readonly entity: Column;
  readonly entityId: Column;
  readonly action: Column;
  readonly diff: Column;
  /** Absent: no value of the sample has a shape that the gateway reads. */
  readonly shape?: DiffShape;
  /** The words of the log for its entities. */
  readonly entities: readonly string[];
}

/** How the rows of a schema belong to workspaces. */
export interface Tenant {
  /** The table with a row per workspace; absent: none was found. */
  readonly root?: Table;
  /** Its column that the others refer to, which need not be its primary key. */
  readonly rootId?: Column;
  /** The column of a table that holds the workspace; absent: the table has none. */
  readonly columnIn: (table: Table) => Column | undefined;
  /** Name of that column in most tables. */
  readonly column: string;
  /** Reason for the choice, and other candidates. */
  readonly reason: string;
  readonly isSure: boolean;
}

/** A required reference: from a column of a table to a row of another. */
export interface Step {
  readonly from: Column;
  readonly table: Table;
  readonly to: Column;
  /** Whether no foreign key says so. */
  readonly isGuess?: true;
}

/** Where the workspace of a row stands. */
export interface WorkspaceOf {
  /** The column of the workspace, in the row's own table or in that of the last step. */
  readonly tenant: Column;
  /** The references that lead to the workspace; none: the table has its column. */
  readonly steps: readonly Step[];
  /** Other ways to a workspace, of the same worth. */
  readonly rivals: readonly WorkspaceOf[];
}

/** A table of which a resource is drafted. */
export interface Subject extends WorkspaceOf {
  readonly table: Table;
  readonly id: Column;
  readonly log?: AuditLog;
  /** Its columns with documents of an audit log, beside the diff. */
  readonly documents: readonly Column[];
  /** Names of columns that refer to records of other workspaces in a sample. */
  readonly crossings: ReadonlySet<string>;
  /** Tables whose rows are parts of its own, shown as a list in each record. */
  readonly parts: readonly Table[];
}

/** Rows that make users owners of workspaces. */
export interface Owners extends WorkspaceOf {
  /** The users themselves, their memberships, or the workspaces. */
  readonly table: Table;
  /** The reference to the user; absent: the table is that of the users. */
  readonly user?: Pick<Step, 'from' | 'to'>;
  /** The reference to a table with the names of roles. */
  readonly role?: Step & { readonly name: Column };
}

/** A schema as it was found. */
export interface Survey {
  readonly tenant: Tenant;
  readonly subjects: readonly Subject[];
  /** All tables of the schema. */
  readonly tables: readonly Table[];
  /** Tables without a resource, each with the reason. */
  readonly leftOut: readonly { readonly table: Pick<Table, 'name' | 'quoted'>; readonly reason: string }[];
  /** The people who log in to the app. */
  readonly users: Table | undefined;
  readonly owners: Owners | undefined;
  /** Whether filters are drafted that need an index of their own. */
  readonly allFilters: boolean;
}

/** A decision that a draft takes alike in many tables: it is asked once for the schema, and noted in each file. */
export interface SharedPoint {
  /** The sentence in the file. */
  readonly text: string;
  /** The same for the schema, before its places. */
  readonly all: string;
  readonly of: string;
}
