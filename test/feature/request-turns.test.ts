import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Gateway } from '../../src/gateway.js';
import { gatewayTest } from '../support/workspace.js';

// Many requests that arrive together, and a request of another token behind them. The gateway and the test share an event loop:
// requests that the test writes in one turn of it arrive in one turn.

const test = gatewayTest();
const crowd = 60;

/** Connections to the gateway, open and idle. */
function connections(gateway: Gateway, count: number): Promise<Socket[]> {
  const { port } = new URL(gateway.url);
  return Promise.all(
    Array.from({ length: count }, async () => {
      const socket = connect(Number(port), '127.0.0.1').setNoDelay(true);
      await once(socket, 'connect');
      return socket.on('error', () => {});
    }),
  );
}

/** A request that is answered 404 without the database. */
const request = (token: string): string =>
  `GET /api/v1/nothing HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\n\r\n`;

/** The connections, in the order of their answers. */
async function order(sockets: readonly Socket[], write: () => void): Promise<Socket[]> {
  const answered: Socket[] = [];
  const all = sockets.map(async (socket) => {
    await once(socket, 'data');
    answered.push(socket);
  });
  write();
  await Promise.all(all);
  for (const socket of sockets) socket.destroy();
  return answered;
}

test.serial('a request is not kept waiting by those of another token that came before it', async (t) => {
  const { gateway, database } = t.context;
  const [token, other] = [await database.token(), await database.token({ workspace: 1 })];
  const sockets = await connections(gateway, crowd + 1);
  const last = sockets.at(-1) as Socket;
  last.write(request(other)); // two tokens are used from now on
  await once(last, 'data');
  const answers = await order(sockets, () => {
    for (const socket of sockets) socket.write(request(socket === last ? other : token));
  });
  const place = answers.indexOf(last);
  t.true(place < crowd / 3, `it is answered after ${place} others`);
});

test.serial('requests of one token alone begin as they come', async (t) => {
  const own = await t.context.database.token();
  await sleep(1300); // the tokens of the other tests are forgotten
  const sockets = await connections(t.context.gateway, crowd);
  const answers = await order(sockets, () => {
    for (const socket of sockets) socket.write(request(own));
  });
  t.deepEqual(
    answers.map((socket) => sockets.indexOf(socket)),
    sockets.map((_, i) => i),
  );
});

test.serial('a request whose client goes away before its turn is forgotten', async (t) => {
  const { gateway, client, database } = t.context;
  const [token, other] = [await database.token(), await database.token({ workspace: 1 })];
  const sockets = await connections(gateway, crowd);
  await client.get('/klanten?perPage=1', { token: other });
  for (const socket of sockets) socket.write(request(token));
  for (const socket of sockets) socket.resetAndDestroy();
  await sleep(200);
  t.is((await client.get('/klanten?perPage=1', { token: other })).status, 200);
  const metrics = await (await fetch(`${gateway.opsUrl}/metrics`)).text();
  t.regex(metrics, /^gateway_requests_in_flight 0$/m);
});
