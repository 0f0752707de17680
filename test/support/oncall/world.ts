import { randomUUID } from 'node:crypto';
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { freePort } from '../../../demo/cluster/ports.js';
import { projectRoot } from '../../../src/base/paths.js';
import type { StatusReport } from '../../../src/serve/ops/status.js';
import type { Settings } from '../../../src/settings.js';
import { commandLine } from '../command-line.js';
import { asApplied, type FaultCluster, faultCluster } from '../fault-cluster.js';
import { until } from '../patience.js';
import { type Pgbouncer, pgbouncerBinary, startPgbouncer } from '../pgbouncer.js';
import { type RedisServer, startRedis } from '../redis.js';
import { type ServeProcess, serveProcess } from '../serve-process.js';
import { templateName } from '../template.js';

export const routes = ['klanten', 'installaties', 'werkbonnen', 'logboeken', 'write'] as const;
export type Route = (typeof routes)[number];

/** A world has a cluster, Redis and a pooler, a gateway of two workers, and clients of two workspaces that never rest. */
export interface World {
  readonly setUp: FaultCluster;
  readonly redis: RedisServer;
  /** The pooler is in front of the first replica, as a third entry of REPLICA_URLS; null if the machine has none. */
  readonly pooler: Pgbouncer | null;
  readonly serving: ServeProcess;
  /** It is RESOURCES_DIR. */
  readonly definitions: string;
  send(path: string): Promise<number>;
  /** Runs a line of the pages: a command of ours, or SQL on the primary. */
  run(line: string): Promise<void>;
  /** Opens a connection of the app, which ends with the fault. */
  app(): Promise<pg.Client>;
  /** Ends what a fault has left open. */
  endAll(): Promise<void>;
  readonly clients: readonly { readonly route: Route; rounds: number; failures: number; isServed: boolean }[];
  /** Resolves when each client has had the answer to a request that begins now. */
  nextRound(): Promise<boolean>;
  status(): Promise<StatusReport>;
  children(): number[];
  stop(): Promise<void>;
}

export async function startWorld(overrides: Partial<Settings> = {}): Promise<World> {
  const [setUp, redis] = await Promise.all([faultCluster(), startRedis()]);
  const definitions = mkdtempSync(join(tmpdir(), 'oncall-'));
  cpSync(join(projectRoot, 'config/resources'), definitions, { recursive: true });
  await setUp.sql(`create role shop_owner; grant usage on schema app to shop_owner; grant select on app.klanten to shop_owner;
    alter view records.klanten owner to shop_owner; ${asApplied}`);
  const { replicaUrls } = setUp.settings();
  const pooled = { url: replicaUrls.split(' ')[0] as string, mode: 'session' } as const;
  const pooler = pgbouncerBinary === null ? null : await startPgbouncer({ changing: pooled });
  const urls = `${replicaUrls} ${pooler?.url('changing') ?? ''}`.trim();
  const own = {
    replicaUrls: urls,
    redisUrl: redis.url,
    resourcesDir: definitions,
    webConcurrency: 2,
    port: await freePort(),
  };
  const serving = await serveProcess(
    setUp.settings({ ...own, upkeepIntervalMs: 2000, largePagesPerToken: 1, ...overrides }),
  );
  const left: pg.Client[] = [];
  const traffic = await clientsOf(setUp, serving);
  const status = async (): Promise<StatusReport> =>
    (await (
      await fetch(`${serving.opsUrl}/status.json`, { signal: AbortSignal.timeout(5000) })
    ).json()) as StatusReport;
  return {
    ...{ setUp, redis, pooler, serving, definitions, status, ...traffic },
    run: async (line) => {
      if (!line.startsWith('gateway ')) return void (await setUp.sql(line));
      const adminUrl = setUp.cluster.primary.url(templateName);
      const args = line.replace('DIR', 'sql/views').split(' ').slice(1);
      const { code, stderr } = await commandLine(args, { ...setUp.settings(), resourcesDir: definitions, adminUrl });
      if (code !== 0) throw new Error(stderr);
    },
    app: async () => {
      const client = new pg.Client({
        connectionString: setUp.cluster.primary.url(templateName),
        application_name: 'app',
      });
      client.on('error', () => undefined); // a remedy may end it
      await client.connect();
      left.push(client);
      return client;
    },
    endAll: async () => {
      for (const client of left.splice(0)) client.end().catch(() => undefined);
    },
    children: () => {
      const { pid } = serving.child;
      return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(/\s+/).map(Number);
    },
    stop: async () => {
      await traffic.end();
      await serving.stop();
      await pooler?.stop();
      await redis.stop();
      await setUp.stop();
      rmSync(definitions, { recursive: true });
    },
  };
}

const [pauseMs, msMax] = [300, 60_000];

