import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import suite, { type ExecutionContext } from 'ava';
import pg from 'pg';
import type { PgNode } from '../../demo/cluster/node.js';
import { freePort } from '../../demo/cluster/ports.js';
import { projectRoot } from '../../src/base/paths.js';
import { runAsAdmin } from '../../src/postgres/admin.js';
import type { StatusReport } from '../../src/serve/ops/status.js';
import type { Settings } from '../../src/settings.js';
import { commandLine } from '../support/command-line.js';
import { type FaultCluster, type FaultGateway, faultCluster } from '../support/fault-cluster.js';
import { limitMs, until } from '../support/patience.js';
import { type ServeProcess, serveProcess } from '../support/serve-process.js';
import { templateName } from '../support/template.js';
import { words } from '../support/words.js';
import { allScopes } from '../support/workspace.js';

const test = suite.serial;

// Changes of servers and logins under a gateway that is not restarted: real passwords, real logins, a real promotion.

/** The servers and the clients share this machine: probes get more time, and no read fails for the bound of the primary. */
const unhurried = {
  probeDeadlineMs: 10_000,
  connectTimeoutMs: 10_000,
  queueWaitMs: 250,
  primaryReadsPerSecond: 10_000,
};

let setUp: FaultCluster;
let token: string;
let customerId: string;
let folder: string;
const passwords = { gateway_reader: '', gateway_writer: '' };

test.before(async () => {
  setUp = await faultCluster();
  token = await setUp.token({ scopes: allScopes });
  customerId = setUp.customerId;
  for (const role of ['gateway_reader', 'gateway_writer'] as const)
    passwords[role] = new URL(setUp.cluster.primary.url(templateName, role)).password;
  folder = mkdtempSync(join(tmpdir(), 'logins-'));
});
test.after.always(async () => {
  await setUp?.stop();
  rmSync(folder, { recursive: true, force: true });
});

function urls(reader: string, writer: string, readerPassword: string, writerPassword: string): Partial<Settings> {
  const { primary, replicas } = setUp.cluster;
  const url = (role: string, password: string, port: number): string =>
    `postgres://${role}:${password}@127.0.0.1:${port}/${templateName}`;
  return {
    replicaUrls: replicas.map(({ port }) => url(reader, readerPassword, port)).join(' '),
    primaryUrls: url(writer, writerPassword, primary.port),
  };
}

const currentPasswords = (): [string, string] => [passwords.gateway_reader, passwords.gateway_writer];
const file = (setting: string): string => join(folder, setting);

function writeFiles(settings: Partial<Settings>): void {
  for (const [name, value] of Object.entries(settings)) writeFileSync(file(name), String(value));
}

async function serveUnderLoad(t: ExecutionContext): Promise<{ serving: ServeProcess; load: Load }> {
  const { replicaUrls: _, primaryUrls: __, ...settings } = setUp.settings({ queueWaitMs: 10_000 });
  const files = { replicaUrlsFile: file('replicaUrls'), primaryUrlsFile: file('primaryUrls') } as Partial<Settings>;
  const serving = await serveProcess({ ...settings, ...files });
  t.teardown(() => serving.child.kill('SIGKILL'));
  const load = startLoad(serving.url, { token, customerId, readers: 4, writers: 2 });
  t.teardown(() => load.stop());
  t.true(await load.passed(20));
  return { serving, load };
}

const endAll = `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'workspace-data-gateway'`;

async function allHealthy({ opsUrl }: ServeProcess): Promise<boolean> {
  const metrics = await (await fetch(`${opsUrl}/metrics`)).text();
  return !/^gateway_replica_healthy\{.*\} 0$/m.test(metrics);
}

/** Ends the gateway's sessions on one server after the other, so that each must log in again; waits for the health of `serving`. */
async function endSessions(load: Load, serving?: ServeProcess): Promise<void> {
  const { primary, replicas } = setUp.cluster;
  for (const node of [primary, ...replicas]) {
    await node.query(endAll);
    await load.passed(12);
    // An operator goes on when the gateway has seen the end, and uses the replica again.
    if (serving && node !== primary) await until(async () => !(await allHealthy(serving)), 1000, 20);
    if (serving) await until(() => allHealthy(serving), 20_000, 20);
  }
}

