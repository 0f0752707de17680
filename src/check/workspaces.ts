import pg from 'pg';
import type { WorkspaceId } from '../db/statement.js';
import type { Resource } from '../definition/resource.js';
import { checkSql, failure, type Item, verdict, warning } from './finding.js';
import { tryQuery } from './server.js';
import { type AttemptError, attempt, queryCanceled } from './views.js';

/** The views of the app's workspaces and users. They read as the role that ran `migrate`. */
const tokenViews = ['gateway.workspaces', 'gateway.token_owners'];

/** Rows of each end of a list that are compared, and the time that a view has for one statement. */
const rowsPerEnd = 250;
/** Rows of each workspace's sample whose columns are compared where another workspace shows their ids. */
const sharedRowsMax = 20;
const bound = `set local statement_timeout = '500ms'`;

/** Ids of up to ten workspaces, those with a token first; the finding says when the function cannot be executed. */
export async function sampleWorkspaces(client: pg.Client): Promise<{ ids: WorkspaceId[]; item: Item }> {
  const found = await tryQuery(client, 'select id from gateway.sample_workspaces() id');
  if ('fault' in found) {
    const fault = `gateway.sample_workspaces() cannot be executed, so the tenant wall is not tried: ${found.fault}`;
    return { ids: [], item: verdict('workspaces', [fault]) };
  }
  const ids = found.rows.map(({ id }) => String(id) as WorkspaceId);
  const { rows } = await client.query<{ owner: string; hidden_tables: string[] }>(checkSql('views'), [tokenViews]);
  const hidden = rows.flatMap(({ owner, hidden_tables }) => hidden_tables.map((table) => `${table} from ${owner}`));
  if (hidden.length > 0) {
    const detail = `Row-level security hides rows of ${[...new Set(hidden)].join(', ')}, so \`tokens\` finds no workspace or no owner: let another role own ${tokenViews.join(' and ')}, or create a policy for that role.`;
    return { ids, item: failure('workspaces', detail) };
  }
  return { ids, item: verdict('workspaces', [], `${ids.length} are taken as a sample.`) };
}

/** Rows that a workspace sees in a view, summed up by PostgreSQL: a start would read 4,000 rows for four views. */
interface Sample {
  readonly workspace: string;
  readonly count: number;
  /** Whether a row carries another workspace. */
  readonly foreign: boolean;
  /** The ids as literals of SQL, separated by commas. */
  readonly ids: string;
}

/**
 * Tries the tenant wall between two workspaces that have rows: each row carries the workspace that is set, and no workspace sees
 * a row of the other. A view that filters by nothing but "some workspace is set" passes every other check. `thorough` also looks for
 * ids of their rows that repeat.
 */
export async function checkWall(
  client: pg.Client,
  resource: Resource,
  workspaces: readonly string[],
  { thorough }: { readonly thorough: boolean },
): Promise<Item[]> {
  const samples: Sample[] = [];
  for (const workspace of workspaces) {
    const { rows, error } = await attempt<Sample>(client, `${within(workspace)}; ${bothEnds(resource, workspace)}`);
    if (error) return [untried(resource, error)];
    samples.push(...rows);
    if (samples.length === 2) break;
  }
  const wall = await wallItem(client, resource, workspaces, samples);
  return thorough ? [wall, ...(await idsItems(client, resource, samples))] : [wall];
}

function untried({ view }: Resource, error: AttemptError): Item {
  return failure('tenant_wall', `It could not be tried: ${reasonOf(error)}.`, view);
}

/** Looks for one of the ids in all rows of its workspace: a walk by cursor goes on behind an id, and would lose rows with the same. */
async function idsItems(client: pg.Client, { view }: Resource, samples: readonly Sample[]): Promise<Item[]> {
  for (const { workspace, ids } of samples) {
    const repeated = `select id::text from ${view} where id in (${ids}) group by id having count(*) > 1 limit 1`;
    const { rows, error } = await attempt<{ id: string }>(client, `${within(workspace)}; ${repeated}`);
    if (error) return []; // without an index for it, of which `plans` tells
    if (rows[0]) return [failure('ids', `Several rows of a workspace have one id, such as ${rows[0].id}.`, view)];
  }
  return [verdict('ids', [], 'Each id of the sample is that of one row.', view)];
}

