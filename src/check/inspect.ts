import pg from 'pg';
import { applicationName } from '../db/connection.js';
import { connectionUrls, serverName } from '../db/connection-url.js';
import type { CheckResult } from '../db/late-check.js';
import type { WorkspaceId } from '../db/statement.js';
import { leaves, type Resource, viewsOf } from '../definition/resource.js';
import { databaseErrorKind } from '../errors.js';
import type { ProjectionOptions } from '../projection/redact.js';
import type { Settings } from '../settings.js';
import { checkCluster, strangersOf } from './cluster.js';
import { type Finding, failure, found, type Item, verdict } from './finding.js';
import { checkOpenPoints } from './open-points.js';
import { checkedProjection } from './projection.js';
import { checkRedis } from './redis.js';
import { checkRole, readerPrivileges, writer } from './role.js';
import { scanItems } from './scans.js';
import { checkFunctions, checkServer, checkTimeZone } from './server.js';
import { checkSession } from './session.js';
import { checkResult, type ServerKind, spared, uncheckedServers } from './spared.js';
import { checkEncryption, checkPooler } from './transport.js';
import { isOccupied, queryCanceled, viewCheck } from './views.js';
import { checkWall, sampleWorkspaces } from './workspaces.js';
import { checkWriteViews } from './write-views.js';

const statementTimeoutMs = 5000;
/** Connections to each replica over which a start checks resources; the pools take more, which are not open yet. */
const resourceConnectionsMax = 4;

/** Opens a connection to the server that is checked. */
type Connect = () => Promise<pg.Client>;

/** The needs of the gateway. */
interface Inspection {
  readonly settings: Settings;
  readonly resources: readonly Resource[];
  /** Null: CODEC_MODULE cannot be loaded, so no value can be decoded. */
  readonly projection: ProjectionOptions | null;
  readonly thorough: boolean;
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
  /** The writer cannot list them. */
  readonly workspaces: Set<WorkspaceId>;
  /** System identifiers of the clusters, by server. */
  readonly systems: Map<string, string>;
}

/**
 * Checks every replica and every server of PRIMARY_URLS at the same time, and throws nothing: a server that cannot be reached
 * is a finding that does not refuse. `serve` starts when no finding refuses. Changes nothing; `thorough`, for `check` alone, also
 * compares records with their schema, scans views for longer, makes plans, and tries writes that are rolled back.
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
  const inspection = { settings, resources, projection, thorough };
  const seen: Seen = { workspaces: new Set(), systems: new Map() };
  const onReplicas = Promise.all(
    replicas.map((url, i) => {
      const name = `replica ${i + 1}`;
      return inspectServer(name, url, settings, (client, connect) =>
        checkReplica(client, inspection, seen, name, connect),
      );
    }),
  );
  const sampled = onReplicas.then(() => [...seen.workspaces]);
  const onPrimaries = connectionUrls(settings.primaryUrls).map((url, i, { length }) => {
    const name = length === 1 ? 'primary' : `primary ${i + 1}`;
    return inspectServer(name, url, settings, (client) => checkPrimary(client, inspection, seen, sampled, name));
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
  const inspection = { settings, resources, projection, thorough: false };
  const seen: Seen = { workspaces: new Set(), systems: new Map() };
  const findings = await inspectServer(kind, url, settings, (client, connect) =>
    kind === 'replica'
      ? checkReplica(client, inspection, seen, kind, connect)
      : checkPrimary(client, inspection, seen, Promise.resolve([]), kind),
  );
  if (system !== undefined && seen.systems.get(kind) !== system)
    return { refusal: 'it belongs to another cluster, or cannot be checked', uncheckedViews: new Set() };
  return checkResult(findings);
}

/**
 * Views and records are most of a start's wait for PostgreSQL, so a start checks them over connections of their own, beside the
 * checks of the server. `check` makes one check after the other: its statements would slow each other down on a replica in use. So
 * does a start through a pooler, which may have no connection to spare.
 */
async function* checkReplica(
  client: pg.Client,
  inspection: Inspection,
  seen: Seen,
  name: string,
  connect: Connect | null,
): AsyncGenerator<Item[]> {
  const { settings, resources, thorough } = inspection;
  const count = Math.min(resources.length, resourceConnectionsMax);
  const more = thorough || connect === null ? [] : await openSome(connect, count);
  try {
    const beside = more.length > 0 ? checkResources(more, inspection, seen) : null;
    beside?.catch(() => undefined); // the checks of the server can throw first
    const server = await checkServer(client, 'replica', settings);
    yield server.items;
    seen.systems.set(name, server.systemIdentifier);
    yield [await checkTimeZone(client, settings.timeZone)];
    yield await checkRole(client, readerPrivileges(resources));
    yield await checkFunctions(client, settings).catch((error) => {
      if (isOccupied(error)) return [broken(error)];
      throw error;
    });
    yield await (beside ?? checkResources([client], inspection, seen));
  } finally {
    for (const each of more) each.end().catch(() => undefined);
  }
}

