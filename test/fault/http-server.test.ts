import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import suite from 'ava';
import { rawRequest } from '../support/client.js';
import { type FaultCluster, type FaultGateway, faultCluster } from '../support/fault-cluster.js';
import { readPage, withoutCursors } from '../support/page-reader.js';
import { limitMs, until } from '../support/patience.js';

const test = suite.serial;

// Clients that do not behave: slow to ask, slow to read, too much, or silent.

let setUp: FaultCluster;
let gateway: FaultGateway;
let token: string;
let port: number;
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

test.before(async () => {
  setUp = await faultCluster({ replicas: 1 });
  gateway = await setUp.gateway({
    chunkRowsMax: 100,
    headersTimeoutMs: limitMs(600),
    requestTimeoutMs: 30_000,
    keepAliveTimeoutMs: 500,
    clientConnectionsMax: 60,
    slowClientMs: 1500,
    pageTimeMaxMs: 4000,
  });
  token = await setUp.token();
  port = Number(new URL(gateway.gateway.url).port);
  await setUp.sql(
    `insert into app.installaties (id, workspace_id, klant_id, naam, omschrijving)
     select gen_random_uuid(), workspace_id, klant_id, naam, (select string_agg(encode(sha512((n::text || i)::bytea), 'hex'), '') from generate_series(1, 15) i)
     from (select * from app.installaties where workspace_id = $1 limit 1) one, generate_series(1, 8000) n`,
    [setUp.workspaces[0]?.id],
  );
  await setUp.caughtUp();
});
test.after.always(() => setUp?.stop());

test('a header that trickles in is answered 408 and its connection closed', async (t) => {
  const startedMs = performance.now();
  const answer = await new Promise<string>((resolve) => {
    let received = '';
    const socket = connect(port, '127.0.0.1', () => socket.write('GET /api/v1/klanten HTTP/1.1\r\nHost: x\r\n'));
    const drip = setInterval(() => socket.write('X-A: b\r\n'), 100);
    socket.on('data', (bytes) => {
      received += bytes;
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      clearInterval(drip);
      resolve(received);
    });
  });
  t.regex(answer, /^HTTP\/1\.1 408 /);
  t.regex(answer, /"code":"request_timeout"/);
  t.true(performance.now() - startedMs < limitMs(3000));
});

test('a connection that sends nothing is closed, also after a request', async (t) => {
  const idleMs = await new Promise<number>((resolve) => {
    const startedMs = performance.now();
    const socket = connect(port, '127.0.0.1');
    socket.resume();
    socket.on('close', () => resolve(performance.now() - startedMs));
  });
  t.true(idleMs < limitMs(3000), `${idleMs} ms`);
  const kept = await rawRequest(port, 'GET /api/v1/klanten HTTP/1.1\r\nHost: x\r\n\r\n', 3000);
  t.regex(kept, /^HTTP\/1\.1 401 /);
  t.regex(kept, /keep-alive/i);
});

test('a header that is too large is answered 431', async (t) => {
  const answer = await rawRequest(
    port,
    `GET /api/v1/klanten HTTP/1.1\r\nHost: x\r\nX-Large: ${'a'.repeat(20_000)}\r\n\r\n`,
  );
  t.regex(answer, /^HTTP\/1\.1 431 /);
  t.regex(answer, /"code":"headers_too_large"/);
});

