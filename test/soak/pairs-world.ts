import { randomUUID } from 'node:crypto';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { PgNode } from '../../demo/cluster/node.js';
import { freePort } from '../../demo/cluster/ports.js';
import { projectRoot } from '../../src/base/paths.js';
import { runAsAdmin } from '../../src/postgres/admin.js';
import type { Readiness } from '../../src/serve/ops/status.js';
import { type FaultCluster, faultCluster } from '../support/fault-cluster.js';
import type { Page } from '../support/lists.js';
import { type Pgbouncer, pgbouncerBinary, startPgbouncer } from '../support/pgbouncer.js';
import { type RedisServer, startRedis } from '../support/redis.js';
import { type ServeProcess, serveProcess } from '../support/serve-process.js';
import { templateName } from '../support/template.js';
import { wallKey } from '../support/walls.js';

// A gateway of two workers over two replicas, one behind PgBouncer, with Redis, and clients of two workspaces that check each answer.

/** The parts of a readiness that name a verdict. */
export type Verdict = 'replica' | 'primary' | 'redis' | 'refused' | 'locked';

/** A statement of a superuser on the server that takes writes. */
type Sql = (text: string) => Promise<object[]>;

/** Sentences that say which promise was broken. */
export type Violations = Set<string>;

export interface World {
  readonly setUp: FaultCluster;
  readonly serving: ServeProcess;
  readonly redis: RedisServer;
  readonly pooler: Pgbouncer | null;
  /** The file with the key of the wall. */
  readonly keyFile: string;
  readonly clients: readonly Client[];
  readonly violations: Violations;
  /** The server that takes writes; an operation replaces it. */
  primary: PgNode;
  /** Writes klanten.json, has the gateway reload, and leaves a definition there that is not released; one at a time. */
  reload(text: string, event: RegExp): Promise<void>;
  readonly sql: Sql;
  /** The definition of klanten that is released. */
  readonly released: string;
  stop(): Promise<void>;
}

const scopes = ['read:klanten', 'read:installaties', 'read:werkbonnen', 'read:logboeken', 'write:installaties'];
/** Statuses that a client repeats. */
const repeated = new Set([429, 503]);
/** A walk or a write counts as one without an end after it. */
const walkMsMax = 90_000;

/** `kinds` of verdicts that the gateway has about servers now. */
export async function verdictsOf({ serving }: World): Promise<{ readonly kind: Verdict; readonly text: string }[]> {
  const response = await fetch(`${serving.opsUrl}/readyz`).catch(() => null);
  if (response === null) return [];
  const { replicas, primary, redis, refused, locked } = (await response.json()) as Readiness;
  const unused = replicas.filter(({ state }) => state === 'not used');
  const named = (kind: Verdict, all: readonly object[]) => all.map((one) => ({ kind, text: JSON.stringify(one) }));
  return [
    ...named('replica', unused),
    ...named('primary', primary?.healthy === false ? [primary] : []),
    ...named('redis', redis?.healthy === false ? [redis] : []),
    ...named('refused', refused),
    ...named('locked', locked),
  ];
}

/** Tries until it succeeds, for as long as a failover may take. */
export async function again<T>(work: () => Promise<T>): Promise<T> {
  for (let tries = 0; ; tries++)
    try {
      return await work();
    } catch (error) {
      if (tries === 60) throw error;
      await sleep(500);
    }
}