function changePasswords(round: number): Partial<Settings> {
  for (const role of ['gateway_reader', 'gateway_writer'] as const) passwords[role] = `${role}_${round}`;
  return urls('gateway_reader', 'gateway_writer', ...currentPasswords());
}

test('passwords are rotated again and again under load, and no read and no write fails', async (t) => {
  const { replicaUrls, primaryUrls } = setUp.settings();
  writeFiles({ replicaUrls, primaryUrls });
  const { serving, load } = await serveUnderLoad(t);
  for (let round = 1; round <= 2; round++) {
    writeFiles(changePasswords(round));
    for (const [role, password] of Object.entries(passwords))
      await setUp.sql(`alter role ${role} password '${password}'`);
    await setUp.caughtUp();
    await endSessions(load, serving);
  }
  const { outcomes, reads, writes } = await load.stop();
  t.log(`${reads} reads, ${writes} writes`);
  t.deepEqual(outcomes, []);
  t.true(reads > 30 && writes > 10, `${reads} reads, ${writes} writes`);
});

test('a replica that refuses logins costs no read, and is used again when it accepts them', async (t) => {
  const gateway = await setUp.gateway({
    ...urls('gateway_reader', 'gateway_writer', ...currentPasswords()),
    queueWaitMs: 10_000,
  });
  const load = startLoad(gateway.gateway.url, { token, customerId, readers: 4, writers: 0 });
  const replica = setUp.cluster.replicas[0] as PgNode;
  const hba = join(replica.dir, 'pg_hba.conf');
  const before = readFileSync(hba, 'utf8');
  writeFileSync(hba, `host all gateway_reader all reject\n${before}`);
  await replica.query('select pg_reload_conf()');
  const state = () => gateway.gateway.replicas[0]?.state;
  await replica.query(`${endAll} and query !~ 'pg_control_system|pg_depend'`); // only reads learn it: the probe's session goes on
  await load.passed(40);
  t.true(state()?.healthy);
  const isOut = async (): Promise<boolean> => {
    await endSessions(load);
    return state()?.reason === 'PostgreSQL error 28000: the login is refused';
  };
  t.true(await until(isOut, 20_000, 50));
  writeFileSync(hba, before);
  await replica.query('select pg_reload_conf()');
  t.true(await until(() => state()?.healthy === true, 20_000, 50));
  t.deepEqual((await load.stop()).outcomes, []);
  await gateway.stop();
});

test('logins that are members of the roles take over under load, and the roles themselves lose theirs', async (t) => {
  await makeLogin('reader_b', 'gateway_reader');
  await makeLogin('writer_b', 'gateway_writer');
  const { serving, load } = await serveUnderLoad(t);
  const members = urls('reader_b', 'writer_b', 'secret', 'secret');
  writeFiles(members);
  await setUp.sql('alter role gateway_reader nologin; alter role gateway_writer nologin');
  await setUp.caughtUp();
  await endSessions(load, serving);
  const { outcomes } = await load.stop();
  t.deepEqual(outcomes, []);
  const users = await setUp.cluster.replicas[0]?.query<{ usename: string }>(
    `select distinct usename from pg_stat_activity where application_name = 'workspace-data-gateway'`,
  );
  t.deepEqual(users, [{ usename: 'reader_b' }]);

  const { dataKeys, wallKey } = setUp.settings();
  const check = () => commandLine(['check'], { ...members, dataKeys, wallKey });
  const accepted = await check();
  t.is(accepted.code, 0);
  t.notRegex(accepted.stdout, /WARNING +role settings/);
  await setUp.sql(
    'alter role reader_b noinherit; grant pg_monitor to reader_b; grant gateway_writer to writer_b with admin option',
  );
  if (await isVersion(16)) await setUp.sql('grant gateway_reader to reader_b with inherit false');
  await setUp.caughtUp();
  const { stdout, code } = await check();
  t.is(code, 1);
  t.regex(
    stdout,
    /role reader_b: it is a member of pg_monitor.*; it is a member of gateway_reader and does not inherit from it/,
  );
  t.regex(stdout, /role writer_b: it is a member of gateway_writer and can grant it/);
  await setUp.sql('alter role gateway_reader login; alter role gateway_writer login; drop role reader_b, writer_b');
});

