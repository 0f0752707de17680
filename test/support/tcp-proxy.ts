import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** A TCP proxy on 127.0.0.1 can lose, break or refuse what passes through it. */
export interface TcpProxy {
  readonly port: number;
  /** Stops forwarding, both ways: connections stay open and new ones are accepted, but nothing comes through, ever. */
  blackHole(): void;
  delayConnections(ms: number): void;
  cut(): void;
  /** Each idle session ends after the next byte of its client, within 100 ms: its server ended it, and the client has not read so. */
  endIdle(): void;
  breakNext(): void;
  restore(): void;
  close(): Promise<void>;
}

/** The session has no transaction (PostgreSQL 54.7, "Message Formats"). */
const readyForQuery = Buffer.from('Z\0\0\0\x05I');

export async function tcpProxy(targetPort: number, port = 0): Promise<TcpProxy> {
  const pairs = new Map<Socket, Socket>();
  const lost = new Set<Socket>();
  /** The near ends of sessions that are idle, and of those that end at the next byte. */
  const [idle, ended] = [new Set<Socket>(), new Set<Socket>()];
  let [silent, isNextBroken] = [false, false];
  let [delayMs, count] = [0, 0];
  const server = createServer(async (near) => {
    near.on('error', () => undefined);
    if (isNextBroken) {
      isNextBroken = false;
      return void near.resetAndDestroy();
    }
    await sleep(delayMs);
    const far = connect(targetPort, '127.0.0.1');
    pairs.set(near, far);
    if (silent) lost.add(near);
    const end = (): void => {
      if (!lost.has(near)) for (const socket of [near, far]) socket.destroy();
      if (!near.destroyed || !far.destroyed) return;
      pairs.delete(near);
      for (const set of [lost, idle, ended]) set.delete(near);
    };
    for (const socket of [near, far]) {
      socket.setNoDelay(true);
      socket.on('error', () => undefined);
      socket.on('close', end);
    }
    const forward = (from: Socket, to: Socket): void => {
      from.on('data', (bytes) => {
        if (ended.has(from)) setTimeout(() => from.destroy(), 50 * (count++ % 3));
        else if (!lost.has(near) && !to.destroyed) to.write(bytes);
      });
    };
    forward(near, far);
    forward(far, near);
    near.on('data', () => idle.delete(near));
    far.on('data', (bytes) => idle[bytes.subarray(-6).equals(readyForQuery) ? 'add' : 'delete'](near));
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  const cut = (): void => {
    for (const [near, far] of pairs) {
      near.resetAndDestroy();
      far.destroy();
    }
    pairs.clear();
    lost.clear();
  };
  return {
    port: (server.address() as AddressInfo).port,
    blackHole: () => {
      silent = true;
      for (const near of pairs.keys()) lost.add(near);
    },
    delayConnections: (ms) => {
      delayMs = ms;
    },
    cut,
    endIdle: () => {
      for (const near of idle) ended.add(near);
    },
    breakNext: () => {
      isNextBroken = true;
    },
    restore: () => {
      silent = false;
      delayMs = 0;
      for (const near of lost) pairs.get(near)?.destroy(); // servers end sessions whose clients are gone
    },
    close: async () => {
      cut();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
