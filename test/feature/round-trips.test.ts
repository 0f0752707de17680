import { readFile, stat } from 'node:fs/promises';
import { urlAs } from '../../demo/cluster/passwords.js';
import { hashToken } from '../../src/serve/http/token-format.js';
import type { ApiClient } from '../support/client.js';
import { listNames, type Page } from '../support/lists.js';
import { customerOf } from '../support/primary-side.js';
import { type WireProxy, wireProxy } from '../support/wire-proxy.js';
import { gatewayTest, shared } from '../support/workspace.js';
import { created, patch, post } from '../support/writes.js';

const test = gatewayTest().serial;
/** Statements that the gateway runs by itself, with or without requests. */
const background = new Set(['probe', 'position', 'catalog-digest']);

async function logged(file: string, database: string, work: () => Promise<unknown>): Promise<string[]> {
  const { size } = await stat(file);
  await work();
  const log = (await readFile(file)).subarray(size).toString('utf8');
  const ours = log.split('\n').filter((line) => line.includes(`] ${database}|workspace-data-gateway|`));
  return ours
    .map((line) => /(?:execute ([^:]+)_[\w-]{22}|statement): /.exec(line))
    .flatMap((match) => (match && !background.has(match[1] ?? '') ? [match[1] ?? 'simple query'] : []));
}

async function requests(client: ApiClient): Promise<{ path: string; statement: string }[]> {
  const found = [];
  for (const list of listNames) {
    const { data, pagination } = (await client.get(`/${list}?perPage=20`)).json<Page>();
    found.push({ path: `/${list}`, statement: `${list}.rows-all` });
    found.push({ path: `/${list}?perPage=500`, statement: `${list}.rows-all` });
    found.push({ path: `/${list}?page=2&perPage=20`, statement: `${list}.rows-after` });
    found.push({ path: `/${list}?cursor=${pagination.endCursor}`, statement: `${list}.rows-after` });
    if (list !== 'logboeken') found.push({ path: `/${list}/${data[0]?.id}`, statement: `${list}.detail` });
  }
  const filtered = { path: '/logboeken?entity=klant&from=2024-01-01', statement: 'logboeken.rows-all' };
  return [...found, filtered];
}

test('a read is one statement on the replica behind the workspace guard, and none on the primary', async (t) => {
  const { database } = t.context;
  await database.primary.query(`alter database ${database.name} set log_statement = 'all'`);
  await database.caughtUp();
  const { client } = await database.gateway(); // its connections know the setting
  for (const { path, statement } of await requests(client)) {
    let onPrimary: string[] = [];
    const onReplica = await logged(shared.logs.replica, database.name, async () => {
      onPrimary = await logged(shared.logs.primary, database.name, async () => {
        t.is((await client.get(path)).status, 200);
      });
    });
    const expected = ['workspace-guard', statement];
    // A token's verdict is kept for five seconds, and then asked for again.
    const reads = onReplica.filter((name) => name !== 'find_token');
    t.deepEqual(reads, expected, path);
    t.deepEqual(onPrimary, [], path);
  }
});

test('the count sees the background statements of both servers, so it would see statements of requests', async (t) => {
  const { database } = t.context;
  const text = async (file: string) =>
    (await readFile(file, 'utf8'))
      .split('\n')
      .filter((line) => line.includes(`${database.name}|workspace-data-gateway|`));
  for (const log of [shared.logs.replica, shared.logs.primary])
    t.true((await text(log)).some((line) => line.includes('execute probe_')));
});

test('a refused request runs no statement on any server', async (t) => {
  const { database } = t.context;
  const { client } = await database.gateway();
  const poor = await database.token({ scopes: [] });
  for (const token of [undefined, poor]) await client.get('/klanten?perPage=1', token ? { token } : {});
  const asked = await logged(shared.logs.replica, database.name, async () => {
    t.is((await client.get('/klanten', { token: 'x' })).status, 401);
    t.is((await client.get('/klanten', { token: poor })).status, 403);
    t.is((await client.get('/klanten?perPage=0')).status, 400);
    t.is((await client.get('/klanten', { headers: { accept: 'text/html' } })).status, 406);
    t.is((await client.get('/facturen')).status, 404);
    t.is((await client.request('DELETE', '/klanten')).status, 405);
  });
  t.deepEqual(asked, []);
});

