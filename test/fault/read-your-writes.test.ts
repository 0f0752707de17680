import { readFile } from 'node:fs/promises';
import suite from 'ava';
import pg from 'pg';
import { walPositionStatement } from '../../src/postgres/wal-position.js';
import type { OpenApiDocument } from '../../src/serve/openapi/document.js';
import { type ApiClient, apiClient } from '../support/client.js';
import { contractValidator } from '../support/contract.js';
import { type FaultCluster, type FaultGateway, faultCluster } from '../support/fault-cluster.js';
import { until } from '../support/patience.js';
import { tcpProxy } from '../support/tcp-proxy.js';
import { templateName } from '../support/template.js';
import { allScopes } from '../support/workspace.js';
import { created, type Installation, patch, post } from '../support/writes.js';

const test = suite.serial;

// Replicas replay seconds late; a client that writes sees its write, and the primary is asked for no more than its share.

let setUp: FaultCluster;
let token: string;
let foreign: string;
let customers: string[];
let validate: ReturnType<typeof contractValidator> | undefined; // all gateways have the same document
const delayed = { recovery_min_apply_delay: '4s' };
const prompt = { recovery_min_apply_delay: '0' };

test.before(async () => {
  setUp = await faultCluster({ settings: { log_line_prefix: '%m [%p] %u ' } });
  token = await setUp.token({ scopes: allScopes });
  foreign = await setUp.token({ workspace: 1, scopes: allScopes });
  const rows = await setUp.sql<{ id: string }>('select id from app.klanten where workspace_id = $1 limit 40', [
    setUp.workspaces[0]?.id,
  ]);
  customers = rows.map(({ id }) => id);
});
test.after.always(() => setUp?.stop());

async function clientOf({ gateway }: FaultGateway): Promise<ApiClient> {
  const document = async () => (await (await fetch(`${gateway.url}/api/v1/openapi.json`)).json()) as OpenApiDocument;
  validate ??= contractValidator(await document());
  return apiClient(`${gateway.url}/api/v1`, { token, validate });
}

interface Seen {
  stale: string[];
  refused: number;
  pairs: number;
}

async function readBack(client: ApiClient, path: string, id: string, version: number, seen: Seen): Promise<void> {
  for (;;) {
    const reply = await client.get(path);
    if (reply.status === 503) {
      seen.refused++;
      if (reply.headers['retry-after'] === undefined) seen.stale.push(`${path}: 503 without Retry-After`);
      await new Promise((resolve) => setTimeout(resolve, 50 + Math.random() * 100));
      continue;
    }
    const body = reply.json<Installation & { data?: Installation[] }>();
    const found = body.data === undefined ? body : body.data.find((record) => record.id === id);
    if (reply.status !== 200 || found === undefined || found.version < version)
      seen.stale.push(`${path}: ${reply.status}, v${found?.version} for v${version}`);
    return;
  }
}

async function writeAndRead(client: ApiClient, customerId: string, pairs: number, seen: Seen): Promise<void> {
  const record = await created(client, { naam: 'ryw', customerId });
  for (let version = 1; version <= pairs; version++) {
    const path = version % 2 ? `/installaties/${record.id}` : `/installaties?perPage=100&customerId=${customerId}`;
    await readBack(client, path, record.id, version, seen);
    seen.pairs++;
    const reply = await patch(client, record.id, `"v${version}"`, { naam: `ryw ${version}` });
    if (reply.status !== 200) throw new Error(`PATCH: ${reply.status} ${reply.text}`);
  }
}

async function readsOnPrimary(): Promise<number> {
  const log = await readFile(setUp.cluster.primary.log, 'utf8');
  return log.split('\n').filter((line) => / gateway_writer LOG: +execute installaties\.(?:detail|rows)/.test(line))
    .length;
}

