import { randomBytes, randomUUID } from 'node:crypto';
import { PassThrough } from 'node:stream';
import type { ExecutionContext } from 'ava';
import { type Cluster, startCluster } from '../../demo/cluster/cluster.js';
import { openKeptSessions, type PgNode, type ServerSettings } from '../../demo/cluster/node.js';
import type { Gateway } from '../../src/serve/gateway.js';
import { startGateway } from '../../src/serve/gateway.js';
import { hashToken, makeToken } from '../../src/serve/http/token-format.js';
import { loadSettings, type Settings } from '../../src/settings.js';
import { limitMs, until } from './patience.js';
import { startSeeded } from './seeded-cluster.js';
import { type Shared, shared } from './shared.js';
import { type TcpProxy, tcpProxy } from './tcp-proxy.js';
import { makeTemplate, type SharedTemplate, templateName } from './template.js';
import { wallKey } from './walls.js';

/** The gateway's connections are told from ours by the application name of its roles. */
const gatewayName = 'workspace-data-gateway';

/** A primary and replicas of the test file's own, to be harmed, with the reference app in a database. */
export interface FaultCluster {
  readonly cluster: Cluster;
  readonly workspaces: readonly { readonly id: string; readonly ownerId: string }[];
  /** It belongs to the first workspace. */
  readonly customerId: string;
  /** The proxies are in front of the replicas; a gateway started with `proxied` goes through them. */
  readonly proxies: readonly TcpProxy[];
  settings(overrides?: Partial<Settings>, proxied?: boolean): Settings;
  gateway(overrides?: Partial<Settings>, proxied?: boolean): Promise<FaultGateway>;
  /** Runs SQL on the primary, as superuser, in the app's database. */
  sql<Row extends object>(text: string, values?: unknown[]): Promise<Row[]>;
  token(options?: { workspace?: number; scopes?: readonly string[]; expiresAt?: Date }): Promise<string>;
  /** Resolves when these replicas, else all that run, have replayed what the primary has written. */
  caughtUp(nodes?: readonly PgNode[]): Promise<void>;
  /** Makes every installation cost so many milliseconds to read, so that a page takes as long as a test needs. */
  pace(msPerRow: number): Promise<void>;
  stop(): Promise<void>;
}

export interface FaultGateway {
  readonly gateway: Gateway;
  /** Completes a path of the API: url('/klanten'). */
  url(path: string): string;
  /** Reads the value of a metric whose labels include these; 0 when there is none. */
  metric(name: string, labels?: Readonly<Record<string, string>>): Promise<number>;
  log(): string;
  /** Fails the test unless pools, database sessions and sockets are what they are at rest. */
  backToNormal(t: ExecutionContext): Promise<void>;
  stop(): Promise<void>;
}

/**
 * Starts it all; a few seconds, and more with `pgBin`: programs of another version cannot begin with the seeded copy, and seed so many
 * `rows`.
 */
export async function faultCluster(
  options: {
    replicas?: number;
    settings?: ServerSettings;
    replicaSettings?: ServerSettings;
    pgBin?: string;
    rows?: string;
  } = {},
): Promise<FaultCluster> {
  const clusterOptions = {
    replicas: options.replicas ?? 2,
    settings: {
      fsync: 'off',
      full_page_writes: 'off',
      shared_buffers: '32MB',
      wal_receiver_status_interval: '1s',
      ...options.settings,
    },
    ...(options.replicaSettings && { replicaSettings: options.replicaSettings }),
    ...(options.pgBin !== undefined && { pgBin: options.pgBin }),
  };
  const isCopied = shared !== null && options.pgBin === undefined;
  const cluster = await (isCopied ? startSeeded(shared.seeded, clusterOptions) : startCluster(clusterOptions));
  const cleanUps: (() => Promise<unknown>)[] = [() => cluster.stop()];
  const stop = async (): Promise<void> => {
    for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
  };
  try {
    return await fill(
      cluster,
      isCopied ? { keys: shared.keys, ...shared.apps.first } : await seed(cluster, options.rows),
      cleanUps,
      stop,
    );
  } catch (error) {
    await stop();
    throw error;
  }
}

