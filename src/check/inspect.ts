import pg from 'pg';
import type { Resource } from '../definition/resource.js';
import { plainViewsOf } from '../definition/walls.js';
import { databaseErrorKind } from '../errors.js';
import { connectionUrls, serverName } from '../postgres/connection-url.js';
import type { CheckResult } from '../postgres/probe.js';
import type { WorkspaceId } from '../postgres/statement.js';
import type { ProjectionOptions } from '../projection/redact.js';
import type { Settings } from '../settings.js';
import { type Finding, failure, found, type Item, verdict } from './finding.js';
import { checkOpenPoints } from './open-points.js';
import { checkedProjection } from './projection.js';
import { checkRedis } from './redis.js';
import { checkRole, readerPrivileges, writer } from './role.js';
import { scanItems } from './scans.js';
import { checkFunctions, checkServer, checkTimeZone } from './server.js';
import { checkEncryption, checkPooler, checkSession } from './session.js';
import { checkCluster, checkResult, type ServerKind, spared, strangersOf, uncheckedServers } from './spared.js';
import { checkApplied, isOccupied, queryCanceled, viewCheck } from './views.js';
import { checkIds, sampleWorkspaces } from './workspaces.js';
import { checkWriteViews } from './write-views.js';

const statementTimeoutMs = 5000;

/** Opens a connection to the server that is checked. */
type Connect = () => Promise<pg.Client>;

/** The needs of the gateway. */
interface Inspection {
  readonly settings: Settings;
  readonly resources: readonly Resource[];
  /** Null: CODEC_MODULE cannot be loaded, so no value can be decoded. */
  readonly projection: ProjectionOptions | null;
  readonly thorough: boolean;
  /** Workspaces whose records `check` reads; a start knows none. */
  readonly workspaces: readonly WorkspaceId[];
}

/** The result of an inspection. */
export interface Inspected {
  readonly findings: readonly Finding[];
  /** Replicas and servers of PRIMARY_URLS, each counted from 0, that must be checked before their first use, or some of their views. */
  readonly unchecked: ReadonlyMap<number, CheckResult>;
  readonly uncheckedPrimaries: ReadonlyMap<number, CheckResult>;
  /** System identifier of the cluster; undefined when no server answered. */
  readonly system: string | undefined;
}

/** Facts of servers that the findings of others need. */
interface Seen {
  /** System identifiers of the clusters, by server. */
  readonly systems: Map<string, string>;
}

/**
 * Checks every replica and every server of PRIMARY_URLS at the same time, and throws nothing: a server that cannot be reached
 * is a finding that does not refuse. `serve` starts when no finding refuses. Changes nothing; `thorough`, for `check` alone, also
 * decodes records, compares them with their schema, makes plans, and tries writes that are rolled back.
 */
export async function inspect(
  settings: Settings,
  resources: readonly Resource[],
  { thorough = false } = {},
): Promise<Inspected> {
  const replicas = connectionUrls(settings.replicaUrls);
  if (replicas.length === 0)
    return {
      findings: [found('settings', verdict('replicas', ['REPLICA_URLS is not set: there is nothing to read from']))],
      unchecked: new Map(),
      uncheckedPrimaries: new Map(),
      system: undefined,
    };
  const { projection, items } = await checkedProjection(settings, resources);
  const sample = thorough ? await sampleWorkspaces(settings.adminUrl) : { ids: [] };
  if ('item' in sample) items.push(sample.item);
  const inspection = { settings, resources, projection, thorough, workspaces: sample.ids };
  const seen: Seen = { systems: new Map() };
  const onReplicas = Promise.all(
    replicas.map((url, i) => {
      const name = `replica ${i + 1}`;
      return inspectServer(name, url, settings, (client) => checkReplica(client, inspection, seen, name));
    }),
  );
  const onPrimaries = connectionUrls(settings.primaryUrls).map((url, i, { length }) => {
    const name = length === 1 ? 'primary' : `primary ${i + 1}`;
    return inspectServer(name, url, settings, (client) => checkPrimary(client, inspection, seen, name));
  });
  const servers = [...(await onReplicas), ...(await Promise.all(onPrimaries))].flat();
  const strangers = strangersOf(seen.systems);
  if (seen.systems.size > 1) items.push(checkCluster(seen.systems));
  if (thorough && settings.redisUrl !== '') items.push(await checkRedis(settings, settings.connectTimeoutMs));
  if (thorough) items.push(...resources.flatMap(checkOpenPoints));
  const findings = [...items.map((item) => found('settings', item)), ...spared(servers, strangers)];
  const [system] = [...seen.systems].filter(([name]) => !strangers.has(name)).map(([, id]) => id);
  const uncheckedOf = (kind: ServerKind): ReadonlyMap<number, CheckResult> =>
    uncheckedServers(kind, servers, strangers);
  return { findings, unchecked: uncheckedOf('replica'), uncheckedPrimaries: uncheckedOf('primary'), system };
}

/**
 * Checks a server that could not be checked at the start, where `system` was the cluster. A
 * server of PRIMARY_URLS that is in recovery has no fault: it takes no writes.
 */
export async function checkServerLate(
  kind: ServerKind,
  url: string,
  { settings, resources, system }: Pick<Inspection, 'settings' | 'resources'> & Pick<Inspected, 'system'>,
): Promise<CheckResult> {
  const { projection } = await checkedProjection(settings, resources);
  const inspection = { settings, resources, projection, thorough: false, workspaces: [] };
  const seen: Seen = { systems: new Map() };
  const findings = await inspectServer(kind, url, settings, (client) =>
    kind === 'replica' ? checkReplica(client, inspection, seen, kind) : checkPrimary(client, inspection, seen, kind),
  );
  if (system !== undefined && seen.systems.get(kind) !== system)
    return { refusal: 'it belongs to another cluster, or cannot be checked', uncheckedViews: new Set() };
  return checkResult(findings);
}

