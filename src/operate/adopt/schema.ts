import { isNamed, type Purpose } from '../../base/words.js';
import type { DiffShape } from '../../resource/projection/audit-diff.js';

// A schema as `adopt` found it, and what it concludes from it. `quoted` is always a name as SQL writes it.

export class AdoptRefused extends Error {
  override readonly name = 'AdoptRefused';
}

export interface Column {
  readonly table: string;
  readonly name: string;
  readonly quoted: string;
  /** The name is in small letters, and unique in the table. */
  readonly inView: string;
  /** PostgreSQL's format_type without a length; a domain has its base type, and "enum" means every enumerated type. */
  readonly type: string;
  /** An id that is no column itself is composed of these. */
  readonly composedOf?: readonly Column[];
  /** The enumerated type below a domain, as SQL writes it. */
  readonly enumOfDomain: string | null;
  /** The bound of a varchar or char; null is no bound. */
  readonly length: number | null;
  readonly notNull: boolean;
  /** A default, an identity or a generation makes the value. */
  readonly isMade: boolean;
  /** The column is generated, or an identity that is always generated. */
  readonly isComputed: boolean;
  /** Each read computes the value, so no index can have the column. */
  readonly isVirtual: boolean;
  /** Columns that the expression of a generated column reads. */
  readonly madeOf: readonly string[];
  /** The column is part of a foreign key to a table of any schema. */
  readonly refers: boolean;
  /** A BEFORE UPDATE trigger of the app moves the value. */
  readonly isMoved: boolean;
  /** A BEFORE INSERT trigger of the app may fill the column. */
  readonly isFilled: boolean;
  /** The sequence of a serial; an identity needs no privilege on its own. */
  readonly sequence: string | null;
  readonly isArray: boolean;
  /** A composite type, or array of one, has members; any other type has null. */
  readonly members: readonly TypeMember[] | null;
  /** The operator wants the column shown whatever it seems to hold. */
  readonly isWanted?: true;
  readonly comment: string | null;
  /** Values that the enumerated type or a CHECK allows; empty allows any. */
  readonly labels: readonly string[];
  /** Sampled values, without NULL; only their forms, and the words of an audit log, get into a draft. */
  readonly values: string[];
  /** A column that may hide rows has its commonest values, also NULL, with the rows of a larger sample that have them. */
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
  /** Only the name of the column tells the reference. */
  readonly isGuess?: true;
}

export interface Index {
  /** A key that gives no order of a column, such as an expression, is null. */
  readonly columns: readonly (string | null)[];
  readonly descending: readonly boolean[];
  readonly isUnique: boolean;
  /** The condition of a partial index as PostgreSQL prints it. */
  readonly condition: string | null;
}

/** Is false for an index on some rows only. */
export function provesAll({ isUnique, condition }: Index): boolean {
  return isUnique && condition === null;
}

export interface Table {
  readonly name: string;
  readonly quoted: string;
  /** The estimate includes all partitions. */
  readonly rows: number;
  readonly comment: string | null;
  readonly columns: readonly Column[];
  readonly primaryKey: readonly string[];
  /** Other tables name the rows by this column, and none by the primary key. */
  readonly namingColumn?: string | undefined;
  readonly isInherited: boolean;
  readonly partitionKey: readonly string[];
  readonly foreignKeys: readonly ForeignKey[];
  readonly indexes: readonly Index[];
  /** No replica has the rows of an unlogged table. */
  readonly isUnlogged: boolean;
  /** Functions of triggers that run on INSERT and UPDATE. */
  readonly triggers: readonly {
    readonly name: string;
    /** The trigger has the rights of the role that writes. */
    readonly runsAsCaller: boolean;
    /** Settings that the function reads, and that must be set. */
    readonly parameters: readonly string[];
  }[];
  readonly hasRowSecurity: boolean;
  /** The app's policies hide rows from the role of ADMIN_URL. */
  readonly policies: readonly {
    readonly name: string;
    readonly isRestrictive: boolean;
    /** Roles of the app that may read the table. */
    readonly apps: string | null;
  }[];
}

export function findColumn(table: Table, name: string | undefined): Column | undefined {
  return table.columns.find((column) => column.name === name);
}

/** Finds the first column whose name tells the purpose. */
export function findNamedColumn({ columns }: Table, purpose: Purpose, fits = (_: Column) => true): Column | undefined {
  return columns.find((column) => isNamed(purpose, column.name) && fits(column));
}

/** Lists the foreign keys that lead to a table, with the tables that have them. */
export function listKeysTo(
  { name }: Pick<Table, 'name'>,
  tables: readonly Table[],
): { readonly from: Table; readonly key: ForeignKey }[] {
  return tables.flatMap((from) => from.foreignKeys.flatMap((key) => (key.table === name ? [{ from, key }] : [])));
}

export interface AuditLog {
  readonly entity: Column;
  readonly entityId: Column;
  readonly action: Column;
  readonly diff: Column;
  /** The shape of the diff; absent: no value of the sample has one that the gateway reads. */
  readonly shape?: DiffShape;
  readonly entities: readonly string[];
}