async function fill(
  cluster: Cluster,
  { keys, workspaces }: Seeded,
  cleanUps: (() => Promise<unknown>)[],
  stop: () => Promise<void>,
): Promise<FaultCluster> {
  const { primary, replicas } = cluster;
  const proxies = await Promise.all(replicas.map((node) => tcpProxy(node.port)));
  cleanUps.push(() => Promise.all(proxies.map((proxy) => proxy.close())));
  const inApp = openKeptSessions(primary.url(templateName));
  const sql = async <Row extends object>(text: string, values: unknown[] = []): Promise<Row[]> =>
    (await inApp.query(text, values)).rows as Row[];
  for (const statement of pacing) await sql(statement);

  const caughtUp: FaultCluster['caughtUp'] = (nodes) => cluster.caughtUp(nodes);
  const settings: FaultCluster['settings'] = (overrides = {}, proxied = false) =>
    loadSettings(
      {},
      {
        host: '127.0.0.1',
        port: 0,
        opsPort: 0,
        replicaUrls: replicas
          .map((node, i) => readerUrl(node, proxied ? (proxies[i] as TcpProxy).port : node.port))
          .join(' '),
        primaryUrls: primary.url(templateName, 'gateway_writer'),
        dataKeys: JSON.stringify(keys),
        wallKey,
        rateLimitPerMinute: 1_000_000,
        authFailuresPerMinute: 1_000_000,
        publicRequestsPerMinute: 1_000_000,
        perPageMax: 200_000,
        upkeepIntervalMs: 3_600_000,
        fitnessIntervalMs: 3_600_000, // tests change views by hand
        logLevel: 'debug',
        ...{ connectTimeoutMs: limitMs(1000), probeDeadlineMs: limitMs(1000), resumeMs: limitMs(2500) },
        ...{ detailWaitMs: limitMs(200), writeWaitMs: limitMs(4000), writeTimeoutMs: Math.min(60_000, limitMs(5000)) },
        ...(overrides.queueWaitMs !== undefined && { detailWaitMs: overrides.queueWaitMs }),
        ...overrides,
      },
    );
  const token: FaultCluster['token'] = async ({ workspace = 0, scopes = readScopes, expiresAt } = {}) => {
    const text = makeToken();
    const { id, ownerId } = workspaces[workspace] as { id: string; ownerId: string };
    await sql(
      'insert into app.api_tokens (id, workspace_id, created_by, naam, token_hash, scopes, expires_at) values ($1, $2, $3, $4, $5, $6, $7)',
      [randomUUID(), id, ownerId, 'test', hashToken(text), scopes, expiresAt ?? null],
    );
    await caughtUp();
    return text;
  };
  const pace = async (msPerRow: number): Promise<void> => {
    await sql(`comment on schema fault is '${msPerRow}'`);
    await caughtUp();
  };
  const allowed: { sessions: number } = { sessions: 0 };
  const gateway: FaultCluster['gateway'] = async (overrides = {}, proxied = false) => {
    const running = await startFaultGateway(settings(overrides, proxied), replicas, proxied ? 3 : 1, allowed);
    cleanUps.push(running.stop);
    return running;
  };
  const [customer] = await sql<{ id: string }>('select id from app.klanten where workspace_id = $1 limit 1', [
    workspaces[0]?.id,
  ]);
  const customerId = customer?.id as string;
  await caughtUp();
  return { cluster, workspaces, customerId, proxies, settings, gateway, sql, token, caughtUp, pace, stop };
}

type Seeded = Pick<Shared, 'keys'> & SharedTemplate;

/** Serves programs that run without `npm test`, and other versions. */
async function seed(cluster: Cluster, rows = 'small'): Promise<Seeded> {
  const keys = Object.fromEntries(['k1', 'k2', 'k3'].map((id) => [id, randomBytes(32).toString('base64')]));
  return { keys, ...(await makeTemplate(cluster, keys, { rows })) };
}

const readScopes = ['read:klanten', 'read:installaties', 'read:werkbonnen', 'read:logboeken'];

/** `migrate` made the views so, as far as `check` knows. Of the objects of core it notes other states. */
export const asApplied = `update gateway.applied_files set digest = gateway.digest_of(objects), sources = gateway.sources_of(objects)
  where root <> 'core' and digest is not null`;

/**
 * A column of the view of installations has a brake, and only pages select it. The brake reads as its caller, who may read the comment on
 * a schema.
 */
