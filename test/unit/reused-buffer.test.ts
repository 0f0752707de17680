import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import test from 'ava';
import { Row } from '../../src/postgres/row.js';
import { LastRowKey } from '../../src/read/chunks.js';
import { reusingSocket } from '../../src/wire/row-tap.js';

test('a socket reads into one buffer, but gives copies until that is asked for', async (t) => {
  const server = createServer((socket) => socket.on('data', (bytes) => socket.write(bytes))).listen(0);
  const { socket, reuse } = reusingSocket();
  t.teardown(() => {
    socket.destroy();
    server.close();
  });
  socket.connect((server.address() as AddressInfo).port);
  const echoOf = async (text: string): Promise<Buffer> => {
    const read = once(socket, 'data');
    socket.write(text);
    return (await read)[0] as Buffer;
  };

  const login = await echoOf('login');
  reuse();
  const first = await echoOf('first');
  t.is(first.toString(), 'first');
  const second = await echoOf('other');
  t.deepEqual([login, first, second].map(String), ['login', 'other', 'other']);
  t.is(first.buffer, second.buffer);
});

test('the key of the last row outlives the bytes of its row', (t) => {
  const key = new LastRowKey([2, 0]);
  t.is(key.key, null);
  for (const texts of [
    ['1', null, '2026-03-29 01:59:59.123456', 'x'],
    ['1234', 'y', '2026-03-30', null],
  ]) {
    const row = Row.of(texts);
    key.set(row);
    row.bytes.fill(0xff);
  }
  t.deepEqual(key.key, ['2026-03-30', '1234']);
});