test('a gateway starts while one of its replicas is fine, and uses the others when they become good', async (t) => {
  const { primary, replicas } = setUp.cluster;
  const [first, second] = replicas as [PgNode, PgNode];
  const reader = (node: PgNode, role = 'gateway_reader', password = 'secret'): string =>
    `postgres://${role}:${password}@127.0.0.1:${node.port}/${templateName}`;
  const nowhere = `postgres://gateway_reader@127.0.0.1:${await freePort()}/${templateName}`;
  const fine = reader(first, 'gateway_reader', passwords.gateway_reader);
  const list = [reader(second, 'late'), reader(primary, 'gateway_reader', passwords.gateway_reader), nowhere, fine];
  const primaryUrls = reader(primary, 'gateway_writer', passwords.gateway_writer);
  const servers = { ...unhurried, replicaUrls: list.join(' '), primaryUrls };
  const { gateway, url, log, stop } = await setUp.gateway(servers);
  const reasons = () => gateway.replicas.map(({ state }) => state.reason);
  const kinds = reasons().map((reason) => reason?.split(':')[0]);
  t.deepEqual(kinds, ['PostgreSQL error 28P01', 'it is not in recovery', 'cannot connect', undefined]);
  t.is((await fetch(url('/klanten'), { headers: { authorization: `Bearer ${token}` } })).status, 200);
  t.is(log().match(/"msg":"server_unfit"/g)?.length, 2, log());

  await makeLogin('late', 'gateway_reader');
  await setUp.sql('grant pg_monitor to late');
  t.true(await until(() => /check refuses it.*pg_monitor/.test(reasons()[0] ?? ''), 20_000, 50), reasons().join());
  await setUp.sql('revoke pg_monitor from late');
  t.true(await until(() => reasons()[0] === null, 20_000, 50), reasons().join());
  await stop();
});

test('writes go on while no replica can be used, also of a gateway that starts then, and its status says that reads fail', async (t) => {
  const { primary, replicas } = setUp.cluster;
  const send = async ({ url }: FaultGateway, method: string, path: string, by = token): Promise<number> => {
    const headers = {
      authorization: `Bearer ${by}`,
      'content-type': 'application/json',
      'idempotency-key': randomUUID(),
    };
    const body = method === 'POST' ? JSON.stringify({ customerId, naam: 'zonder replica' }) : null;
    const response = await fetch(url(path), { method, headers, body });
    await response.arrayBuffer();
    return response.status;
  };
  const url = (node: PgNode, role: 'gateway_reader' | 'gateway_writer'): string =>
    `postgres://${role}:${passwords[role]}@127.0.0.1:${node.port}/${templateName}`;
  const servers = urls('gateway_reader', 'gateway_writer', ...currentPasswords());
  const running = await setUp.gateway({ ...servers, tokenCacheMs: 1 });
  t.is(await send(running, 'GET', '/klanten'), 200);
  for (const node of replicas) await node.freeze();
  t.teardown(() => Promise.all(replicas.map((node) => node.thaw())));
  t.true(await until(async () => (await send(running, 'POST', '/installaties')) === 201, 20_000, 100));
  t.is(await send(running, 'GET', '/klanten'), 503);
  t.is(await send(running, 'GET', '/token'), 200);
  const unknown = `${token.slice(0, -1)}${token.endsWith('0') ? '1' : '0'}`;
  t.is(await send(running, 'POST', '/installaties', unknown), 401);
  // Started then: with the frozen replica, or with the promoted server as the only one.
  const primaryUrls = url(primary, 'gateway_writer');
  for (const node of [replicas[0] as PgNode, primary]) {
    const started = await setUp.gateway({ tokenCacheMs: 1, replicaUrls: url(node, 'gateway_reader'), primaryUrls });
    t.is(await send(started, 'POST', '/installaties'), 201);
    t.is(await send(started, 'GET', '/klanten'), 503);
    t.regex(started.log(), /"msg":"server_unfit"/);
    const { faults } = (await (await fetch(`${started.gateway.opsUrl}/status.json`)).json()) as StatusReport;
    t.is(faults[0]?.sentence, 'Reads fail: no replica can be used.');
    await started.stop();
  }
  await running.stop();
});