test('a connection on which hundreds of requests wait is closed, and another client is answered', async (t) => {
  const flood = connect(port, '127.0.0.1');
  flood.on('error', () => undefined);
  flood.resume();
  flood.write('GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(100_000));
  t.is((await readPage(`${gateway.gateway.url}/api/v1/klanten`, { token })).status, 200);
  t.true(await until(() => flood.closed, 5000, 20));
});

test('connections over the bound are closed at once and the others are served', async (t) => {
  const sockets = Array.from({ length: 80 }, () => connect(port, '127.0.0.1').on('error', () => undefined));
  for (const socket of sockets) socket.resume();
  t.true(await until(() => sockets.filter(({ closed }) => closed).length >= 20, 5000, 20));
  t.regex(gateway.log(), /"msg":"client_refused"/); // idle connections are closed as well, later
  t.true((await gateway.metric('gateway_client_connections')) <= 60);
  for (const socket of sockets) socket.destroy();
  t.true(await until(async () => (await gateway.metric('gateway_client_connections')) < 60, 5000, 20));
  t.is((await readPage(gateway.url('/klanten'), { token })).status, 200);
});

test('a client that stops reading is disconnected, and a slow client is not', async (t) => {
  const own = await setUp.gateway({ chunkRowsMax: 100, slowClientMs: limitMs(1500) });
  const url = own.url('/installaties?perPage=9500');
  const isCut = until(async () => (await own.metric('gateway_slow_clients_total')) === 1, 20_000, 100);
  const [stopped, slow] = await Promise.all([
    readPage(url, { token, discard: true, onPiece: () => isCut }),
    readPage(url, { token, discard: true, onPiece: (piece) => sleep((piece.length / 8_000_000) * 1000) }),
  ]);
  t.false(stopped.complete);
  t.true(slow.complete);
  t.is(await own.metric('gateway_slow_clients_total'), 1);
  await own.backToNormal(t);
  await own.stop();
});

test('a page that takes too long is broken off, and one that waits for the database is no slow client', async (t) => {
  const whole = (await readPage(gateway.url('/installaties?perPage=1000'), { token })).body;
  await setUp.pace(1);
  const patient = await readPage(gateway.url('/installaties?perPage=1000'), { token });
  t.true(withoutCursors(patient.body) === withoutCursors(whole) && patient.totalMs > 1600, `${patient.totalMs} ms`);
  const overtime = await readPage(gateway.url('/installaties?perPage=4000'), { token, discard: true });
  await setUp.pace(0);
  t.is(overtime.status, 200);
  t.false(overtime.complete);
  t.true(overtime.totalMs < limitMs(6000));
  t.is(await gateway.metric('gateway_slow_clients_total'), 0);
  await gateway.backToNormal(t);
});

test('a client that disconnects in the middle of a page is no failure of the replica', async (t) => {
  const client = new AbortController();
  await setUp.pace(1);
  const headers = { authorization: `Bearer ${token}` };
  const reply = await fetch(gateway.url('/installaties?perPage=4000'), { headers, signal: client.signal });
  await reply.body?.getReader().read();
  client.abort();
  await gateway.backToNormal(t);
  await setUp.pace(0);
  t.is(await gateway.metric('gateway_replica_failures_total'), 0);
});

/** Says how a page ends for an HTTP/1.0 client, whose body ends with its connection. */
function endOverHttp10(url: string, onFirst: () => void): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1', () =>
      socket.write(`GET /api/v1/installaties?perPage=3000 HTTP/1.0\r\nAuthorization: Bearer ${token}\r\n\r\n`),
    );
    socket.once('data', onFirst);
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(String(error.code)));
    socket.on('end', () => resolve('an orderly end'));
  });
}

test('a page that loses its replica, or takes too long, does not look whole to an HTTP/1.0 client either', async (t) => {
  const hasty = await setUp.gateway({ chunkRowsMax: 100, pageTimeMaxMs: 1000 });
  await setUp.pace(2);
  t.is(await endOverHttp10(hasty.url(''), () => undefined), 'ECONNRESET');
  t.is(await endOverHttp10(gateway.url(''), () => void setUp.cluster.replicas[0]?.kill9()), 'ECONNRESET');
  await setUp.cluster.replicas[0]?.start();
  await setUp.pace(0);
  await hasty.stop();
});

for (const [encoding, pages] of [
  ['identity', 1],
  ['gzip', 2],
] as const) {
  const what = `${pages} ${encoding === 'gzip' ? 'compressed ' : ''}page${pages > 1 ? 's' : ''}`;
  test(`CONNECT behind ${what} neither holds a page up nor keeps it when its client leaves`, async (t) => {
    const patient = await setUp.gateway({ pageTimeMaxMs: 60_000, slowClientMs: 60_000 });
    const request = `GET /api/v1/installaties?perPage=8000 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\nAccept-Encoding: ${encoding}\r\n\r\n`;
    const begin = async (): Promise<{ socket: Socket; bytes: () => Promise<Buffer> }> => {
      const socket = connect(Number(new URL(patient.gateway.url).port), '127.0.0.1');
      socket.on('error', () => undefined);
      socket.write(request.repeat(pages));
      await once(socket, 'readable'); // paused: what it has not read fills the buffers
      await sleep(300);
      socket.write('CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n');
      await sleep(100);
      t.is(await patient.metric('gateway_large_pages'), 1, 'the pages behind it wait');
      return { socket, bytes: async () => Buffer.concat(await socket.toArray()) };
    };
    const leaving = await begin();
    leaving.socket.resetAndDestroy();
    t.true(await until(async () => (await patient.metric('gateway_large_pages')) === 0, 5000, 25));
    const staying = await begin();
    const answers = (await staying.bytes()).toString('latin1');
    t.is(answers.match(/HTTP\/1\.1 200 /g)?.length, pages);
    t.is(answers.match(/\r\n0\r\n\r\nHTTP/g)?.length, pages, 'each page is whole');
    t.is(answers.match(/HTTP\/1\.1 405 /g)?.length, 1);
    await patient.backToNormal(t);
    await patient.stop();
  });
}