test('200 writes, each read back at once, while every replica is 4 s late: nothing is stale', async (t) => {
  await setUp.sql("alter role gateway_writer set log_statement = 'all'");
  await setUp.sql(`alter database ${templateName} set synchronous_commit = off`); // the app may; our commits are durable anyway
  const cap = 100;
  const fault = await setUp.gateway({ primaryReadsPerSecond: cap, freshnessWaitMs: 100, tokenCacheMs: 5000 });
  for (const node of setUp.cluster.replicas) await node.configure(delayed);
  const client = await clientOf(fault);
  const seen: Seen = { stale: [], refused: 0, pairs: 0 };
  const startedMs = performance.now();
  await Promise.all(customers.map((customerId) => writeAndRead(client, customerId, 5, seen)));
  const seconds = (performance.now() - startedMs) / 1000;
  const [counted, onPrimary] = [await fault.metric('gateway_primary_reads_total'), await readsOnPrimary()];
  t.log({ ...seen, seconds, counted, onPrimary });
  t.deepEqual(seen.stale, []);
  t.is(seen.pairs, 200);
  t.true(
    onPrimary > 0 && onPrimary <= counted,
    'the metric counts what the primary serves, and what it was too busy for',
  );
  t.true(counted <= cap * (Math.ceil(seconds) + 1), `${counted} reads in ${seconds} s`);
  client.close();
  await fault.stop();
});

test('when the cap is reached the answer is 503 with Retry-After, and the primary is left alone', async (t) => {
  const fault = await setUp.gateway({ primaryReadsPerSecond: 3, freshnessWaitMs: 20, queueWaitMs: 10_000 });
  await setUp.caughtUp(); // a gateway that starts counts all that was written before as written by every workspace
  const client = await clientOf(fault);
  const { id } = await created(client, { naam: 'cap', customerId: customers[0] });
  const before = await readsOnPrimary();
  const startedMs = performance.now();
  const replies = await Promise.all(Array.from({ length: 50 }, () => client.get(`/installaties/${id}`)));
  const seconds = 2 + Math.floor((performance.now() - startedMs) / 1000); // of the clock, at most; each allows three reads
  const served = replies.filter(({ status }) => status === 200).length;
  t.true(served >= 3 && served <= 3 * seconds, `${served} served`);
  const refused = replies.filter(({ status }) => status === 503);
  t.is(refused.length, 50 - served);
  t.true(refused.every(({ headers }) => headers['retry-after'] === '1'));
  t.is((await readsOnPrimary()) - before, served);
  t.is((await client.get('/klanten?perPage=1')).status, 200, 'what is never written is read from the replicas');
  t.is((await client.get('/installaties?perPage=1', { token: foreign })).status, 200, 'nor does it concern others');
  client.close();
  await fault.stop();
});

test('a dry run leaves nothing for which a read must wait', async (t) => {
  const fault = await setUp.gateway({ freshnessWaitMs: 20 });
  await setUp.caughtUp();
  const client = await clientOf(fault);
  const read = async () => {
    t.is((await client.get('/installaties?perPage=1')).status, 200);
    return fault.metric('gateway_primary_reads_total');
  };
  const body = { naam: 'dry', customerId: customers[0] };
  t.is((await post(client, body, { query: '?dryRun=true' })).status, 201);
  t.is(await read(), 0);
  t.is((await post(client, body)).status, 201);
  t.is(await read(), 1, 'the replicas are late');
  client.close();
  await fault.stop();
});

test('a read on the primary is repeated when its connection has ended unnoticed', async (t) => {
  const { primary, replicas } = setUp.cluster;
  for (const node of replicas) await node.configure(delayed);
  const proxy = await tcpProxy(primary.port);
  t.teardown(() => proxy.close());
  const primaryUrls = setUp.settings().primaryUrls.replace(`:${primary.port}/`, `:${proxy.port}/`);
  const fault = await setUp.gateway({ primaryUrls, primaryReadsPerSecond: 1000, freshnessWaitMs: 20 });
  const client = await clientOf(fault);
  const { id } = await created(client, { naam: 'ended', customerId: customers[0] });
  const read = async (): Promise<number> => (await client.get(`/installaties/${id}`)).status;
  t.deepEqual(await Promise.all([read(), read(), read()]), [200, 200, 200]);
  const before = await fault.metric('gateway_primary_reads_total');
  proxy.endIdle();
  t.is(await read(), 200);
  t.true((await fault.metric('gateway_primary_reads_total')) > before, 'the primary answered');
  client.close();
  await fault.stop();
});

