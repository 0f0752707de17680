import pg from 'pg';
import type { WorkspaceId } from '../db/statement.js';
import type { Resource } from '../definition/resource.js';
import { failure, type Item, verdict } from './finding.js';
import { tryQuery } from './server.js';
import { attempt, queryCanceled } from './views.js';

/** Rows of each end of a list that are compared, and the time that a view has for one statement. */
const rowsPerEnd = 250;
const bound = `set local statement_timeout = '500ms'`;

/** Ids of up to ten workspaces, those with a token first; the finding says when the function cannot be executed. */
export async function sampleWorkspaces(client: pg.Client): Promise<{ ids: WorkspaceId[]; item: Item }> {
  const found = await tryQuery(client, 'select id from gateway.sample_workspaces() id');
  if ('fault' in found) {
    const fault = `gateway.sample_workspaces() cannot be executed, so the tenant wall is not tried: ${found.fault}`;
    return { ids: [], item: verdict('workspaces', [fault]) };
  }
  const ids = found.rows.map(({ id }) => String(id) as WorkspaceId);
  return { ids, item: verdict('workspaces', [], `${ids.length} are taken as a sample.`) };
}

interface SampleRow {
  readonly workspace_id: string | null;
  readonly id: string;
}

/** Rows that a workspace sees in a view. */
interface Sample {
  readonly workspace: string;
  readonly rows: readonly SampleRow[];
}

/**
 * Tries the tenant wall between two workspaces that have rows: each row carries the workspace that is set, and no workspace sees
 * a row of the other. A view that filters by nothing but "some workspace is set" passes every other check.
 */
export async function checkWall(client: pg.Client, resource: Resource, workspaces: readonly string[]): Promise<Item> {
  const untried = (error: { code?: string; message: string }): Item =>
    failure('tenant_wall', `It could not be tried: ${reasonOf(error)}.`, resource.view);
  const samples: Sample[] = [];
  for (const workspace of workspaces) {
    const { rows, error } = await attempt<SampleRow>(client, `${within(workspace)}; ${bothEnds(resource)}`);
    if (error) return untried(error);
    if (rows.length > 0) samples.push({ workspace, rows });
    if (samples.length === 2) break;
  }
  const foreign = samples.some(({ workspace, rows }) => rows.some((row) => row.workspace_id !== workspace));
  const faults = foreign ? ['in a workspace it shows rows of another one'] : [];
  const [one, other] = samples;
  if (one === undefined || other === undefined)
    return verdict(
      'tenant_wall',
      faults,
      `${samples.length} of ${workspaces.length} workspaces have rows: nothing to compare.`,
      resource.view,
    );
  for (const [sample, { workspace }] of [
    [one, other],
    [other, one],
  ] as const) {
    const ids = sample.rows.map(({ id }) => pg.escapeLiteral(id)).join(', ');
    const shared = await attempt(
      client,
      `${within(workspace)}; select from ${resource.view} where id in (${ids}) limit 1`,
    );
    if (shared.error) return untried(shared.error);
    if (shared.rows.length === 0) continue;
    faults.push('two workspaces see the same rows');
    break;
  }
  const counts = samples.map(({ rows }) => rows.length).join(' and ');
  return verdict('tenant_wall', faults, `Two workspaces see ${counts} rows, each its own alone.`, resource.view);
}

function within(workspace: string): string {
  return `set local gateway.workspace_id = ${pg.escapeLiteral(workspace)}; ${bound}`;
}

/** The first and the last rows of the list, without the condition on workspace_id that the gateway's statements add. */
function bothEnds({ view, order }: Resource): string {
  const end = (direction: string): string =>
    `(select workspace_id::text, id::text from ${view} order by ${order.map(({ column }) => `${pg.escapeIdentifier(column)} ${direction}`)} limit ${rowsPerEnd})`;
  return `${end('asc')} union all ${end('desc')}`;
}

function reasonOf({ code, message }: { code?: string; message: string }): string {
  return code === queryCanceled ? 'a page takes more than 500 ms, so an index that fits its order is missing' : message;
}
