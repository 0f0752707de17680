import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { makeWorkspaceMac } from '../../postgres/workspace-mac.js';
import { compileResource } from '../../resource/compiled.js';
import { getPlace, listLeaves, openPrefix, type Resource } from '../../resource/definition/resource.js';
import type { Settings } from '../../settings.js';
import { type Item, makeItem, summarizeFaults } from '../finding.js';
import type { CheckInput } from '../setting-checks.js';
import { checkIndexes, checkPlans } from './plans.js';
import { checkReferences } from './references.js';
import { checkRecords } from './sampled-records.js';
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
  return [{ ...makeItem('warning', 'token_look_up', detail), advice }];
}

/** Waits for the first answer of Redis: it must accept the login and run the script. */
async function checkRedis(settings: Settings): Promise<Item> {
  const { connectRedisPeers, notConnected } = await import('../../serve/peers/redis.js'); // a gateway without Redis does not load it
  const peers = connectRedisPeers(settings, 1, () => undefined);
  const deadlineMs = performance.now() + 5000;
  const isConnecting = (): boolean => (peers.redis() ?? { reason: notConnected }).reason === notConnected;
  while (isConnecting() && performance.now() < deadlineMs) await sleep(20);
  const reason = (peers.redis() ?? { reason: 'no answer' }).reason;
  peers.close();
  return reason
    ? makeItem('failed', 'redis', `It does not answer as it must: ${reason}.`)
    : makeItem('ok', 'redis', 'It answers, accepts the login and runs scripts that write.');
}

export function checkOpenPoints(resource: Resource): Item[] {
  const { description, name, file } = resource;
  const described = [
    ['/description', description] as const,
    ...listLeaves(resource).map(({ field, path }) => [`${getPlace(path)}/description`, field.description] as const),
  ];
  const points = described
    .filter(([, text]) => text.startsWith(openPrefix))
    .map(([at, text]) => `${at}: ${text.slice(openPrefix.length).replace(/[.]$/, '')}`);
  return points.length === 0 ? [] : [summarizeFaults('open_points', points, { object: name, level: 'warning', file })];
}

/** Decodes records, compares them with their schema, makes plans, and tries writes that are rolled back. */
export async function checkThoroughly(settings: Settings, resources: readonly Resource[]) {
  const { adminUrl, wallKey, redisUrl } = settings;
  const { ids, items } = wallKey === '' ? { ids: [], items: [] } : await sampleWorkspaces(adminUrl);
  const sample = { ids, computeMac: makeWorkspaceMac(wallKey) };
  if (redisUrl !== '') items.push(await checkRedis(settings));
  items.push(...resources.flatMap(checkOpenPoints), ...(await checkReferences(adminUrl, resources, ids)));
  return {
    items,
    async *checkReplica(
      client: pg.Client,
      { projection }: CheckInput,
      views: readonly Item[],
      scans: readonly Item[],
    ): AsyncGenerator<Item[]> {
      yield await checkIndexes(client);
      const locked = scans.filter(({ code }) => code === 'connection');
      for (const [i, resource] of resources.entries()) {
        if (views[i]?.level !== 'ok' || locked.some(({ object }) => object === resource.view)) continue;
        yield await checkIds(client, resource, sample);
        if (projection) yield await checkRecords(client, resource, projection, sample);
        yield await checkPlans(client, resource);
      }
    },
    /** Tries writes only if nothing that they need is missing. */
    async *checkPrimary(client: pg.Client, { projection }: CheckInput): AsyncGenerator<Item[]> {
      if (projection === null) return;
      yield await checkIssuer(client);
      for (const resource of resources) {
        const { write, ...compiled } = compileResource(resource, projection, () => undefined);
        if (write === null) continue;
        yield [await checkWrites(client, { ...compiled, write }, sample)];
        yield await checkUnique(client, resource, resource.write?.view as string);
      }
    },
  };
}