test('the position after a write is one that replicas reach, also at the start of a page or a segment of the log', async (t) => {
  for (const node of setUp.cluster.replicas) await node.configure(prompt);
  await setUp.sql('checkpoint');
  const client = new pg.Client(setUp.cluster.primary.url());
  await client.connect();
  t.teardown(() => client.end());
  const offset = async (): Promise<number> => {
    const { rows } = await client.query("select ((pg_current_wal_insert_lsn() - '0/0'::pg_lsn) % 8192)::int as at");
    return rows[0].at;
  };
  const end = async () =>
    (await client.query<{ lsn: string }>('select pg_current_wal_insert_lsn() as lsn')).rows[0]?.lsn;
  /** Returns undefined if another record followed meanwhile, which a replica replays with all before it. */
  const reached = async (): Promise<boolean | undefined> => {
    const { rows } = await client.query<{ lsn: string }>(walPositionStatement);
    const asked = await end();
    const arrived = () =>
      setUp.cluster.replicas[0]?.query<{ yes: boolean }>('select pg_last_wal_replay_lsn() >= $1::pg_lsn yes', [
        rows[0]?.lsn,
      ]);
    const isThere = await until(async () => (await arrived())?.[0]?.yes === true, 3000);
    return asked === (await end()) ? isThere : undefined;
  };
  // A message can end where its page ends: n bytes take n and a constant, rounded up to 8. From version 17 on it is flushed at once.
  const { rows: version } = await client.query(
    "select current_setting('server_version_num')::int >= 170000 as flushes",
  );
  const flush = version[0].flushes ? ', true' : '';
  const emit = (bytes: number) =>
    client.query(`select pg_logical_emit_message(false, 'x', $1${flush})`, ['m'.repeat(bytes)]);
  let atEnd = 0;
  for (let attempt = 0; attempt < 100 && atEnd < 3; attempt++) {
    const before = await offset();
    await emit(1000);
    const after = await offset();
    const rest = 8192 - after - (after - before - 1000);
    if (after < before || rest < 300) continue;
    await emit(rest - (rest % 8));
    if ((await offset()) !== 24) continue;
    const isThere = await reached();
    if (isThere === undefined) continue;
    atEnd++;
    t.true(isThere, 'at the start of a page');
  }
  t.true(atEnd > 0);
  await client.query('select pg_switch_wal()');
  t.not(await reached(), false, 'at the start of a segment');
});

test('after a 412 the next read shows the version that caused it, even if the app committed it without waiting for the disk', async (t) => {
  const slow = { wal_writer_delay: '10s' }; // records that are not flushed reach no replica
  await setUp.cluster.primary.configure(slow);
  const fault = await setUp.gateway({ primaryReadsPerSecond: 1000, freshnessWaitMs: 20, queueWaitMs: 10_000 });
  const [client, writer] = [await clientOf(fault), await clientOf(await setUp.gateway())];
  for (let round = 0; round < 20; round++) {
    const { id } = await created(round % 2 ? writer : client, { naam: 'async', customerId: customers[0] });
    await setUp.sql("update app.installaties set interne_notities = 'x' where id = $1", [id]);
    const refused = await patch(client, id, '"v1"', { naam: 'y' });
    t.is(refused.status, 412);
    t.is(refused.headers.etag, '"v2"');
    t.is((await client.get(`/installaties/${id}`)).headers.etag, '"v2"');
  }
  writer.close();
  await setUp.cluster.primary.configure({ wal_writer_delay: null });
  client.close();
  await fault.stop();
});

test('with one replica late and another prompt, reads go to the prompt replica and none to the primary', async (t) => {
  await setUp.cluster.replicas[0]?.configure(delayed);
  const fault = await setUp.gateway({ freshnessWaitMs: 10_000, queueWaitMs: 10_000 });
  const client = await clientOf(fault);
  const seen: Seen = { stale: [], refused: 0, pairs: 0 };
  await Promise.all(customers.slice(0, 5).map((customerId) => writeAndRead(client, customerId, 20, seen)));
  t.deepEqual(seen, { stale: [], refused: 0, pairs: 100 });
  t.is(await fault.metric('gateway_primary_reads_total'), 0);
  client.close();
  await fault.stop();
});