const pacing = [
  'create schema fault',
  'create table fault.pace as select 0::float8 as ms',
  `create function fault.paced(value text) returns text language plpgsql stable as $$
     declare pause float8 := obj_description('fault'::regnamespace, 'pg_namespace');
     begin
       if pause > 0 then perform pg_sleep(pause / 1000); end if;
       return value;
     end $$`,
  `do $$ begin
     execute 'create or replace view records.installaties as '
       || regexp_replace(pg_get_viewdef('records.installaties'), '((\\w+\\.)?interne_notities),', 'fault.paced(\\1) as interne_notities,');
   end $$`,
  asApplied,
];

function readerUrl(node: PgNode, port: number): string {
  return node.url(templateName, 'gateway_reader').replace(`:${node.port}/`, `:${port}/`);
}

/**
 * `socketsEach` is what a connection costs this process: with a proxy in it, two more. `allowed` counts what all
 * gateways of the cluster may hold on one server.
 */
async function startFaultGateway(
  settings: Settings,
  nodes: readonly PgNode[],
  socketsEach: number,
  allowed: { sessions: number },
): Promise<FaultGateway> {
  const lines: string[] = [];
  const destination = new PassThrough();
  destination.on('data', (chunk: Buffer) => lines.push(chunk.toString()));
  const gateway = await startGateway(settings, destination);
  const socketsAtRest = sockets();
  const metrics = async (): Promise<string> => (await fetch(`${gateway.opsUrl}/metrics`)).text();
  const metric: FaultGateway['metric'] = async (name, labels = {}) => sumOf(await metrics(), name, labels);
  const poolMax = settings.shortConnections + settings.longConnections;
  allowed.sessions += poolMax + 1;
  const backToNormal: FaultGateway['backToNormal'] = async (t) => {
    const strays = async (): Promise<string[]> => {
      const text = await metrics();
      const idle = ['gateway_pool_in_flight', 'gateway_pool_waiting', 'gateway_large_pages'];
      const busy = idle.filter((name) => sumOf(text, name, {}) !== 0);
      if (sumOf(text, 'gateway_pool_connections', {}) > poolMax * nodes.length) busy.push('pool_connections');
      for (const node of nodes.filter(({ running }) => running)) {
        const [seen] = await sessions(node);
        if (Number(seen?.active) > 0 || Number(seen?.all) > allowed.sessions)
          busy.push(`${node.name}: ${JSON.stringify(seen)}`);
      }
      // Each may grow its pools to their bounds, and keeps the connection the metrics came over.
      const socketsMax = socketsAtRest + poolMax * nodes.length * socketsEach + 16;
      if (sockets() > socketsMax) busy.push(`${sockets()} sockets, ${socketsMax} expected`);
      return busy;
    };
    let last: string[] = [];
    const calm = async (): Promise<boolean> => {
      last = await strays();
      return last.length === 0;
    };
    if (await until(calm, 20_000, 50)) t.pass();
    else t.fail(`not back to normal: ${last.join('; ')}`);
  };
  let stopped: Promise<void> | undefined;
  return {
    gateway,
    url: (path) => `${gateway.url}/api/v1${path}`,
    metric,
    log: () => lines.join(''),
    backToNormal,
    stop: () => {
      stopped ??= gateway.stop();
      return stopped;
    },
  };
}

/** Counts the gateway's sessions on a server: all, and those running anything but our question about them. */
function sessions(node: PgNode): Promise<{ all: string; active: string }[]> {
  return node.query(
    `select count(*)::text as all, count(*) filter (where state <> 'idle' and query !~ 'pg_is_in_recovery|pg_depend')::text as active
     from pg_stat_activity where application_name = $1 and usename = 'gateway_reader'`,
    [gatewayName],
  );
}

/** Counts open sockets of this thread; test files share a process, and so its descriptors. */
function sockets(): number {
  return process.getActiveResourcesInfo().filter((kind) => kind === 'TCPSocketWrap').length;
}

function sumOf(text: string, name: string, labels: Readonly<Record<string, string>>): number {
  let sum = 0;
  for (const line of text.split('\n')) {
    const match = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line);
    const fits = Object.entries(labels).every(([label, value]) => match?.[2]?.includes(`${label}="${value}"`));
    if (match?.[1] === name && fits) sum += Number(match[3]);
  }
  return sum;
}