/** Puts the standby first that has received most and is to be promoted: the other could not follow a server that has less. */
async function furthestFirst(nodes: readonly PgNode[]): Promise<[PgNode, PgNode]> {
  const received = await Promise.all(
    nodes.map(async (node) => {
      const [row] = await node.query<{ n: string }>(`select pg_last_wal_receive_lsn() - pg_lsn '0/0' as n`);
      return { node, n: BigInt(row?.n ?? 0) };
    }),
  );
  return received.sort((a, b) => Number(b.n - a.n)).map(({ node }) => node) as [PgNode, PgNode];
}

test('writes go on within seconds of a promotion, and no acknowledged write is lost', async (t) => {
  const { primary, replicas } = setUp.cluster;
  await primary.configure({ synchronous_standby_names: 'FIRST 2 (replica1, replica2)' });
  const all = [primary, ...replicas];
  const everywhere = (role: 'gateway_reader' | 'gateway_writer'): string =>
    all.map(({ port }) => `postgres://${role}:${passwords[role]}@127.0.0.1:${port}/${templateName}`).join(' ');
  const servers = { replicaUrls: everywhere('gateway_reader'), primaryUrls: everywhere('gateway_writer') };
  const running = await setUp.gateway({ ...servers, ...unhurried });
  const load = startLoad(running.gateway.url, { token, customerId, readers: 3, writers: 3 });
  t.teardown(() => load.stop());
  t.true(await load.written(20));
  const withoutPrimary = await setUp.gateway({ ...servers, ...unhurried, primaryUrls: '' });
  const sync = ({ gateway }: FaultGateway, query: string): Promise<Response> =>
    fetch(`${gateway.url}/api/v1/sync/klanten?${query}`, { headers: { authorization: `Bearer ${token}` } });
  const pass = (await (await sync(running, 'perPage=10000')).json()) as { pagination: { since: string } };

  await primary.kill9();
  const [first, second] = await furthestFirst(replicas);
  const source = new URL(first.url());
  const conninfo = `host=127.0.0.1 port=${source.port} user=postgres password=${source.password} sslmode=disable`;
  await first.promote();
  await second.configure({ primary_conninfo: `${conninfo} application_name=${second.name}` });
  t.true(await load.written(20));
  t.is(await running.metric('gateway_primary_changes_total'), 1);
  for (const gateway of [running, withoutPrimary]) {
    const isExpired = async (): Promise<boolean> =>
      (await sync(gateway, `since=${pass.pagination.since}`)).status === 410;
    t.true(await until(isExpired, 20_000, 100), 'a sync token of before the promotion has expired');
    const begins = async (): Promise<boolean> => (await sync(gateway, '')).status === 200;
    t.true(await until(begins, 20_000, 100), 'a new pass begins, although no checkpoint has shown the new timeline');
  }
  await withoutPrimary.stop();

  await primary.start(); // as nothing stopped it: it goes on alone, on the old timeline
  const probes = `select from pg_stat_activity where usename = 'gateway_writer' and state = 'idle'`;
  t.true(await until(async () => (await primary.query(probes)).length > 0, 20_000, 50));
  t.true(await load.written(10));
  t.is(await running.metric('gateway_primary_changes_total'), 1, 'the old primary is not used again');
  const restarted = await setUp.gateway({ ...servers, ...unhurried });
  const moreLoad = startLoad(restarted.gateway.url, { token, customerId, readers: 1, writers: 1 });
  t.true(await moreLoad.written(5));

  const [results, more] = [await load.stop(), await moreLoad.stop()];
  t.log(`${results.reads} reads, ${results.writes} writes, none for ${Math.round(results.longestWriteGapMs)} ms`);
  t.deepEqual(more.outcomes, []);
  // The position of a write can lie behind records of others that died with the primary: no replica reaches it on that timeline.
  const passing = /^POST 503 .*"primary_unavailable"|^GET 503 .*caught up with your last write/;
  const unexpected = results.outcomes.filter((outcome) => !passing.test(outcome));
  t.deepEqual(unexpected, []);
  const created = [...results.created, ...more.created];
  const [found] = await runAsAdmin(first.url(templateName), async (client) => {
    const text =
      'select count(*)::int as n, count(distinct naam)::int as names from app.installaties where naam = any ($1)';
    return (await client.query<{ n: number; names: number }>(text, [created])).rows;
  });
  t.deepEqual(found, { n: created.length, names: created.length });
  t.true(results.longestWriteGapMs < limitMs(15_000), `${results.longestWriteGapMs} ms`);
});

