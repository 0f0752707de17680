import pg from 'pg';
import { loadResources } from '../../src/resource/definition/load.js';
import type { Resource } from '../../src/resource/definition/resource.js';
import { rowsOf } from '../stage.js';
import { makeMac } from './data.js';

/** A measured workspace, and the gateway and the replica that serve it. */
export interface Subject {
  readonly origin: string;
  /** Origin of its ops listener. */
  readonly opsOrigin: string;
  readonly gatewayPid: number;
  readonly token: string;
  /** A database of the replica, as the gateway's own role. */
  readonly readerUrl: string;
  /** The same database as the superuser: the reader must see nothing beyond its views. */
  readonly replicaUrl: string;
  /** Postmaster of the replica. */
  readonly replicaPid: number;
}

const resources = loadResources('');

export function resourceOf(name: string): Resource {
  const found = resources.find((each) => each.name === name);
  if (found === undefined) throw new Error(`There is no resource ${name}.`);
  return found;
}

/** Runs `work` on a connection of the reader that reads for the workspace. */
export async function asReader<T>(url: string, workspace: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    await client.query("select set_config('gateway.workspace_id', $1, false)", [makeMac(workspace)]);
    return await work(client);
  } finally {
    await client.end();
  }
}

/**
 * A value for every filter: a workspace of any size has the same number of rows for each combination, except for those without
 * installation, number and entity. The range of dates is the middle half of the history.
 */
export async function filterValues(replicaUrl: string): Promise<Record<string, string>> {
  const rows = await rowsOf(
    replicaUrl,
    `select (first_day + days / 4)::text as from, (first_day + days * 3 / 4)::text as to, (first_day + days)::text as since,
       (select installations * 227 from bench.tenants where n = 0) as number,
       bench.installation_id(0, 0) as installation
     from bench.history`,
  );
  const [from, to, since, number, installation] = rows[0] as [string, string, string, string, string];
  return {
    installationId: installation,
    from,
    to,
    updatedSince: since,
    status: 'afgerond',
    nummer: `WB-${number}`,
    entity: 'werkbon',
    entityId: 'e-0',
    actie: 'gewijzigd',
  };
}
