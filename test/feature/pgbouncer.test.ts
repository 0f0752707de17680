import { randomUUID } from 'node:crypto';
import { networkInterfaces } from 'node:os';
import type { ExecutionContext } from 'ava';
import type { FindingCode } from '../../src/check/findings.js';
import { inspect } from '../../src/check/inspect.js';
import { loadResources } from '../../src/definition/load.js';
import type { Settings } from '../../src/settings.js';
import { type Pgbouncer, pgbouncerBinary, startPgbouncer } from '../support/pgbouncer.js';
import { gatewayTest, type TestContext } from '../support/workspace.js';

// A real PgBouncer between gateway and PostgreSQL. Whether it loses prepared statements depends on its version; check tries it.

const base = gatewayTest();
const test = pgbouncerBinary === null ? base.serial.skip : base.serial;
const why = pgbouncerBinary === null ? ' (skipped: no pgbouncer; apt-get install pgbouncer)' : '';
const resources = loadResources('');
const pooler: { running?: Pgbouncer } = {};

base.serial.before(async (t) => {
  if (pgbouncerBinary === null) return;
  const { replicaUrls, primaryUrls } = t.context.database.settings;
  pooler.running = await startPgbouncer({
    reads: { url: replicaUrls, mode: 'transaction' },
    sessions: { url: replicaUrls, mode: 'session' },
    writes: { url: primaryUrls, mode: 'transaction' },
  });
});
base.after.always(() => pooler.running?.stop());

const url = (name: string, host?: string): string => (pooler.running as Pgbouncer).url(name, host);

/** Level and detail of the first finding with the code. */
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

test(`no request fails behind PgBouncer in transaction mode${why}`, async (t) => {
  const { database } = t.context;
  const settings = { replicaUrls: url('reads'), primaryUrls: url('writes'), namedStatements: true };
  const { client, log } = await database.gateway(settings);
  const isOff = (await finding(t, 'pooler', settings)).startsWith('warning');
  t.is(log().includes('"msg":"named_statements_off"'), isOff);
  const paths = ['/klanten?perPage=3', '/installaties?perPage=5', '/werkbonnen?perPage=2&total=true', '/logboeken'];
  const statuses = new Map<number, number>();
  const reads = Array.from({ length: 40 }, async (_, i) => {
    for (let n = 0; n < 10; n++) {
      const { status } = await client.get(paths[(i + n) % paths.length] as string);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
  });
  await Promise.all(reads);
  t.deepEqual([...statuses], [[200, 400]]);
  const [customer] = (await client.get('/klanten?perPage=1')).json<{ data: { id: string }[] }>().data;
  const created = await client.request('POST', '/installaties', {
    headers: { 'Idempotency-Key': randomUUID() },
    body: { customerId: customer?.id, naam: 'Koelcel' },
  });
  t.is(created.status, 201);
});

test(`check warns of a connection over a network without TLS, or with a certificate that it cannot verify${why}`, async (t) => {
  const addresses = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  const host = addresses.find(({ family, internal }) => family === 'IPv4' && !internal)?.address;
  if (host === undefined) {
    t.pass('this machine has no address besides loopback');
    return;
  }
  const plain = { replicaUrls: url('reads', host) };
  t.is(await finding(t, 'encryption', plain), 'warning: Names of customers cross the network as plain text.');
  const unverified = { replicaUrls: `${plain.replicaUrls}?sslmode=no-verify` };
  t.regex(await finding(t, 'encryption', unverified), /^warning: The server's certificate is not verified/);
  t.is(await finding(t, 'encryption', {}), 'ok: None: the server is on this machine.');
});
