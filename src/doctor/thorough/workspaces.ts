import pg from 'pg';
import { runAsAdmin } from '../../postgres/admin.js';
import type { WorkspaceId } from '../../postgres/statement.js';
import { guard } from '../../postgres/wire/queries.js';
import type { WorkspaceMac } from '../../postgres/workspace-mac.js';
import type { Resource } from '../../resource/definition/resource.js';
import { nameOrderedView } from '../../resource/statements/walls.js';
import { runReadOnly } from '../check-session.js';
import { type Item, makeItem } from '../finding.js';
import { checkViews } from '../view-checks.js';

/** Views that read as the role that ran `migrate`. */
const tokenViews = ['gateway.workspaces', 'gateway.token_owners'];
const tokenNeed = {
  code: 'workspaces',
  object: '',
  file: null,
  views: tokenViews,
  plain: tokenViews,
} as const;
export const rowsPerEnd = 250;
const limits = `set local statement_timeout = '500ms'`;

/** Workspaces whose rows are read, and the MAC that opens each. */
export interface WorkspaceSample {
  readonly ids: readonly WorkspaceId[];
  readonly computeMac: WorkspaceMac;
}

/** Takes up to ten workspaces, those with a token first, by ADMIN_URL: no login of the gateway can list workspaces. */
export async function sampleWorkspaces(adminUrl: string): Promise<{ ids: WorkspaceId[]; items: Item[] }> {
  if (adminUrl === '') {
    const without = 'ADMIN_URL is not set, so no workspace is known: records, ids and writes are not tried.';
    return { ids: [], items: [makeItem('warning', 'workspaces', without)] };
  }
  try {
    return await runAsAdmin(adminUrl, async (client) => {
      const { rows } = await client.query<{ id: WorkspaceId }>('select id from gateway.sample_workspaces() id');
      const ok = `${rows.length} are taken as a sample.`;
      const items = await checkViews(client, [{ ...tokenNeed, columns: [], ok }]);
      return { ids: rows.map(({ id }) => id), items };
    });
  } catch (error) {
    const none = `ADMIN_URL gives none: ${(error as Error).message.replace(/\.$/, '')}.`;
    return { ids: [], items: [makeItem('failed', 'workspaces', none)] };
  }
}

/** Checks that ids are unique: a walk by cursor goes on after an id, and would lose rows with the same one. */
export function checkIds(client: pg.Client, resource: Resource, { ids, computeMac }: WorkspaceSample): Promise<Item[]> {
  const { view, order, idType } = resource;
  const key = order.map(({ column }) => column);
  const end = (direction: 'asc' | 'desc'): string =>
    `(select id from ${nameOrderedView(resource, key, direction)} order by ${key.map((column) => `${pg.escapeIdentifier(column)} ${direction}`).join(', ')} limit ${rowsPerEnd})`;
  const repeated = `select id::text from ${view}
    where id in (${end('asc')} union all ${end('desc')}) group by id having count(*) > 1 limit 1`;
  const look = async (): Promise<Item[]> => {
    for (const workspace of ids.slice(0, 2)) {
      await client.query(guard.text, [computeMac(workspace)]);
      const [row] = (await client.query<{ id: string }>(repeated)).rows;
      if (row) return [makeItem('failed', 'ids', `Several rows of a workspace have one id, such as ${row.id}.`, view)];
      const hasEmpty =
        idType === 'text' && (await client.query(`select from ${view} where id = '' limit 1`)).rowCount !== 0;
      const unreachable = 'A row has an empty id: the record is listed, and no address leads to it.';
      if (hasEmpty) return [makeItem('failed', 'ids', unreachable, view)];
    }
    return [makeItem('ok', 'ids', 'Each id of the sample belongs to one row.', view)];
  };
  return runReadOnly(client, { settings: limits, object: view }, look, () => []); // without an index for the view, which `plans` reports
}