export interface Tenant {
  /** The table has a row per workspace; absent: none was found. */
  readonly root?: Table;
  /** The column that others name; it need not be the primary key. */
  readonly rootId?: Column;
  readonly columnIn: (table: Table) => Column | undefined;
  readonly column: string;
  readonly reason: string;
  readonly isSure: boolean;
}

/** A required reference to a row of another table. */
export interface ReferenceStep {
  readonly from: Column;
  readonly table: Table;
  readonly to: Column;
  readonly isGuess?: true;
  /** The other row refers to this one. */
  readonly isBack?: true;
}

export interface WorkspaceOf {
  /** The column is in the table of the row, or in the table of the last step. */
  readonly tenant: Column;
  /** The steps to the table with the column; empty: the table itself has it. */
  readonly steps: readonly ReferenceStep[];
  /** Other references that lead to a workspace as well; the draft asks which is right. */
  readonly rivals: readonly WorkspaceOf[];
}

/** A table of which a resource is drafted. */
export interface Subject extends WorkspaceOf {
  readonly table: Table;
  readonly id: Column;
  readonly log?: AuditLog;
  /** Documents that an audit log has beside the diff. */
  readonly documents: readonly Column[];
  /** Columns that refer to records of other workspaces in a sample. */
  readonly crossings: ReadonlySet<string>;
  /** Tables whose rows each record shows as lists. */
  readonly parts: readonly Table[];
  readonly shown: ShownRows;
  readonly ledger?: Ledger;
}

/** `by`, a column or a table, hides the rows that do not meet the condition `unless`. */
export interface Hiding {
  readonly by: string;
  readonly unless: string;
  /** The statement joins the view of that table. */
  readonly isJoined?: true;
}

export interface ShownRows {
  /** The way to the workspace, through views of records above. */
  readonly way: { readonly tenant: Column | undefined; readonly steps: readonly ReferenceStep[] };
  readonly own: readonly Hiding[];
  readonly above: readonly Hiding[];
  /** Nothing tells whether a deleted record takes the row with it: such rows are shown. */
  readonly open: readonly Hiding[];
}

/** Rows that one reason hides, or should hide although they are shown. */
export interface Cause {
  readonly by: string;
  readonly rows: number;
  /** The ids of three of the rows. */
  readonly ids: readonly string[];
}

/** A view of the database, and the expression over a row of the table that is the id in the view. */
export interface DatabaseView {
  readonly name: string;
  /** The alias of the table stands before the column. */
  readonly id: string;
  /** Conditions that row-level security adds where it binds the owner of the view. */
  readonly policies: string | null;
}

/** A view of the database, and the conditions that the views of the records above a row show these today. */
export interface JudgedView extends DatabaseView {
  /** The deletion of the record takes the row with it. */
  readonly taken: readonly Hiding[];
  readonly open: readonly Hiding[];
}

/** `shown` and the rows of `hidden` add up to `rows`. */
export interface Ledger {
  readonly table: string;
  readonly rows: number;
  /** The estimated rows of the whole table, if only some pages were counted. */
  readonly sampledOf?: number;
  /** Policies that hide rows from the role of ADMIN_URL, which are not counted. */
  readonly policies?: readonly string[];
  readonly shown: number;
  readonly hidden: readonly Cause[];
  /** Rows that a view of the database shows, and should not. */
  readonly shownAlthough: readonly Cause[];
  /** Shown rows whose record above is not shown; nothing tells whether it takes them with it. */
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

/** The table that makes users owners of workspaces. */
export interface Owners extends WorkspaceOf {
  /** The table of the users, of their memberships, or of the workspaces. */
  readonly table: Table;
  /** The reference to the user; absent: the table holds the users. */
  readonly user?: Pick<ReferenceStep, 'from' | 'to'>;
  /** The step to a table with the names of roles. */
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
  /** Workspaces that lack an owner who may have tokens made. */
  readonly ownerless?: { readonly rows: number; readonly of: number; readonly ids: readonly string[] } | undefined;
  /** Filters that need an index of their own are drafted too. */
  readonly allFilters: boolean;
}

/** The survey knows this before it chooses the resources. */
export type SurveySoFar = Pick<Survey, 'tables' | 'tenant' | 'users' | 'owners' | 'workspaces'>;

/** An open point is a guess that does harm if it is wrong: the draft puts it before the operator. */
export interface Point {
  readonly text: string;
  /** The number of rows that the point is about. */
  readonly rows?: number;
  /** Many tables share the decision: it is asked once for the schema, and noted in each file. */
  readonly of?: string;
  /** The tables that the point is about, the one with the most rows first. */
  readonly places?: readonly string[];
}

export const sumRows = (some: readonly Pick<Cause, 'rows'>[]): number => some.reduce((sum, { rows }) => sum + rows, 0);

/** Makes a point that many tables decide alike; `names` are the columns or tables in this one. */
export function askOnce(text: string, { name, rows }: Pick<Table, 'name' | 'rows'>, names = ''): Point {
  return { text, rows, of: names === '' ? name : `${name} (${names})` };
}

/** Makes such a point if there are names to make it about. */
export function askAbout(text: string, table: Pick<Table, 'name' | 'rows'>, names: readonly string[]): Point | false {
  return names.length > 0 && askOnce(text, table, names.join(', '));
}
