import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface HoldingProxy {
  readonly port: number;
  /** Keeps the next message that binds the statement, and all that follow it on its connection, until the work is done. */
  before(statement: string, work: () => Promise<unknown>): void;
  answered(statement: string): Promise<void>;
  close(): Promise<void>;
}

export async function holdingProxy({ port, hostname }: URL): Promise<HoldingProxy> {
  const held = new Map<string, () => Promise<unknown>>();
  const awaited = new Map<string, () => void>();
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect(Number(port), hostname);
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => other.destroy());
    }
    let before: Promise<unknown> = Promise.resolve();
    near.on('data', (bytes: Buffer) => {
      const work = taken(held, bytes);
      const onAnswer = taken(awaited, bytes);
      before = before.then(work).then(() => {
        if (onAnswer) far.once('data', onAnswer);
        far.write(bytes);
      });
    });
    far.on('data', (bytes) => near.write(bytes));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    before: (statement, work) => void held.set(statement, work),
    answered: (statement) => new Promise((resolve) => awaited.set(statement, resolve)),
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Takes the entry of the statement that the message binds: Bind has its name behind a NUL (PostgreSQL 55.7), label first. */
function taken<T>(entries: Map<string, T>, bytes: Buffer): T | undefined {
  const statement = [...entries.keys()].find((name) => bytes.includes(`\0${name}_`));
  const entry = statement === undefined ? undefined : entries.get(statement);
  if (statement !== undefined) entries.delete(statement);
  return entry;
}
