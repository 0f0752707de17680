import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import test from 'ava';
import { Answers } from '../../src/peers/answers.js';

test('a connection that breaks counts after what had arrived on others, in whatever order they are read', async (t) => {
  const server = createServer((socket) => socket.on('error', () => undefined));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.teardown(() => server.close());
  const { port } = server.address() as { port: number };
  const connected = async (): Promise<[own: Socket, peer: Socket]> => {
    const own = connect(port, '127.0.0.1');
    const [[peer]] = await Promise.all([once(server, 'connection') as Promise<[Socket]>, once(own, 'connect')]);
    return [own, peer];
  };
  for (const isFirst of [true, false]) {
    const [one, peerOfOne] = await connected();
    const [other, peerOfOther] = await connected();
    t.teardown(() => other.destroy());
    const order: string[] = [];
    other.on('data', () => order.push('read'));
    const asked = new Answers().ask(async () => {
      await once(one.resume(), 'end');
      throw new Error('the connection broke');
    });
    await pause(20); // both are read from now on
    const ways = [() => peerOfOne.destroy(), () => peerOfOther.write('announcement')];
    for (const way of isFirst ? ways : ways.reverse()) way();
    await t.throwsAsync(asked.finally(() => order.push('rejected')));
    t.deepEqual(order, ['read', 'rejected']);
  }
});