export async function startWorld(): Promise<World> {
  const setUp = await faultCluster();
  const redis = await startRedis();
  const folder = mkdtempSync(join(tmpdir(), 'pairs-'));
  const [definition, keyFile] = [join(folder, 'resources/klanten.json'), join(folder, 'wall_key')];
  cpSync(join(projectRoot, 'config/resources'), join(folder, 'resources'), { recursive: true });
  writeFileSync(keyFile, wallKey);
  const released = readFileSync(definition, 'utf8');
  const { pooler, replicaUrls } = await throughPooler(setUp);
  const { wallKey: _, ...settings } = setUp.settings({
    ...{ replicaUrls, redisUrl: redis.url, resourcesDir: join(folder, 'resources'), webConcurrency: 2 },
    ...{ port: await freePort(), opsPort: await freePort(), fitnessIntervalMs: 1000, logLevel: 'info' },
    primaryUrls: [setUp.cluster.primary, ...setUp.cluster.replicas]
      .map((node) => node.url(templateName, 'gateway_writer'))
      .join(' '),
  });
  const serving = await serveProcess(settings, { env: { WALL_KEY_FILE: keyFile } });
  const { kvkNummer: _left, ...fields } = JSON.parse(released).fields as Record<string, object>;
  const unreleased = JSON.stringify({ ...JSON.parse(released), fields });
  writeFileSync(definition, unreleased);
  const violations: Violations = new Set();
  const servers = { primary: setUp.cluster.primary };
  const sql: Sql = (text) =>
    again(() => runAsAdmin(servers.primary.url(templateName), async (client) => (await client.query(text)).rows));
  const clients = await Promise.all(
    [0, 1].map((workspace) => startClient({ setUp, serving, violations }, sql, workspace)),
  );
  let queue = Promise.resolve();
  const reload: World['reload'] = (text, event) => {
    queue = queue.then(async () => {
      const from = serving.log().length;
      writeFileSync(definition, text);
      serving.child.kill('SIGHUP');
      for (let tries = 0; tries < 600 && !event.test(serving.log().slice(from)); tries++) await sleep(50);
      writeFileSync(definition, unreleased);
    });
    return queue;
  };
  const stop = async (): Promise<void> => {
    for (const client of clients) await client.stop();
    await serving.stop('SIGKILL');
    await pooler?.stop();
    await redis.stop();
    await setUp.stop();
    rmSync(folder, { recursive: true });
  };
  const parts = { setUp, serving, redis, pooler, keyFile, clients, violations, reload, sql, released, stop };
  return Object.assign(servers, parts);
}

/** Every server as a replica, the first of them through PgBouncer where there is one. */
async function throughPooler({ cluster }: FaultCluster): Promise<{ pooler: Pgbouncer | null; replicaUrls: string }> {
  const [first = '', ...others] = [...cluster.replicas, cluster.primary].map((node) =>
    node.url(templateName, 'gateway_reader'),
  );
  if (pgbouncerBinary === null) return { pooler: null, replicaUrls: [first, ...others].join(' ') };
  const pooler = await startPgbouncer({ changing: { url: first, mode: 'session', more: 'pool_size=60' } });
  return { pooler, replicaUrls: [pooler.url('changing'), ...others].join(' ') };
}

/** A client of one workspace that reads all the time and checks each answer. */
export class Client {
  readonly #ids: ReadonlySet<string>;
  readonly #customerId: string;
  readonly #name = `pairs ${randomUUID()}`;
  readonly #reading: Promise<unknown>;
  #isOver = false;
  #isGone = false;

  constructor(
    private readonly sql: Sql,
    private readonly url: string,
    private readonly bearer: string,
    private readonly workspaceId: string,
    rows: readonly { id: string; is_customer: boolean }[],
    private readonly violations: Violations,
  ) {
    this.#ids = new Set(rows.map(({ id }) => id));
    this.#customerId = rows.find((row) => row.is_customer)?.id ?? '';
    const paths = ['/klanten?perPage=50', '/installaties?perPage=50', '/werkbonnen?perPage=50'];
    this.#reading = Promise.all(
      paths.map(async (path) => {
        while (!this.#isOver)
          await Promise.all([this.page(path).catch((error) => violations.add(String(error))), sleep(100)]);
      }),
    );
  }