test('a revoked token is looked up once a second, however often it is sent', async (t) => {
  const { database } = t.context;
  const { client } = await database.gateway();
  const token = await database.token();
  await database.primary.query('update app.api_tokens set revoked_at = now() where token_hash = $1', [
    hashToken(token),
  ]);
  await database.caughtUp();
  const startMs = performance.now();
  const asked = await logged(shared.logs.replica, database.name, async () => {
    for (let i = 0; i < 100; i++) await client.get('/klanten', { token });
  });
  const lookUpsMax = 1 + (performance.now() - startMs) / 1000;
  t.true(asked.length > 0 && asked.length <= lookUpsMax, `${asked.length} of at most ${lookUpsMax}`);
});

test('only total counts', async (t) => {
  const { database } = t.context;
  const { client } = await database.gateway();
  await client.get('/klanten?perPage=20');
  const asked = await logged(shared.logs.replica, database.name, () => client.get('/klanten?perPage=20&total=true'));
  t.deepEqual(asked.sort(), ['klanten.count', 'klanten.rows-all', 'workspace-guard', 'workspace-guard']);
});

test('a page far away is one key, counted from the nearest page read, and its rows', async (t) => {
  const { database } = t.context;
  const { client } = await database.gateway();
  const asked = async (page: number): Promise<string[]> => {
    const names = await logged(shared.logs.replica, database.name, () => client.get(`/klanten?perPage=5&page=${page}`));
    return names.filter((name) => name !== 'workspace-guard' && name !== 'find_token');
  };
  t.deepEqual(await asked(20), ['klanten.keys-all', 'klanten.rows-after']);
  t.deepEqual(await asked(21), ['klanten.rows-after'], 'follows a page already read');
  t.deepEqual(await asked(30), ['klanten.keys-after', 'klanten.rows-after']);
  t.deepEqual(await asked(30), ['klanten.rows-after'], 'the same page again');
  t.deepEqual(await asked(29), ['klanten.keys-before', 'klanten.rows-after']);
});

test('a large page of light rows takes few statements: 100 rows first, then chunks of twice chunkRowsMax', async (t) => {
  const { database } = t.context;
  const { client } = await database.gateway({ chunkRowsMax: 100 });
  let rows = 0;
  const asked = await logged(shared.logs.replica, database.name, async () => {
    rows = (await client.get('/logboeken?perPage=10000')).json<Page>().data.length;
  });
  const chunks = asked.filter((name) => name.startsWith('logboeken.rows-')).length;
  const expected = 1 + Math.ceil((rows - 100) / 200);
  t.true(rows > 2000, `${rows} rows`);
  t.true(chunks >= expected && chunks < expected + 2, `${chunks} chunks of ${rows} rows`); // a client that is slow for a moment gets a small one
});

test('a large page of the rows that sync finds takes as few statements as one of a list', async (t) => {
  const { database } = t.context;
  const { client } = await database.gateway({ chunkRowsMax: 100 });
  const prefix = [...'0123456789abcdef'].join(',');
  let rows = 0;
  const asked = await logged(shared.logs.replica, database.name, async () => {
    rows = (await client.get(`/sync/logboeken?prefix=${prefix}&perPage=2000`)).json<Page>().data.length;
  });
  const chunks = asked.filter((name) => name.startsWith('logboeken.versioned.rows-')).length;
  t.is(rows, 2000);
  t.true(chunks >= 11 && chunks < 15, `${chunks} chunks`); // 100 rows, then 200 at a time
});

