import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface CommitProxy {
  readonly port: number;
  readonly lost: number;
  lose(share: number): void;
  close(): Promise<void>;
}

/** CommandComplete with the tag COMMIT (PostgreSQL 55.7): 'C', a length of 11, the tag, NUL. */
const commitDone = Buffer.from('\x43\0\0\0\x0bCOMMIT\0', 'latin1');

export async function commitProxy(targetPort: number): Promise<CommitProxy> {
  const sockets = new Set<Socket>();
  let lost = 0;
  let shareLost = 0;
  const server = createServer((near) => {
    const far = connect(targetPort, '127.0.0.1');
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket);
      socket.setNoDelay(true);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        sockets.delete(socket);
        other.destroy();
      });
    }
    near.on('data', (bytes) => far.write(bytes));
    far.on('data', (bytes: Buffer) => {
      if (shareLost === 0 || !bytes.includes(commitDone) || Math.random() >= shareLost) return near.write(bytes);
      lost++;
      return near.resetAndDestroy();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    get lost() {
      return lost;
    },
    lose: (share) => {
      shareLost = share;
    },
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