async function clientsOf({ customerId, token }: FaultCluster, { url }: ServeProcess) {
  const scopes = ['read:klanten', 'read:installaties', 'read:werkbonnen', 'read:logboeken', 'write:installaties'];
  const tokens = [await token({ scopes }), await token({ scopes, workspace: 1 })] as const;
  const body = JSON.stringify({ customerId, naam: 'oncall' });
  const send = async (path: string, post = false, by: string = tokens[0]): Promise<number> => {
    const headers = {
      authorization: `Bearer ${by}`,
      'content-type': 'application/json',
      'idempotency-key': randomUUID(),
    };
    const init = { headers, signal: AbortSignal.timeout(30_000), ...(post && { method: 'POST', body }) };
    const answered = (response: Response) => response.arrayBuffer().then(() => response.status);
    return fetch(`${url}/api/v1${path}`, init)
      .then(answered)
      .catch(() => 0);
  };
  const by = routes.flatMap((route) =>
    (route === 'write' ? tokens.slice(0, 1) : tokens).map((each) => ({ route, each })),
  );
  const clients = by.map(({ route, each }) => ({ route, by: each, rounds: 0, failures: 0, isServed: true }));
  let isOver = false;
  const asking = clients.map(async (client) => {
    const path = client.route === 'write' ? '/installaties' : `/${client.route}?perPage=20`;
    for (; !isOver; client.rounds++) {
      const [code] = await Promise.all([send(path, client.route === 'write', client.by), sleep(pauseMs)]);
      client.isServed = code === 200 || code === 201;
      if (!client.isServed) client.failures++;
    }
  });
  const nextRound = (): Promise<boolean> => {
    const before = clients.map(({ rounds }) => rounds);
    return until(() => clients.every(({ rounds }, i) => rounds > (before[i] as number) + 1), msMax);
  };
  const end = async (): Promise<void> => {
    isOver = true;
    await Promise.all(asking);
  };
  return { send, clients, nextRound, end };
}

/** The gateway names a fault by the words. */
export interface Fault {
  /** The status leads to this part of docs/operate/troubleshooting.md; null: the log alone names it. */
  readonly part: string | null;
  readonly words: RegExp;
  /** The part has it so, and a test can run it. */
  readonly remedy?: string;
  /** Requests of these may fail; of others none may. */
  readonly harms: readonly Route[];
  readonly make: (world: World) => Promise<unknown>;
  readonly cure: (world: World) => Promise<unknown>;
}

export interface Outcome {
  /** The last of the faults was named after so long; null: not within a minute. */
  readonly namedMs: number | null;
  readonly words: readonly (string | undefined)[];
  /** Failed requests of other routes, such as "write 3". */
  readonly collateral: readonly string[];
  /** The time begins with the remedy; null: not within a minute. */
  readonly wellMs: number | null;
}

/**
 * `within` tells how long a minute is. Makes faults at once, waits for their names, runs their remedies, and waits until no fault is
 * current and each client is served.
 */
export async function tryFaults(world: World, faults: readonly Fault[], within = until): Promise<Outcome> {
  const { status, serving, clients } = world;
  const named = (lines: readonly string[], ofLog: boolean) =>
    faults.map(({ part, words }) =>
      lines.find((line) => (part === null) === ofLog && words.test(line) && line.includes(part ? `#${part}]` : '')),
    );
  const nowNamed = async () =>
    named(
      (await status()).faults.map(({ sentence, link }) => `${sentence} [${link}]`),
      false,
    );
  await within(async () => (await nowNamed()).every((line) => line === undefined), 2 * msMax, 250);
  await world.nextRound();
  const before = clients.map(({ failures }) => failures);
  const logFrom = serving.log().length;
  const startedMs = performance.now();
  let words = faults.map((): string | undefined => undefined);
  const areNamed = async (): Promise<boolean> => {
    const [now, logged] = [await nowNamed().catch(() => []), named(serving.log().slice(logFrom).split('\n'), true)];
    words = words.map((line, i) => line ?? now[i] ?? logged[i]);
    return words.every((line) => line !== undefined);
  };
  let namedMs: number | null = null;
  try {
    for (const { make } of faults) await make(world);
    if (await within(areNamed, msMax, 250)) namedMs = performance.now() - startedMs;
  } finally {
    for (const { cure } of [...faults].reverse())
      await cure(world).catch((error: Error) => console.error(error.message));
    await world.endAll();
  }
  const curedMs = performance.now();
  const isWell = async (): Promise<boolean> =>
    clients.every(({ isServed }) => isServed) &&
    (await status()).faults.every(({ sentence }) => sentence.startsWith('In the last minute'));
  const wellMs = (await within(() => isWell().catch(() => false), 2 * msMax, 250)) ? performance.now() - curedMs : null;
  const harmed = new Set(faults.flatMap(({ harms }) => harms));
  const collateral = clients.flatMap(({ route, failures }, i) => {
    const failed = failures - (before[i] as number);
    return failed > 0 && !harmed.has(route) ? [`${route} ${failed}`] : [];
  });
  return { namedMs, words, collateral, wellMs };
}