/** Connections, as many of them as the server grants. */
async function openSome(connect: Connect, count: number): Promise<pg.Client[]> {
  const opened = await Promise.allSettled(Array.from({ length: count }, connect));
  return opened.flatMap((each) => (each.status === 'fulfilled' ? each.value : []));
}

/**
 * Checks the views and the records of all resources, one resource at a time on each of the clients. Items are in the order of the
 * resources. A connection that fails ends the check of its resource alone: the other connections check the rest.
 */
async function checkResources(
  clients: readonly pg.Client[],
  { resources, projection, thorough }: Inspection,
  { workspaces }: Seen,
): Promise<Item[]> {
  const first = clients[0] as pg.Client;
  const checkView = await viewCheck(first, resources, { thorough });
  const scans = await scanItems(first, resources.flatMap(viewsOf));
  const { ids, item } = await sampleWorkspaces(first);
  for (const id of ids) workspaces.add(id);
  const { checkRecords } = await import('./records.js');
  const views: Item[] = [];
  const records: Item[][] = [];
  const rest = resources.entries();
  const locked = scans.filter(({ code }) => code === 'connection').map(({ object }) => object);
  const check = async (client: pg.Client, resource: Resource, i: number, found: Item[]): Promise<void> => {
    if (locked.includes(resource.view)) return;
    const view = await checkView(client, resource);
    views[i] = view;
    if (view.level !== 'ok') return;
    if (ids.length > 0) found.push(...(await checkWall(client, resource, ids, { thorough })));
    if (projection && (thorough || isEncoded(resource)))
      found.push(...(await checkRecords(client, resource, projection, ids, { thorough })));
    if (thorough) found.push(await (await import('./plans.js')).checkPlans(client, resource));
  };
  const checkNext = async (client: pg.Client): Promise<void> => {
    for (const [i, resource] of rest) {
      const found: Item[] = [];
      records[i] = found;
      try {
        await check(client, resource, i, found);
      } catch (error) {
        found.push(unfinished(resource, (error as Error).message));
        if (!isOccupied(error)) return;
      }
    }
  };
  await Promise.all(clients.map(checkNext));
  const untried = [...rest].map(([, resource]) => unfinished(resource, 'no connection is left'));
  return [...views.flat(), ...scans, item, ...records.flat(), ...untried];
}

/** The server counts as one that cannot be reached: a start checks it again before its first use. */
function unfinished({ view }: Resource, reason: string): Item {
  return failure('connection', `The check of the view did not end: ${reason}.`, view);
}

/** Whether values of the resource are decoded: with a wrong key all of them would be null. */
function isEncoded(resource: Resource): boolean {
  return leaves(resource).some(({ field }) => field.codec !== undefined);
}

async function* checkPrimary(
  client: pg.Client,
  { settings, resources, projection, thorough }: Inspection,
  { systems }: Seen,
  workspaces: Promise<readonly WorkspaceId[]>,
  name: string,
): AsyncGenerator<Item[]> {
  const server = await checkServer(client, 'primary', settings);
  yield server.items;
  systems.set(name, server.systemIdentifier);
  yield await checkRole(client, writer);
  const views = await checkWriteViews(client, resources, settings);
  const ofWrites = resources.flatMap(({ write }) => write?.view ?? []);
  const scans = await scanItems(client, [...resources.flatMap(viewsOf), ...ofWrites]);
  yield [...views, ...scans.filter(({ object }) => ofWrites.includes(object))];
  // Writes are tried on a server that accepts them, and where nothing that they need is missing already.
  if (!thorough || projection === null || server.items[0]?.level !== 'ok' || views.some(({ level }) => level !== 'ok'))
    return;
  const sample = await workspaces;
  const [{ compileResource }, { checkWrites }] = await Promise.all([
    import('../definition/compiled.js'),
    import('./writes.js'),
  ]);
  for (const resource of resources) {
    const { write, ...compiled } = compileResource(resource, projection, () => undefined);
    if (write !== null) yield [await checkWrites(client, { ...compiled, write }, sample)];
  }
}

async function inspectServer(
  name: string,
  url: string,
  settings: Settings,
  check: (client: pg.Client, connect: Connect | null) => AsyncGenerator<Item[]>,
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
    for await (const some of check(client, isPooled ? null : connect)) items.push(...some);
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
    application_name: applicationName, // a view can tell sessions apart by it,
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