test('guard and statement travel together: a read is exactly one round trip', async (t) => {
  const { database } = t.context;
  const tap = await wireTap(urlAs(shared.replicas[0] as string, 'gateway_reader', database.name));
  try {
    const { client } = await database.gateway({ replicaUrls: tap.url, tokenCacheMs: 60_000 });
    for (const { path, statement } of await requests(client)) {
      const before = tap.roundTrips().length;
      t.is((await client.get(path)).status, 200);
      const trips = tap
        .roundTrips()
        .slice(before)
        .filter(([name]) => !background.has(name as string));
      t.deepEqual(trips, [['workspace-guard', statement]], path);
    }
    const lookUps = tap.roundTrips().filter(([name]) => name === 'find_token');
    t.is(lookUps.length, 1, 'the token was looked up on the replica, once');
  } finally {
    await tap.close();
  }
});

test('a create is one round trip, a change two: BEGIN travels with the first statements, COMMIT with the last', async (t) => {
  const { database } = t.context;
  const tap = await wireTap(database.settings.primaryUrls);
  try {
    const { client } = await database.gateway({ primaryUrls: tap.url });
    const customerId = await customerOf(database);
    const tripsOf = async (write: () => Promise<unknown>): Promise<string[][]> => {
      const before = tap.roundTrips().length;
      await write();
      const trips = tap.roundTrips().slice(before);
      return trips.filter((names) => !background.has(names[0] as string) && !names[0]?.startsWith('simple query'));
    };
    const opening = ['begin', 'workspace-guard'];
    const closing = ['commit', 'wal-position'];
    const body = { naam: 'x', customerId };
    let id = '';
    const create = async (): Promise<void> => {
      ({ id } = await created(client, body, { key: 'trips' }));
    };
    const named = (...parts: string[]): string[] => parts.map((part) => `installaties.${part}`);
    const atOnce = [...opening, ...named('claim', 'create'), ...closing];
    t.deepEqual(await tripsOf(create), [atOnce]);
    const change = (naam: string) => () => patch(client, id, '"v1"', { naam });
    const locked = [...opening, ...named('claim', 'lock')];
    t.deepEqual(await tripsOf(change('y')), [locked, [...named('update'), ...closing]]);
    const kept = await tripsOf(() => patch(client, id, '"v2"', { naam: 'y' }));
    t.deepEqual(kept, [locked, [...named('keep'), ...closing]], 'nothing changes');
    t.deepEqual(await tripsOf(change('z')), [locked, ['rollback', 'wal-position']], '412');
    const replayed = await tripsOf(() => post(client, body, { key: 'trips' }));
    t.deepEqual(replayed, [atOnce, [...opening, ...named('recall'), ...closing]]);
  } finally {
    await tap.close();
  }
});

interface WireTap extends WireProxy {
  /** Lists the labels of each round trip so far: all that was bound before one Sync. */
  roundTrips(): string[][];
}

async function wireTap(server: string): Promise<WireTap> {
  const trips: string[][] = [];
  const proxy = await wireProxy(server, (near, far) => {
    const read = reader((statements) => trips.push(statements));
    near.on('data', read);
    near.pipe(far);
    far.pipe(near);
  });
  return { ...proxy, roundTrips: () => trips };
}

const labelOf = (name: string): string => name.replace(/_[\w-]{22}$/, '');

/** Reads frontend messages (PostgreSQL 54.7): after the start-up packet a type byte, then a length that counts itself. */
function reader(onSync: (statements: string[]) => void): (bytes: Buffer) => void {
  let pending = Buffer.alloc(0);
  let started = false;
  let bound: string[] = [];
  return (bytes) => {
    pending = Buffer.concat([pending, bytes]);
    for (;;) {
      const typeBytes = started ? 1 : 0;
      if (pending.length < typeBytes + 4) return;
      const end = typeBytes + pending.readUInt32BE(typeBytes);
      if (pending.length < end) return;
      const type = started ? String.fromCharCode(pending[0] as number) : 'start-up';
      const body = pending.subarray(typeBytes + 4, end);
      pending = pending.subarray(end);
      started = true;
      if (type === 'B') bound.push(labelOf(body.toString('utf8').split('\0')[1] as string));
      if (type === 'Q') onSync([`simple query: ${body.toString('utf8')}`]);
      if (type !== 'S') continue;
      onSync(bound);
      bound = [];
    }
  };
}