async function wallItem(
  client: pg.Client,
  resource: Resource,
  workspaces: readonly string[],
  samples: readonly Sample[],
): Promise<Item> {
  const faults = samples.some(({ foreign }) => foreign) ? ['in a workspace it shows rows of another one'] : [];
  const [one, other] = samples;
  if (one === undefined || other === undefined)
    return verdict(
      'tenant_wall',
      faults,
      `${samples.length} of ${workspaces.length} workspaces have rows: nothing to compare.`,
      resource.view,
    );
  const shared = await rowsOfSharedIds(client, resource, one, other);
  if ('error' in shared) return untried(resource, shared.error);
  const { ofOne, ofOther } = shared;
  const equal = equalRows(ofOne, ofOther);
  const counts = samples.map(({ count }) => count).join(' and ');
  if (equal > 0 && equal * 2 >= Math.min(ofOne.length, ofOther.length)) faults.push('two workspaces see the same rows');
  else if (equal > 0 && faults.length === 0)
    return warning(
      'tenant_wall',
      `Two workspaces see ${counts} rows with the same ids; of ${ofOne.length} compared, ${equal} are equal in all else: look whether each workspace has these.`,
      resource.view,
    );
  return verdict('tenant_wall', faults, `Two workspaces see ${counts} rows, each its own alone.`, resource.view);
}

/** The rows of two workspaces whose ids both show, up to twenty of each sample. */
async function rowsOfSharedIds(
  client: pg.Client,
  resource: Resource,
  one: Sample,
  other: Sample,
): Promise<{ ofOne: readonly SharedRow[]; ofOther: readonly SharedRow[] } | { error: AttemptError }> {
  const ids: string[] = [];
  for (const [{ ids: sampled }, { workspace }] of [
    [one, other],
    [other, one],
  ] as const) {
    const { rows, error } = await attempt<{ id: string }>(
      client,
      `${within(workspace)}; ${shownIds(resource, sampled)}`,
    );
    if (error) return { error };
    ids.push(...rows.map(({ id }) => pg.escapeLiteral(id)));
  }
  if (ids.length === 0) return { ofOne: [], ofOther: [] };
  const read = columnsOf(resource, ids);
  const ofOne = await attempt<SharedRow>(client, `${within(one.workspace)}; ${read}`);
  const ofOther = await attempt<SharedRow>(client, `${within(other.workspace)}; ${read}`);
  const error = ofOne.error ?? ofOther.error;
  return error ? { error } : { ofOne: ofOne.rows, ofOther: ofOther.rows };
}

function within(workspace: string): string {
  return `set local gateway.workspace_id = ${pg.escapeLiteral(workspace)}; ${bound}`;
}

/** The first and the last rows of the list, without the condition on workspace_id that the gateway's statements add. No row for none. */
function bothEnds({ view, order }: Resource, workspace: string): string {
  const end = (direction: string): string =>
    `(select workspace_id::text, id::text from ${view} order by ${order.map(({ column }) => `${pg.escapeIdentifier(column)} ${direction}`)} limit ${rowsPerEnd})`;
  const own = pg.escapeLiteral(workspace);
  return `select ${own} as workspace, count(*)::int, bool_or(workspace_id is distinct from ${own}) as foreign,
    string_agg(quote_literal(id), ', ') as ids from (${end('asc')} union all ${end('desc')}) ends having count(*) > 0`;
}

/** Up to twenty of the ids that the workspace shows, from anywhere among them. */
function shownIds({ view }: Resource, ids: string): string {
  return `select id::text from ${view} where id in (${ids}) order by md5(id::text) limit ${sharedRowsMax}`;
}

/** A row of two workspaces' ids: its columns but the workspace, each as a digest. */
interface SharedRow {
  readonly columns: Readonly<Record<string, string>>;
}

function columnsOf({ view }: Resource, ids: readonly string[]): string {
  return `select (select jsonb_object_agg(key, md5(value::text)) from jsonb_each(to_jsonb(v) - 'workspace_id')) as columns
    from ${view} v where id in (${ids.join(', ')})`;
}

/**
 * How many rows of one workspace the other one has, too. Ids alone do not tell: an app may count them from one in each workspace. A
 * column that tells of the workspace, with the same value in all of its rows, makes no row another.
 */
function equalRows(ofOne: readonly SharedRow[], ofOther: readonly SharedRow[]): number {
  const isOfWorkspace = (name: string): boolean =>
    [ofOne, ofOther].every((rows) => rows.length > 1 && new Set(rows.map(({ columns }) => columns[name])).size === 1);
  const own = Object.keys(ofOne[0]?.columns ?? {}).filter((name) => !isOfWorkspace(name));
  const keyOf = ({ columns }: SharedRow): string => own.map((name) => columns[name]).join();
  const others = new Set(ofOther.map(keyOf));
  return ofOne.filter((row) => others.has(keyOf(row))).length;
}

function reasonOf({ code, message }: AttemptError): string {
  return code === queryCanceled ? 'a page takes more than 500 ms, so an index that fits its order is missing' : message;
}
