import { type WireProxy, wireProxy } from '../wire-proxy.js';

export interface CommitProxy extends WireProxy {
  lost(): number;
  lose(share: number): void;
}

/** CommandComplete with the tag COMMIT (PostgreSQL 55.7): 'C', a length of 11, the tag, NUL. */
const commitDone = Buffer.from('\x43\0\0\0\x0bCOMMIT\0', 'latin1');

export async function commitProxy(server: string): Promise<CommitProxy> {
  let lost = 0;
  let shareLost = 0;
  const proxy = await wireProxy(server, (near, far) => {
    near.on('data', (bytes) => far.write(bytes));
    far.on('data', (bytes: Buffer) => {
      if (shareLost === 0 || !bytes.includes(commitDone) || Math.random() >= shareLost) return near.write(bytes);
      lost++;
      return near.resetAndDestroy();
    });
  });
  return {
    ...proxy,
    lost: () => lost,
    lose: (share) => {
      shareLost = share;
    },
  };
}
