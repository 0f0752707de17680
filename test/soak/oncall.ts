import { randomUUID } from 'node:crypto';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../demo/cluster/ports.js';
import { projectRoot } from '../../src/base/paths.js';
import type { StatusReport } from '../../src/serve/ops/status.js';
import { asApplied, type FaultCluster, faultCluster } from '../support/fault-cluster.js';
import { startRedis } from '../support/redis.js';
import { type ServeProcess, serveProcess } from '../support/serve-process.js';
import type { Figures } from './figures.js';

const namedMsMax = 60_000;
const scopes = ['read:klanten', 'read:installaties', 'read:werkbonnen', 'write:installaties'];

interface Fault {
  /** Injects it; resolves with its mend. */
  readonly inject: () => Promise<() => Promise<unknown>>;
  /** The sentence of the status, or the line of the log, that names it. */
  readonly named: RegExp;
  /** Null for one that heals itself. */
  readonly alert: string | null;
}

/** A view made of its own text, changed, and made again. */
function changedView({ sql }: FaultCluster, view: string, change: (text: string) => string, options = '') {
  return async (): Promise<() => Promise<unknown>> => {
    const [row] = await sql<{ text: string }>(`select rtrim(pg_get_viewdef('${view}'), ';') as text`);
    const text = row?.text ?? '';
    await sql(`create or replace view ${view} as ${change(text)}`);
    return () => sql(`create or replace view ${view} ${options} as ${text}`);
  };
}

/** Fifteen faults under load: each is named by status or log within a minute, with a remedy, and has an alert unless it heals itself. */
export async function soakOncall(): Promise<Figures> {
  const setUp = await faultCluster();
  const redis = await startRedis();
  const folder = mkdtempSync(join(tmpdir(), 'oncall-'));
  cpSync(join(projectRoot, 'config/resources'), folder, { recursive: true });
  try {
    await setUp.sql(`create role shop_owner; grant usage on schema app to shop_owner; grant select on app.klanten to shop_owner;
      alter view records.klanten owner to shop_owner; ${asApplied}`);
    const own = { fitnessIntervalMs: 30_000, logLevel: 'info', webConcurrency: 2, port: await freePort() } as const;
    const files = { resourcesDir: folder, redisUrl: redis.url };
    const serving = await serveProcess(setUp.settings({ ...own, ...files, largePagesPerToken: 1 }));
    const token = await setUp.token({ scopes });
    const clients = traffic(serving, setUp, token);
    const definition = join(folder, 'klanten.json');
    const ofServers = serverFaults(setUp, serving, redis, definition, clients.send);
    const faults = { ...databaseFaults(setUp), ...ofServers };
    const figures: Record<string, string> = {};
    for (const [name, fault] of Object.entries(faults)) figures[name] = await tried(serving, name, fault);
    await clients.stop();
    await serving.stop();
    return { ok: Object.values(figures).every((value) => !value.includes('not named')), figures };
  } finally {
    rmSync(folder, { recursive: true });
    await redis.stop();
    await setUp.stop();
  }
}

const statusOf = async ({ opsUrl }: ServeProcess): Promise<StatusReport> =>
  (await (await fetch(`${opsUrl}/status.json`)).json()) as StatusReport;

async function tried(serving: ServeProcess, name: string, { inject, named, alert }: Fault): Promise<string> {
  const logFrom = serving.log().length;
  const startedMs = performance.now();
  const mend = await inject();
  let words: string | undefined;
  while (words === undefined && performance.now() - startedMs < namedMsMax) {
    await sleep(250);
    const { faults } = await statusOf(serving);
    words = faults.map(({ sentence, link }) => `${sentence} [${link}]`).find((sentence) => named.test(sentence));
    words ??= serving
      .log()
      .slice(logFrom)
      .split('\n')
      .find((line) => named.test(line));
  }
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(1);
  await mend();
  const isWell = async (): Promise<boolean> => {
    const { faults } = await statusOf(serving);
    return !faults.some(({ sentence, link }) => named.test(`${sentence} [${link}]`));
  };
  for (let waited = 0; waited < 150 && !(await isWell()); waited++) await sleep(1000);
  console.error(name, seconds, words);
  return `${words === undefined ? 'not named' : `${seconds} s: ${words.slice(0, 110)}`} → ${alert ?? 'heals itself'}`;
}

type Send = (path: string, init?: RequestInit) => Promise<Response | null>;

function traffic({ url }: ServeProcess, { customerId }: FaultCluster, token: string) {
  let isOver = false;
  const send: Send = async (path, init = {}) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...init.headers };
    const response = await fetch(`${url}/api/v1${path}`, { ...init, headers }).catch(() => null);
    await response?.arrayBuffer().catch(() => null);
    return response;
  };
  const reading = Promise.all(
    ['/klanten?perPage=50', '/installaties?perPage=50', '/werkbonnen?perPage=50'].map(async (path) => {
      while (!isOver) await Promise.all([send(path), sleep(200)]);
    }),
  );
  const writing = (async () => {
    const body = JSON.stringify({ customerId, naam: 'oncall' });
    while (!isOver)
      await Promise.all([
        send('/installaties', { method: 'POST', body, headers: { 'idempotency-key': randomUUID() } }),
        sleep(500),
      ]);
  })();
  const stop = async (): Promise<void> => {
    isOver = true;
    await Promise.all([reading, writing]);
  };
  return { send, stop };
}

const refused = 'GatewayResourceRefused';

