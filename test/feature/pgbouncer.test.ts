import { mkdtempSync, writeFileSync } from 'node:fs';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { readProject } from '../../src/base/paths.js';
import type { FindingCode } from '../../src/doctor/finding.js';
import { inspect } from '../../src/doctor/inspect.js';
import { loadResources } from '../../src/resource/definition/load.js';
import { reportStatus } from '../../src/serve/ops/status.js';
import type { Settings } from '../../src/settings.js';
import type { ApiClient } from '../support/client.js';
import { type Pgbouncer, pgbouncerBinary, startPgbouncer } from '../support/pgbouncer.js';
import { customerOf } from '../support/primary-side.js';
import { pullInProcess, startPull } from '../support/pull/copy.js';
import { record, syncServer } from '../support/pull/sync-server.js';
import { eventually, gatewayTest, type TestContext } from '../support/workspace.js';
import { post } from '../support/writes.js';

// A real PgBouncer between gateway and PostgreSQL. Whether it loses prepared statements depends on its version; check tries it.

const base = gatewayTest();
const test = pgbouncerBinary === null ? base.serial.skip : base.serial;
const why = pgbouncerBinary === null ? ' (skipped: no pgbouncer; apt-get install pgbouncer)' : '';
const resources = loadResources('');
const pooler: { running?: Pgbouncer } = {};

base.serial.before(async (t) => {
  if (pgbouncerBinary === null) return;
  const { replicaUrls, primaryUrls, adminUrl } = t.context.database.settings;
  pooler.running = await startPgbouncer({
    reads: { url: replicaUrls, mode: 'transaction' },
    sessions: { url: replicaUrls, mode: 'session' },
    altered: { url: replicaUrls, mode: 'transaction' },
    corrected: { url: replicaUrls, mode: 'transaction', more: connectQuery('replica1') },
    corrected_writes: { url: primaryUrls, mode: 'transaction', more: connectQuery('primary') },
    writes: { url: primaryUrls, mode: 'transaction' },
    changing: { url: replicaUrls, mode: 'session' },
    changing_writes: { url: primaryUrls, mode: 'session' },
    copies: { url: adminUrl, mode: 'transaction' },
    stale: { url: replicaUrls, mode: 'transaction', more: 'user=gateway_reader password=old' },
  });
});
base.after.always(() => pooler.running?.stop());

function connectQuery(server: string): string {
  const entry = readProject('deploy/pgbouncer/pgbouncer.ini').match(`host=${server}[.].*`)?.[0] ?? '';
  return /connect_query='[^']+'/.exec(entry)?.[0] ?? 'none';
}

const url = (name: string, host?: string): string => (pooler.running as Pgbouncer).url(name, host);

async function finding(
  t: ExecutionContext<TestContext>,
  code: FindingCode,
  settings: Partial<Settings>,
): Promise<string> {
  const { findings } = await inspect({ ...t.context.database.settings, primaryUrls: '', ...settings }, resources);
  const found = findings.find((one) => one.code === code);
  return `${found?.level}: ${found?.detail}`;
}

test(`check tells whether prepared statements survive a pooler${why}`, async (t) => {
  t.is(await finding(t, 'pooler', {}), 'ok: None: the connection ends at PostgreSQL.');
  t.regex(
    await finding(t, 'pooler', { replicaUrls: url('reads') }),
    /^warning: There is one, and it loses prepared statements|^ok: There is one, and prepared statements survive it/,
  );
  t.regex(
    await finding(t, 'pooler', { replicaUrls: url('sessions') }),
    /^ok: There is one, and prepared statements survive it/,
  );
  const unnamed = { replicaUrls: url('reads'), namedStatements: false };
  t.is(await finding(t, 'pooler', unnamed), 'ok: There is one, and statements have no names.');
});

async function statusesOf(client: ApiClient): Promise<number[]> {
  const paths = ['/klanten?perPage=3', '/installaties?perPage=5', '/werkbonnen?perPage=2&total=true', '/logboeken'];
  const statuses = new Set<number>();
  const reads = Array.from({ length: 40 }, async (_, i) => {
    for (let n = 0; n < 10; n++) statuses.add((await client.get(paths[(i + n) % paths.length] as string)).status);
  });
  await Promise.all(reads);
  return [...statuses];
}

test(`no request fails behind PgBouncer in transaction mode${why}`, async (t) => {
  const { database } = t.context;
  const settings = { replicaUrls: url('reads'), primaryUrls: url('writes'), namedStatements: true };
  const { client, log } = await database.gateway(settings);
  const isOff = (await finding(t, 'pooler', settings)).startsWith('warning');
  t.is(log().includes('"msg":"named_statements_off"'), isOff);
  t.deepEqual(await statusesOf(client), [200]);
  t.is((await post(client, { customerId: await customerOf(database), naam: 'Koelcel' })).status, 201);
  t.is(log().split('"msg":"named_statements_off"').length, isOff ? 2 : 1, 'no request finds the loss again');
});

