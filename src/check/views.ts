import type pg from 'pg';
import { fieldType } from '../definition/field-types.js';
import { columnsOf, type Field, leaves, placeOf, type Resource, xidColumn } from '../definition/resource.js';
import { viewsOf, wallsOf } from '../definition/walls.js';
import { sqlStateOf } from '../errors.js';
import { applicationName } from '../postgres/connection.js';
import { codecColumns } from '../projection/codec.js';
import { checkSql, failure, type Item, verdict, withFile } from './finding.js';

/** A view as the catalog has it. */
export interface ViewRow {
  readonly name: string;
  readonly is_view: boolean;
  readonly owner: string;
  readonly owner_superuser: boolean;
  readonly owner_bypasses: boolean;
  readonly invoker: boolean;
  readonly owned_tables: string[];
  readonly hidden_tables: string[];
  readonly columns: Readonly<Record<string, { readonly type: string; readonly readable: boolean }>>;
}

/** Checks the view of a resource. */
export type ViewCheck = (resource: Resource) => Item;

/** Reads the catalog of all views, once. The check of a view is of its columns and its owner. */
export async function viewCheck(client: pg.Client, resources: readonly Resource[]): Promise<ViewCheck> {
  const { rows } = await client.query<ViewRow>(checkSql('views'), [resources.flatMap(viewsOf)]);
  const found = new Map(rows.map((row) => [row.name, row]));
  return (resource) => {
    const view = found.get(resource.view);
    const missing = viewsOf(resource).filter((name) => !found.has(name));
    const faults =
      view === undefined || missing.length > 0
        ? [`${missing.join(', ')} is missing: run \`migrate\` with these definitions`]
        : [...viewFaults(neededColumns(resource), view), ...partsFaults(resource, found)];
    const { horizonHours } = resource.sync?.appendOnly ?? {};
    const horizon =
      horizonHours && ` Sync passes look back ${horizonHours} hours: no transaction must stay open longer.`;
    return verdict('view', withFile(faults, resource), `Every column is there.${horizon ?? ''}`, resource.view);
  };
}

interface AppliedRow {
  readonly root: 'views' | 'gateway';
  readonly name: string;
  readonly hash: string;
  readonly isSame: boolean;
}

/**
 * Checks that the views are those that `migrate` made, of these definitions. A view of the roles that was changed since may have lost its
 * wall, and is refused; with other definitions a gateway can be served while the new ones are rolled out.
 */
export async function checkApplied(client: pg.Client, resources: readonly Resource[]): Promise<Item[]> {
  const text = `select root, name, hash, digest is not distinct from gateway.digest_of(objects) as "isSame"
    from gateway.applied_files where root in ('views', 'gateway')`;
  const attempted = await attempt<AppliedRow>(client, text).catch((error) => {
    if (isOccupied(error)) return null; // a lock on a view, which the check of the view reports
    throw error;
  });
  if (attempted === null) return [];
  const { rows, error } = attempted;
  if (error) return [verdict('migrated', [`what \`migrate\` applied cannot be read: ${error.message}`])];
  const altered = rows.filter(({ isSame }) => !isSame).map(({ root, name }) => `${root}/${name}`);
  const walls = altered.filter((name) => name.startsWith('gateway/'));
  if (walls.length > 0)
    return [verdict('migrated', [`changed since \`migrate\` made them: the views of ${walls.join(', ')}`])];
  const hashes = new Map(rows.map(({ root, name, hash }) => [`${root}/${name}`, hash]));
  const others = wallsOf(resources).filter(({ name, hash }) => hashes.get(`gateway/${name}`) !== hash);
  if (altered.length + others.length === 0)
    return [verdict('migrated', [], 'The views are those that `migrate` made.')];
  const faults = [
    ...(altered.length > 0 ? [`changed since \`migrate\` made them: the views of ${altered.join(', ')}`] : []),
    ...(others.length > 0
      ? [`made of other definitions: the views of ${others.map(({ name }) => name).join(', ')}`]
      : []),
  ];
  return [failure('migrated', `${faults.join('; ')}.`)];
}

/** Faults of the views of a record's parts, each with the name of its view. */
function partsFaults({ sync, idType }: Resource, found: ReadonlyMap<string, ViewRow>): string[] {
  return Object.entries(sync?.parts ?? {}).flatMap(([name, part]) => {
    const view = found.get(part.view);
    const place = ` (/sync/parts/${name})`;
    if (view === undefined) return [];
    const columns = new Map<string, NeededColumn>([
      ['workspace_id', { types: workspaceTypes, place: '' }],
      ['id', { types: fieldType(idType).columnTypes, place: '' }],
      ['part_id', { types: fieldType(part.idType).columnTypes, place: `${place.slice(0, -1)}/idType)` }],
      [xidColumn, { types: ['xid'], place: ' (/sync)' }],
    ]);
    return viewFaults(columns, view).map((fault) => `${part.view}: ${fault}`);
  });
}

/** The types that workspace_id may have. */
const workspaceTypes = ['uuid', 'bigint', 'integer', 'smallint', 'text', 'character varying'];

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
    ['workspace_id', { types: workspaceTypes, place: '' }],
    ...(resource.sync ? [[xidColumn, { types: ['xid'], place: ' (/sync)' }] as const] : []),
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

export const queryCanceled = '57014';

/**
 * Settings of each transaction. The wait for a lock is below the time-outs of the statements, which would tell of a slow view. A view could
 * tell sessions apart by their name, so it is that of `serve`.
 */
export const asServed = `set local lock_timeout = '200ms'; set local application_name = '${applicationName}'`;

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
    const results: unknown = await client.query(`begin read only; ${asServed}; ${statements}; rollback`);
    return { rows: (results as pg.QueryResult<R>[]).at(-2)?.rows ?? [] };
  } catch (error) {
    if (sqlStateOf(error) !== undefined) await client.query('rollback');
    if (isPassing(error)) throw error;
    return { rows: [], error: error as Error & { code?: string } };
  }
}
