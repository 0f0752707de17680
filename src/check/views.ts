import pg from 'pg';
import { fieldType } from '../definition/field-types.js';
import { columnsOf, type Field, leaves, placeOf, type Resource, viewsOf } from '../definition/resource.js';
import { sqlStateOf } from '../errors.js';
import { codecColumns } from '../projection/codec.js';
import { checkSql, type Item, verdict, withFile } from './finding.js';

/** A view as the catalog has it. */
export interface ViewRow {
  readonly name: string;
  readonly is_view: boolean;
  readonly owner: string;
  readonly owner_superuser: boolean;
  readonly owner_bypasses: boolean;
  readonly invoker: boolean;
  readonly filtered: boolean;
  readonly owned_tables: string[];
  readonly hidden_tables: string[];
  readonly columns: Readonly<Record<string, { readonly type: string; readonly readable: boolean }>>;
}

/** Checks the view of a resource over the given connection. */
export type ViewCheck = (client: pg.Client, resource: Resource) => Promise<Item>;

/**
 * Reads the catalog of all views, once. The check of a view is of its columns, owner, workspace filter, and of the tenant wall by
 * trying it; `thorough` reads more rows.
 */
export async function viewCheck(
  client: pg.Client,
  resources: readonly Resource[],
  { thorough }: { readonly thorough: boolean },
): Promise<ViewCheck> {
  const { rows } = await client.query<ViewRow>(checkSql('views'), [resources.flatMap(viewsOf)]);
  const found = new Map(rows.map((row) => [row.name, row]));
  const scanMs = scanMsMax[thorough ? 'thorough' : 'quick'];
  return async (client, resource) => {
    const view = found.get(resource.view);
    const textColumn = leaves(resource).find(({ field }) => columnTypes(field, resource).includes('text'))?.field
      .column;
    const faults =
      view === undefined
        ? ['it does not exist (/view): run `migrate`, or write it']
        : viewFaults(neededColumns(resource), view);
    const absent = absentWorkspaces[view?.columns.workspace_id?.type ?? ''];
    if (view && absent !== undefined && textColumn !== undefined && view.columns[textColumn]?.readable)
      faults.push(...(await wallFaults(client, resource.view, textColumn, absent, scanMs)));
    faults.push(...partsFaults(resource, found));
    const { horizonHours } = resource.sync?.appendOnly ?? {};
    const horizon =
      horizonHours && ` Sync passes look back ${horizonHours} hours: no transaction must stay open longer.`;
    const whenOk = `Every column is there; without its workspace it shows no row.${horizon ?? ''}`;
    return verdict('view', withFile(faults, resource), whenOk, resource.view);
  };
}

/** Faults of the views of a record's parts, each with the name of its view. */
function partsFaults({ sync, idType }: Resource, found: ReadonlyMap<string, ViewRow>): string[] {
  return Object.entries(sync?.parts ?? {}).flatMap(([name, part]) => {
    const view = found.get(part.view);
    const place = ` (/sync/parts/${name})`;
    if (view === undefined) return [`${part.view} does not exist${place}: run \`migrate\`, or write it`];
    const columns = new Map<string, NeededColumn>([
      ['workspace_id', { types: Object.keys(absentWorkspaces), place: '' }],
      ['id', { types: fieldType(idType).columnTypes, place: '' }],
      ['part_id', { types: fieldType(part.idType).columnTypes, place: `${place.slice(0, -1)}/idType)` }],
      [sync?.xid as string, { types: ['xid'], place: ' (/sync/xid)' }],
    ]);
    return viewFaults(columns, view).map((fault) => `${part.view}: ${fault}`);
  });
}

/** The types that workspace_id may have, each with a workspace that does not exist. */
const absentWorkspaces: Readonly<Record<string, string>> = {
  uuid: '00000000-0000-0000-0000-000000000000',
  bigint: '-1',
  integer: '-1',
  smallint: '-1',
  text: '-',
  'character varying': '-',
};

interface NeededColumn {
  /** The types that it can have; empty: every type fits. */
  readonly types: readonly string[];
  /** The key of the definition that needs it; empty: every resource does. */
  readonly place: string;
}

/** The columns that a resource reads from its view. */
function neededColumns(resource: Resource): Map<string, NeededColumn> {
  const used = columnsOf(resource);
  return new Map<string, NeededColumn>([
    ...Object.entries(resource.codecs).flatMap(([name, codec]) =>
      codecColumns(codec)
        .filter((column) => used.includes(column))
        .map((column) => [column, { types: [], place: ` (/codecs/${name})` }] as const),
    ),
    ['workspace_id', { types: Object.keys(absentWorkspaces), place: '' }],
    ...(resource.sync ? [[resource.sync.xid, { types: ['xid'], place: ' (/sync/xid)' }] as const] : []),
    ...leaves(resource).map(
      ({ field, path }) =>
        [field.column, { types: columnTypes(field, resource), place: ` (${placeOf(path)}/column)` }] as const,
    ),
  ]);
}