async function* checkReplica(
  client: pg.Client,
  inspection: Inspection,
  seen: Seen,
  name: string,
): AsyncGenerator<Item[]> {
  const { settings, resources } = inspection;
  const server = await checkServer(client, 'replica', settings);
  yield server.items;
  seen.systems.set(name, server.systemIdentifier);
  yield [await checkTimeZone(client, settings.timeZone)];
  yield await checkRole(client, readerPrivileges(resources));
  yield await checkFunctions(client, settings).catch((error) => {
    if (isOccupied(error)) return [broken(error)];
    throw error;
  });
  yield* checkResources(client, inspection);
}

/** Checks the views of all resources, and for `check` the records of those whose views are as they should be. */
async function* checkResources(
  client: pg.Client,
  { resources, projection, thorough, workspaces }: Inspection,
): AsyncGenerator<Item[]> {
  const views = resources.map(await viewCheck(client, resources));
  yield views;
  yield await checkApplied(client, resources);
  const scans = await scanItems(client, resources.flatMap(plainViewsOf));
  yield scans;
  if (!thorough) return;
  const locked = scans.filter(({ code }) => code === 'connection').map(({ object }) => object);
  const [{ checkRecords }, { checkPlans }] = await Promise.all([import('./records.js'), import('./plans.js')]);
  for (const [i, resource] of resources.entries()) {
    if (views[i]?.level !== 'ok' || locked.includes(resource.view)) continue;
    try {
      yield await checkIds(client, resource, workspaces);
      if (projection) yield await checkRecords(client, resource, projection, workspaces);
      yield [await checkPlans(client, resource)];
    } catch (error) {
      if (!isOccupied(error)) throw error;
      yield [failure('connection', `The check of the view did not end: ${(error as Error).message}.`, resource.view)];
    }
  }
}

async function* checkPrimary(
  client: pg.Client,
  { settings, resources, projection, thorough, workspaces }: Inspection,
  { systems }: Seen,
  name: string,
): AsyncGenerator<Item[]> {
  const server = await checkServer(client, 'primary', settings);
  yield server.items;
  systems.set(name, server.systemIdentifier);
  yield await checkRole(client, writer);
  const views = await checkWriteViews(client, resources, settings);
  const ofWrites = resources.flatMap(({ write }) => write?.view ?? []);
  const scans = await scanItems(client, [...resources.flatMap(plainViewsOf), ...ofWrites]);
  yield [...views, ...scans.filter(({ object }) => ofWrites.includes(object))];
  // Writes are tried on a server that accepts them, and where nothing that they need is missing already.
  if (!thorough || projection === null || server.items[0]?.level !== 'ok' || views.some(({ level }) => level !== 'ok'))
    return;
  const [{ compileResource }, { checkWrites }] = await Promise.all([
    import('../definition/compiled.js'),
    import('./writes.js'),
  ]);
  for (const resource of resources) {
    const { write, ...compiled } = compileResource(resource, projection, () => undefined);
    if (write !== null) yield [await checkWrites(client, { ...compiled, write }, workspaces)];
  }
}

async function inspectServer(
  name: string,
  url: string,
  settings: Settings,
  check: (client: pg.Client) => AsyncGenerator<Item[]>,
): Promise<Finding[]> {
  const items: Item[] = [];
  const connect: Connect = () => connectTo(url, settings);
  const kind = name.startsWith('primary') ? 'primary' : 'replica';
  let client: pg.Client | null = null;
  try {
    client = await connect();
    items.push(verdict('connection', [], 'It answers.'), checkEncryption(client));
    const { isPooled, item } = await checkPooler(client, connect, settings.namedStatements);
    items.push(item, ...(await checkSession(client, kind, settings, isPooled)));
    for await (const some of check(client)) items.push(...some);
  } catch (error) {
    items.push(...tlsFault(error), broken(error));
  } finally {
    await client?.end().catch(() => undefined);
  }
  return items.map((item) => found(`${name} (${serverName(url)})`, item));
}

async function connectTo(url: string, { connectTimeoutMs }: Settings): Promise<pg.Client> {
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: connectTimeoutMs,
    query_timeout: statementTimeoutMs,
    application_name: 'gateway-check',
  });
  client.on('error', () => undefined); // the statement on a lost connection rejects
  await client.connect();
  return client;
}

/** The server cannot be reached now, or refuses permanently: a wrong password, an unknown database. */
function broken(error: unknown): Item {
  const { code, message } = error as { code?: string; message: string };
  const reason = message || code || 'no reason given';
  // Every statement fails then, so no other finding can say it.
  if (code === '0A000') return verdict('session', [`default_transaction_isolation does not fit: ${reason}`]);
  if (code === queryCanceled)
    return failure('role_settings', 'statement_timeout of the role ends the statements of the check.');
  const isLoginRefused = /^(28|3D)/.test(code ?? ''); // a wrong password, or no such database
  if (isLoginRefused || databaseErrorKind(error) === 'permanent')
    return verdict('connection', [`it refuses: ${reason}${code ? ` (${code})` : ''}`]);
  return failure('connection', `It cannot be ${isOccupied(error) ? 'checked' : 'reached'} now: ${reason}.`);
}

/** The failure of TLS, beside that of the connection, which says nothing about certificates. */
function tlsFault(error: unknown): Item[] {
  const { code = '', message } = error as { code?: string; message: string };
  const isTls = /CERT|SIGNED|^ERR_(TLS|SSL)|^EPROTO$/.test(code) || /\bSSL\b|\bTLS\b/.test(message);
  return isTls ? [failure('encryption', `TLS fails: ${message}.`)] : [];
}
