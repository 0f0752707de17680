import { type WireProxy, wireProxy } from './wire-proxy.js';

export interface HoldingProxy extends WireProxy {
  /** Keeps the next message that binds the statement, and all that follow it on its connection, until the work is done. */
  before(statement: string, work: () => Promise<unknown>): void;
  answered(statement: string): Promise<void>;
}

export async function holdingProxy(server: string): Promise<HoldingProxy> {
  const held = new Map<string, () => Promise<unknown>>();
  const awaited = new Map<string, () => void>();
  const proxy = await wireProxy(server, (near, far) => {
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
  return {
    ...proxy,
    before: (statement, work) => void held.set(statement, work),
    answered: (statement) => new Promise((resolve) => awaited.set(statement, resolve)),
  };
}

/** Takes the entry of the statement that the message binds: Bind has its name behind a NUL (PostgreSQL 55.7), label first. */
function taken<T>(entries: Map<string, T>, bytes: Buffer): T | undefined {
  const statement = [...entries.keys()].find((name) => bytes.includes(`\0${name}_`));
  const entry = statement === undefined ? undefined : entries.get(statement);
  if (statement !== undefined) entries.delete(statement);
  return entry;
}
