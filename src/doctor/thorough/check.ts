import type pg from 'pg';
import { makeWorkspaceMac } from '../../postgres/workspace-mac.js';
import { compileResource } from '../../resource/compiled.js';
import type { Resource } from '../../resource/definition/resource.js';
import type { Settings } from '../../settings.js';
import { type Item, warn } from '../finding.js';
import type { Inspection } from '../settings.js';
import { checkIndexes, checkPlans } from './plans.js';
import { checkRecords } from './records.js';
import { checkReferences } from './references.js';
import { checkOpenPoints, checkRedis } from './settings.js';
import { checkIds, sampleWorkspaces } from './workspaces.js';
import { checkUnique, checkWrites } from './writes.js';

export type ThoroughChecks = Awaited<ReturnType<typeof checkThoroughly>>;

/** Privileges by which an app's login makes tokens; the role's creator is a member with the admin option. */
const missingOfIssuer = `select string_agg(p, ', ') as missing from unnest(array['select', 'insert', 'update']) p
  where exists (select from pg_auth_members where roleid = to_regrole('gateway_issuer') and not admin_option)
    and not case p when 'update' then has_column_privilege('gateway_owner', 'gateway.api_tokens', 'revoked_at', p)
      else has_table_privilege('gateway_owner', 'gateway.api_tokens', p) end`;

async function checkIssuer(client: pg.Client): Promise<Item[]> {
  const { missing } = (await client.query(missingOfIssuer)).rows[0];
  if (missing === null) return [];
  const advice =
    'Write into tokens.sql: grant select, insert, update (revoked_at) on gateway.api_tokens to gateway_owner.';
  const detail = `gateway_owner lacks ${missing} on gateway.api_tokens, so the app cannot make tokens by gateway_issuer.`;
  return [{ ...warn('token_look_up', detail), advice }];
}

/** Decodes records, compares them with their schema, makes plans, and tries writes that are rolled back. */
export async function checkThoroughly(settings: Settings, resources: readonly Resource[]) {
  const { adminUrl, wallKey, redisUrl } = settings;
  const { ids, items } = wallKey === '' ? { ids: [], items: [] } : await sampleWorkspaces(adminUrl);
  const computeMac = makeWorkspaceMac(wallKey);
  if (redisUrl !== '') items.push(await checkRedis(settings));
  items.push(...resources.flatMap(checkOpenPoints), ...(await checkReferences(adminUrl, resources, ids)));
  return {
    items,
    async *replica(
      client: pg.Client,
      { projection }: Inspection,
      views: readonly Item[],
      scans: readonly Item[],
    ): AsyncGenerator<Item[]> {
      yield await checkIndexes(client);
      const locked = scans.filter(({ code }) => code === 'connection');
      for (const [i, resource] of resources.entries()) {
        if (views[i]?.level !== 'ok' || locked.some(({ object }) => object === resource.view)) continue;
        yield await checkIds(client, resource, ids, computeMac);
        if (projection) yield await checkRecords(client, resource, projection, ids, computeMac);
        yield await checkPlans(client, resource);
      }
    },
    /** Tries writes only if nothing that they need is missing. */
    async *primary(client: pg.Client, { projection }: Inspection): AsyncGenerator<Item[]> {
      if (projection === null) return;
      yield await checkIssuer(client);
      for (const resource of resources) {
        const { write, ...compiled } = compileResource(resource, projection, () => undefined);
        if (write === null) continue;
        yield [await checkWrites(client, { ...compiled, write }, ids, computeMac)];
        yield await checkUnique(client, resource, resource.write?.view as string);
      }
    },
  };
}