/** Faults of the database. */
function databaseFaults(setUp: FaultCluster): Readonly<Record<string, Fault>> {
  const { sql } = setUp;
  const bySql = (change: string, undo: string) => async () => {
    await sql(change);
    return () => sql(undo);
  };
  return {
    ...viewFaults(setUp, bySql),
    'a function of a view raises': {
      inject: async () => {
        const [row] = await sql<{ text: string }>(`select pg_get_functiondef('fault.paced'::regproc) as text`);
        await sql(
          `create or replace function fault.paced(value text) returns text language plpgsql stable as $$ begin raise exception 'no'; end $$`,
        );
        return () => sql(row?.text ?? '');
      },
      named: /answered 500 internal: GET \/api\/v1\/installaties.*#internal/,
      alert: 'GatewayBug',
    },
    'a table is locked': {
      inject: async () => {
        await sql('begin; lock table app.werkbonnen in access exclusive mode; select pg_switch_wal()');
        return () => sql('rollback');
      },
      named: /A lock on .*werkbonnen/,
      alert: 'GatewayResourceLocked',
    },
    'values do not decode': {
      inject: async () => {
        await sql('create table fault.names as select id, naam from app.klanten');
        await sql(`update app.klanten set naam = overlay(naam placing 'AAAA' from 20) where right(id::text, 1) < '6'`);
        return () =>
          sql('update app.klanten k set naam = n.naam from fault.names n where n.id = k.id; drop table fault.names');
      },
      named: /could not be decoded: klanten \/naam.*#undecodable/,
      alert: 'GatewayCannotDecode',
    },
  };
}

function viewFaults(
  setUp: FaultCluster,
  bySql: (change: string, undo: string) => Fault['inject'],
): Readonly<Record<string, Fault>> {
  return {
    'a wall is replaced': {
      inject: changedView(
        setUp,
        'gateway.klanten_asc',
        (text) => text.replace(/WHERE.*ORDER/s, 'ORDER'),
        'with (security_barrier)',
      ),
      named: /klanten are refused.*migrate.*#refused/,
      alert: refused,
    },
    'row-level security is forced': {
      inject: bySql(
        'alter table app.klanten enable row level security; alter table app.klanten force row level security',
        'alter table app.klanten disable row level security; alter table app.klanten no force row level security',
      ),
      named: /klanten are refused.*row-level security of app\.klanten/,
      alert: refused,
    },
    'a grant is revoked': {
      inject: bySql('revoke select on app.klanten from shop_owner', 'grant select on app.klanten to shop_owner'),
      named: /klanten are refused.*cannot select app\.klanten/,
      alert: refused,
    },
    'a view is gone': {
      inject: bySql(
        'alter view gateway.werkbonnen_asc rename to away; revoke select on gateway.away from gateway_reader',
        'alter view gateway.away rename to werkbonnen_asc; grant select on gateway.werkbonnen_asc to gateway_reader',
      ),
      named: /werkbonnen are refused.*werkbonnen_asc is missing/,
      alert: refused,
    },
    'a table is swapped': {
      inject: bySql(
        'alter table app.klanten rename to klanten_old; create table app.klanten (like app.klanten_old)',
        'drop table app.klanten; alter table app.klanten_old rename to klanten',
      ),
      named: /klanten are refused.*do not read app\.klanten any more/,
      alert: refused,
    },
  };
}

/** Faults of servers, of Redis, of a worker and of clients. */
function serverFaults(
  { cluster }: FaultCluster,
  serving: ServeProcess,
  redis: Awaited<ReturnType<typeof startRedis>>,
  definition: string,
  send: Send,
): Readonly<Record<string, Fault>> {
  const [first, second] = cluster.replicas;
  return {
    'the primary is read-only': {
      inject: async () => {
        await cluster.primary.configure({ default_transaction_read_only: 'on' });
        return () => cluster.primary.configure({ default_transaction_read_only: null });
      },
      named: /primary.*25006|503 primary_unavailable.*#writes-refused/,
      alert: 'GatewayCannotWrite',
    },
    'a client floods with large pages': {
      inject: async () => {
        const flood = Promise.all(Array.from({ length: 300 }, () => send('/werkbonnen?perPage=100000')));
        return () => flood;
      },
      named: /503 overloaded.*of workspace.*#overloaded/,
      alert: 'GatewayOverloaded',
    },
    'a reload is broken': {
      inject: async () => {
        const text = readFileSync(definition, 'utf8');
        writeFileSync(definition, '{');
        process.kill(serving.child.pid as number, 'SIGHUP');
        return async () => {
          writeFileSync(definition, text);
          process.kill(serving.child.pid as number, 'SIGHUP');
          await sleep(10_000);
        };
      },
      named: /reload was refused.*#reload-refused/s,
      alert: 'GatewayReloadRefused',
    },
    'a replica stops': {
      inject: async () => {
        await first?.stop();
        return async () => first?.start();
      },
      named: /is not used: .*#replica-out/,
      alert: 'GatewayReplicaOut',
    },
    'replay is paused': {
      inject: async () => {
        await second?.query('select pg_wal_replay_pause()');
        return async () => second?.query('select pg_wal_replay_resume()');
      },
      named: /lags .* behind the primary.*#replica-lags/,
      alert: 'GatewayReplicaLags',
    },
    'Redis stops': {
      inject: async () => {
        await redis.stop();
        return () => redis.start();
      },
      named: /Redis cannot be used.*#redis-away/,
      alert: 'GatewayRedisAway',
    },
    'a worker is killed': {
      inject: async () => {
        const { pid } = serving.child;
        const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(/\s+/);
        process.kill(Number(children[0]), 'SIGKILL');
        return async () => sleep(5000);
      },
      named: /worker_died/,
      alert: null,
    },
  };
}