async function makeLogin(login: string, role: string): Promise<void> {
  const client = new pg.Client({
    connectionString: setUp.cluster.primary.url(templateName),
    options: `-c gateway.login=${login} -c gateway.role=${role}`,
  });
  await client.connect();
  await client.query(readFileSync(join(projectRoot, 'deploy/login.sql'), 'utf8'));
  await client.query(`alter role ${login} password 'secret'`);
  await client.end();
}

async function isVersion(major: number): Promise<boolean> {
  const [row] = await setUp.sql<{ version: string }>(`select current_setting('server_version_num') as version`);
  return Number(row?.version) >= major * 10_000;
}

interface Load {
  /** Resolves when so many more requests have been answered; false when that takes over 20 s. */
  passed(requests: number): Promise<boolean>;
  /** Resolves when so many more writes have been acknowledged; false when that takes over 30 s. */
  written(writes: number): Promise<boolean>;
  stop(): Promise<LoadResult>;
}

interface LoadResult {
  /** Each outcome other than 2xx, once, such as `GET 503 {"type":…}` or the error of a connection. */
  readonly outcomes: readonly string[];
  readonly reads: number;
  readonly writes: number;
  readonly created: readonly string[];
  readonly longestWriteGapMs: number;
}

const readPaths = words('/klanten?perPage=10 /installaties?perPage=10 /werkbonnen?perPage=10 /logboeken?perPage=10');

/** A write is repeated with its key until it is acknowledged; outcomes of failed attempts are noted. */
function startLoad(
  origin: string,
  options: { token: string; customerId: string; readers: number; writers: number },
): Load {
  const outcomes = new Set<string>();
  const created: string[] = [];
  let [reads, writes, answered, isRunning] = [0, 0, 0, true];
  let [lastWriteMs, longestWriteGapMs] = [performance.now(), 0];
  const common = { authorization: `Bearer ${options.token}`, 'accept-encoding': 'identity' };
  const send = async (path: string, init: RequestInit = {}): Promise<boolean> => {
    try {
      const headers = { ...common, ...(init.headers as Record<string, string>) };
      const reply = await fetch(`${origin}/api/v1${path}`, { ...init, headers });
      const text = await reply.text();
      if (!reply.ok) outcomes.add(`${init.method ?? 'GET'} ${reply.status} ${text.replace(/"requestId":"[^"]*"/, '')}`);
      return reply.ok;
    } catch (error) {
      outcomes.add(`${init.method ?? 'GET'} ${(error as Error).cause ?? error}`);
      return false;
    } finally {
      answered++;
      await sleep(100); // the servers under test have the processor
    }
  };
  const read = async (n: number): Promise<void> => {
    for (let i = n; isRunning; i++) if (await send(readPaths[i % readPaths.length] as string)) reads++;
  };
  const write = async (): Promise<void> => {
    while (isRunning) {
      const naam = randomUUID();
      const headers = { 'idempotency-key': naam, 'content-type': 'application/json' };
      const body = JSON.stringify({ customerId: options.customerId, naam });
      while (!(await send('/installaties', { method: 'POST', headers, body }))) {
        if (!isRunning) return;
        await sleep(100);
      }
      writes++;
      created.push(naam);
      longestWriteGapMs = Math.max(longestWriteGapMs, performance.now() - lastWriteMs);
      lastWriteMs = performance.now();
    }
  };
  const clients = [
    ...Array.from({ length: options.readers }, (_, n) => read(n)),
    ...Array.from({ length: options.writers }, write),
  ];
  return {
    passed: (requests) => {
      const goal = answered + requests;
      return until(() => answered >= goal, 20_000, 10);
    },
    written: (more) => {
      const goal = writes + more;
      return until(() => writes >= goal, 30_000, 10);
    },
    stop: async () => {
      isRunning = false;
      await Promise.all(clients);
      return { outcomes: [...outcomes], reads, writes, created, longestWriteGapMs };
    },
  };
}