/** The types that the column of a field can have (PostgreSQL, format_type). */
function columnTypes({ type, pointer, codec }: Field, { codecs }: Resource): readonly string[] {
  if (codec !== undefined) return codecs[codec]?.encoding === 'bytea' ? ['bytea'] : fieldType('text').columnTypes;
  return fieldType(pointer === undefined ? type : 'json').columnTypes;
}

/** Faults of a view's columns, filter and owner. */
export function viewFaults(needed: ReadonlyMap<string, NeededColumn>, view: ViewRow): string[] {
  const faults: string[] = [];
  if (!view.is_view) faults.push('it is not a view');
  for (const [column, { types, place }] of needed) {
    const actual = view.columns[column];
    if (actual === undefined) faults.push(`column ${column} is missing${place}`);
    else if (types.length > 0 && !types.includes(actual.type)) {
      faults.push(`column ${column} is ${actual.type}, not ${types.join(' or ')}${place}`);
    } else if (!actual.readable) faults.push(`the role cannot select column ${column}${place}`);
  }
  if (!view.filtered) faults.push('its definition does not call gateway.workspace(): the workspace filter is missing');
  if (view.invoker) faults.push('it has security_invoker, and the role may read no table');
  if (view.owner_superuser) faults.push(`its owner ${view.owner} is a superuser`);
  else if (view.owner_bypasses) faults.push(`its owner ${view.owner} has BYPASSRLS`);
  else if (view.owned_tables.length > 0)
    faults.push(`its owner ${view.owner} also owns ${view.owned_tables.join(', ')}`);
  if (view.hidden_tables.length > 0)
    faults.push(
      `row-level security of ${view.hidden_tables.join(', ')} hides rows: create a policy there for the role that reads them, such as \`to ${view.owner} using (true)\``,
    );
  return faults;
}

/** Without an index every condition may see every row. */
const scanAll =
  'set local enable_indexscan = off; set local enable_indexonlyscan = off; set local enable_bitmapscan = off';
/**
 * The longest scan of a view by `check` and by a start, in milliseconds. A condition in front of the wall fails at the first row that it
 * sees, but where the wall holds the scan goes on to the end of the table: a start would wait a second for four large views.
 */
const scanMsMax = { thorough: 250, quick: 25 };
export const queryCanceled = '57014';

/**
 * Tries the tenant wall: no rows, and no row seen by another condition. set_config() fails with an empty name, and no
 * built-in function costs less.
 */
async function wallFaults(
  client: pg.Client,
  view: string,
  textColumn: string,
  absent: string,
  scanMs: number,
): Promise<string[]> {
  const faults: string[] = [];
  const inNone = `set local gateway.workspace_id = '${absent}'`;
  const foreignWorkspaces = {
    'without a workspace': 'reset gateway.workspace_id',
    'in a workspace that does not exist': inNone,
  };
  for (const [where, setWorkspace] of Object.entries(foreignWorkspaces)) {
    const open = await attempt(client, `${setWorkspace}; select from ${view} limit 1`);
    if (open.error) return [`it cannot be read: ${open.error.message}`];
    if (open.rows.length > 0) faults.push(`it shows rows ${where}`);
  }
  // Not without a workspace: PostgreSQL may then read no row, and it orders the conditions by their cost in both cases.
  const { error } = await attempt(
    client,
    `${inNone}; ${scanAll}; set local statement_timeout = ${scanMs}; select from ${view} where set_config('', ${pg.escapeIdentifier(textColumn)}, true) is null`,
  );
  if (error && error.code !== queryCanceled)
    faults.push('other conditions see rows of other workspaces: its filter must be the cheapest condition');
  return faults;
}

/** The longest wait for a lock; below the time-outs of the statements, which would tell of a slow view. */
export const lockTimeout = `set local lock_timeout = '200ms'`;

/** Whether the same statement can succeed later or on another server: this server cannot be checked now. */
export function isPassing(error: unknown): boolean {
  const state = sqlStateOf(error);
  return state === undefined || isOccupied(error) || /^(08|53|57P|58)/.test(state);
}

/** A lock on a table, or a conflict with recovery: the connection goes on. */
export function isOccupied(error: unknown): boolean {
  return /^(40|55P03$)/.test(sqlStateOf(error) ?? '');
}

/** A statement that PostgreSQL refused. */
export interface AttemptError {
  readonly code?: string;
  readonly message: string;
}

interface Attempt<R> {
  /** Rows of the last statement. */
  readonly rows: readonly R[];
  readonly error?: AttemptError;
}

/**
 * Runs statements in a transaction that is rolled back. Throws passing errors: a lost connection, a lock on a table, a conflict with
 * recovery.
 */
export async function attempt<R extends pg.QueryResultRow>(client: pg.Client, statements: string): Promise<Attempt<R>> {
  try {
    const results: unknown = await client.query(`begin read only; ${lockTimeout}; ${statements}; rollback`);
    return { rows: (results as pg.QueryResult<R>[]).at(-2)?.rows ?? [] };
  } catch (error) {
    if (sqlStateOf(error) !== undefined) await client.query('rollback');
    if (isPassing(error)) throw error;
    return { rows: [], error: error as Error & { code?: string } };
  }
}
