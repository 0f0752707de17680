import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { gatewayTest } from '../support/workspace.js';

// Clients that ask for another protocol and reset their connection: the gateway goes on.

const test = gatewayTest();

const requests = {
  CONNECT: 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n',
  Upgrade: 'GET /api/v1 HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
};

for (const [what, request] of Object.entries(requests))
  for (const listener of ['url', 'opsUrl'] as const)
    test(`${what} on the ${listener === 'url' ? 'API' : 'ops'} listener, and a reset: the gateway goes on`, async (t) => {
      const { gateway, client } = t.context;
      const socket = connect(Number(new URL(gateway[listener]).port), '127.0.0.1');
      await once(socket, 'connect');
      socket.write(request);
      await sleep(100);
      socket.resetAndDestroy();
      await sleep(100);
      t.is((await client.get('/klanten?perPage=1')).status, 200);
    });
