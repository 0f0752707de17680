import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { drain, listen } from '../../src/http/listeners.js';

// More than the buffers of the system hold, so that most of an answer waits in the process.
const answer = Buffer.alloc(32 << 20, 'a');

async function clientOf(t: ExecutionContext, server: Server, request: string): Promise<Socket> {
  const url = await listen(server, '127.0.0.1', 0);
  const client = connect(Number(new URL(url).port), '127.0.0.1');
  t.teardown(() => client.destroy());
  client.write(request);
  return client;
}

test('a stop waits until a slow client has an answer whose last byte was handed over long before', async (t) => {
  const server = createServer((_, response) => response.end(answer));
  const client = await clientOf(t, server, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  client.pause();
  await once(server, 'request');
  const stopped = drain(server, 20_000);
  await sleep(300);
  let received = 0;
  client.on('data', (bytes) => (received += bytes.length)).resume();
  await Promise.all([stopped, once(client, 'close')]);
  t.true(received > answer.length, `${received} bytes`);
});

test('a stop breaks what is left after its time, also a connection that Node gave away at CONNECT', async (t) => {
  const server = createServer();
  server.on('connect', (_, socket: Duplex) => socket.on('error', () => undefined));
  const client = await clientOf(t, server, 'CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n');
  await once(server, 'connect');
  await drain(server, 100);
  await once(client.resume(), 'close');
  t.pass();
});