  /** One page, whole and of this workspace; null if the client must repeat, or if the connection broke. */
  async page(path: string): Promise<Page<{ id: string; naam?: string | null }> | null> {
    const response = await this.#send(path).catch(() => null);
    const text = await response?.text().catch(() => null);
    const isGone = response?.status === 410 && path.startsWith('/sync'); // the history changed: a pass begins again
    this.#isGone ||= isGone;
    if (response === null || text == null || isGone || repeated.has(response.status)) return null;
    if (response.status !== 200) {
      this.#report(path, `${response.status} ${text.slice(0, 200)}`);
      return null;
    }
    const answer = JSON.parse(text) as Page<{ id: string; naam?: string | null }>;
    const foreign = answer.data.find(({ id, naam }) => !this.#ids.has(id) && !naam?.startsWith(this.#name));
    if (foreign !== undefined) this.#report(path, `a record of another workspace, ${foreign.id}`);
    if (!text.endsWith('"complete":true}}')) this.#report(path, 'a page that is not whole');
    if (path.includes('klanten') && answer.data.some((record) => !('kvkNummer' in record)))
      this.#report(path, 'a definition that was not released');
    return answer;
  }

  /** All records of a list or a sync, page by page: as many as the workspace has. */
  async walk(path: string): Promise<void> {
    const seen = new Set<string>();
    const first = `${path}?perPage=100`;
    let next: string | null = first;
    for (const endMs = performance.now() + walkMsMax; next !== null; ) {
      const answer = await this.page(next);
      if (performance.now() > endMs) return void this.violations.add(`${path}: a walk that does not end`);
      if (answer === null) {
        await sleep(100);
        if (this.#isGone) [next, this.#isGone] = [first, false];
        continue;
      }
      for (const { id } of answer.data) seen.add(id);
      next = /\/api\/v1(.*)$/.exec(answer.pagination.next ?? '')?.[1] ?? null;
    }
    const table = /klanten|werkbonnen/.exec(path)?.[0];
    const count = await this.#count(`app.${table} where workspace_id = '${this.workspaceId}'`);
    if (seen.size !== count) this.violations.add(`${path}: ${seen.size} of ${count} records`);
  }

  /** A create with one key until it is answered; then it is there once. */
  async write(): Promise<void> {
    const naam = `${this.#name} ${randomUUID()}`;
    const body = JSON.stringify({ customerId: this.#customerId, naam });
    const headers = { 'idempotency-key': randomUUID() };
    const endMs = performance.now() + walkMsMax;
    for (let isAnswered = false; !isAnswered && performance.now() < endMs; ) {
      const response = await this.#send('/installaties', { method: 'POST', body, headers }).catch(() => null);
      await response?.text().catch(() => null);
      const status = response?.status ?? 503;
      isAnswered = status === 201;
      if (!isAnswered && status !== 409 && !repeated.has(status)) this.violations.add(`a write: ${status}`);
      if (!isAnswered) await sleep(200);
    }
    const count = await this.#count(`app.installaties where naam = '${naam}'`);
    if (count !== 1) this.violations.add(`a write is there ${count} times`);
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#reading;
  }

  async #count(rows: string): Promise<number> {
    const [row] = (await this.sql(`select count(*) as n from ${rows}`)) as { n: string }[];
    return Number(row?.n);
  }

  #report(path: string, violation: string): void {
    this.violations.add(`${path.replace(/\?.*/, '')}: ${violation}`);
  }

  #send(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = { authorization: `Bearer ${this.bearer}`, 'content-type': 'application/json', ...init.headers };
    return fetch(`${this.url}/api/v1${path}`, { ...init, headers });
  }
}

async function startClient(
  world: Pick<World, 'setUp' | 'serving' | 'violations'>,
  sql: Sql,
  workspace: number,
): Promise<Client> {
  const { token, workspaces } = world.setUp;
  const { id = '' } = workspaces[workspace] ?? {};
  const rows = (await sql(
    ['klanten', 'installaties', 'werkbonnen']
      .map((table) => `select id, '${table}' = 'klanten' as is_customer from app.${table} where workspace_id = '${id}'`)
      .join(' union all '),
  )) as { id: string; is_customer: boolean }[];
  return new Client(sql, world.serving.url, await token({ workspace, scopes }), id, rows, world.violations);
}