test(`a pooler whose password is old is named with the order of steps${why}`, async (t) => {
  const { settings } = t.context.database;
  t.regex(
    await finding(t, 'connection', { replicaUrls: url('stale') }),
    /^failed: It cannot be reached now: a pooler reports: .* \(08P01\)\.$/,
  );
  const { gateway } = await t.context.database.gateway({ replicaUrls: `${settings.replicaUrls} ${url('stale')}` });
  const isNamed = () => /08P01: the pooler cannot log in/.test(gateway.readiness().replicas[1]?.reason ?? '');
  await eventually(t, 'a reason that names the pooler', isNamed);
});

test(`a pooler before all servers that stands still is named, and no server is blamed before it${why}`, async (t) => {
  const { database } = t.context;
  const { gateway, client } = await database.gateway({ replicaUrls: url('sessions'), primaryUrls: url('writes') });
  t.is((await client.get('/klanten?perPage=1')).status, 200);
  const { process } = pooler.running as Pgbouncer;
  t.teardown(() => process.kill('SIGCONT'));
  process.kill('SIGSTOP');
  const sentences = () => reportStatus(gateway.readiness(), 0).faults.map(({ sentence }) => sentence);
  const named = `All servers are reached through ${new URL(url('reads')).host}: look at this pooler or proxy first.`;
  await eventually(t, 'its name', () => sentences()[0] === named, 20_000);
});

test(`a pooler that begins to lose prepared statements costs no request, and is named${why}`, async (t) => {
  const settings = { replicaUrls: url('changing'), primaryUrls: url('changing_writes') };
  const { client, log } = await t.context.database.gateway({ ...settings, namedStatements: true });
  await statusesOf(client);
  t.notRegex(log(), /named_statements_off/);
  pooler.running?.setMode('transaction');
  await eventually(t, 'the loss', async () => {
    t.deepEqual(await statusesOf(client), [200]);
    return log().includes('"msg":"named_statements_off"');
  });
  t.deepEqual(await statusesOf(client), [200]);
  t.regex(log(), /"code":"(26000|42P05)","helps":"[a-z ]+","msg":"replica_failed"/);
  t.is((await post(client, { customerId: await customerOf(t.context.database), naam: 'Koelcel' })).status, 201);
});

test(`check finds the settings that a login made behind a pooler, and connect_query of the shipped file mends them${why}`, async (t) => {
  const { name, primary, caughtUp } = t.context.database;
  const roles = ['gateway_reader', 'gateway_writer'];
  const all = (change: string) =>
    Promise.all(roles.map((role) => primary.query(`alter role ${role} in database ${name} ${change}`)));
  await all("set statement_timeout = '9s'");
  await all('set synchronous_commit = off');
  await caughtUp();
  try {
    t.regex(
      await finding(t, 'role_settings', { replicaUrls: url('altered') }),
      /^failed: statement_timeout is 9000, not 60000; the role has settings that/,
    );
    for (const settings of [
      { replicaUrls: url('corrected') },
      { replicaUrls: t.context.database.settings.replicaUrls, primaryUrls: url('corrected_writes') },
    ])
      t.regex(await finding(t, 'role_settings', settings), /^warning: the role has settings that/);
  } finally {
    await all('reset all');
  }
});

test(`check warns of a connection over a network without TLS, or with a certificate that it cannot verify${why}`, async (t) => {
  const addresses = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  const host = addresses.find(({ family, internal }) => family === 'IPv4' && !internal)?.address;
  if (host === undefined) {
    t.pass('this machine has no address besides loopback');
    return;
  }
  const plain = { replicaUrls: url('reads', host) };
  t.is(await finding(t, 'encryption', plain), 'warning: Traffic to PostgreSQL is unencrypted.');
  const unverified = { replicaUrls: `${plain.replicaUrls}?sslmode=no-verify` };
  t.regex(await finding(t, 'encryption', unverified), /^warning: The server's certificate is not verified/);
  t.is(await finding(t, 'encryption', {}), 'ok: None: the server is on this machine.');
});

test(`two runs of pull exclude each other behind PgBouncer in transaction mode, and a killed one holds nothing${why}`, async (t) => {
  const schema = { type: 'object', required: ['id'], properties: { id: { type: 'string' } } };
  const server = await syncServer({ klanten: { schema, records: new Map([['1', record('1', '')]]) } });
  t.teardown(() => server.close());
  const file = join(mkdtempSync(join(tmpdir(), 'pooled-copy-')), 'token');
  writeFileSync(file, 'a-token-of-a-test');
  const args = ['--base', server.base, '--token-file', file, '--to', url('copies')];
  const isAsked = new Promise((resolve) => {
    server.onRequest = (path) => (path === '/sync/klanten' ? new Promise(() => resolve(path)) : undefined);
  });
  const { child, ended } = startPull(args);
  await isAsked;
  t.is((await pullInProcess(args)).stderr, 'Another process pulls into this destination.\n');
  child.kill('SIGKILL');
  await ended;
  server.onRequest = () => undefined;
  await eventually(t, 'the end of the lock', async () => (await pullInProcess(args)).code === 0, 60_000);
});
