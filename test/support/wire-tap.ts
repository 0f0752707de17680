import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A proxy in front of a PostgreSQL server that takes down what its clients ask. */
export interface WireTap {
  readonly port: number;
  /** The statements of each round trip so far, by name: all that was bound before one Sync. */
  roundTrips(): string[][];
  close(): Promise<void>;
}

export async function wireTap(target: URL): Promise<WireTap> {
  const trips: string[][] = [];
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect(Number(target.port), target.hostname);
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        near.destroy();
        far.destroy();
      });
    }
    near.on(
      'data',
      reader((statements) => trips.push(statements)),
    );
    near.pipe(far);
    far.pipe(near);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    roundTrips: () => trips,
    close: () => {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

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
      if (type === 'B') bound.push(body.toString('utf8').split('\0')[1] as string);
      if (type === 'Q') onSync([`simple query: ${body.toString('utf8')}`]);
      if (type !== 'S') continue;
      onSync(bound);
      bound = [];
    }
  };
}
