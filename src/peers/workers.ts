import cluster from 'node:cluster';
import { RateLimiterCluster } from 'rate-limiter-flexible';
import { formatPosition, parsePosition, type WritePosition } from '../db/wal-position.js';
import { limiterOf, memoryLimiter, windowSeconds } from '../http/limits.js';
import { type Peers, peerWaitMs } from './peers.js';

/** What travels between a worker, its parent and the other workers about writes. */
export type WriteMessage =
  | { readonly type: 'wrote'; readonly id: number; readonly workspace: string; readonly position: string }
  | { readonly type: 'told'; readonly id: number };

/**
 * Gateways that are workers of one parent on one machine: the parent counts for all, and passes writes on to the others
 * before the writer answers its client. A parent that does not answer leaves each worker its share of the limits.
 */
export function workerPeers(workers: number, onWrite: (workspace: string, position: WritePosition) => void): Peers {
  const waiting = new Map<number, () => void>();
  let lastId = 0;
  const listen = (message: WriteMessage): void => {
    if (message.type === 'told') waiting.get(message.id)?.();
    if (message.type === 'wrote') {
      onWrite(message.workspace, parsePosition(message.position));
      process.send?.({ type: 'told', id: message.id } satisfies WriteMessage);
    }
  };
  process.on('message', listen);
  return {
    limiter: (name, quota) => {
      const shared = limiterOf(
        quota,
        new RateLimiterCluster({ keyPrefix: name, points: quota, duration: windowSeconds, timeoutMs: peerWaitMs }),
      );
      const local = memoryLimiter(name, Math.max(1, Math.floor(quota / workers)));
      return {
        quota,
        consume: (key) => shared.consume(key).catch(() => local.consume(key)),
        peek: (key) => shared.peek(key).catch(() => local.peek(key)),
      };
    },
    publishWrite: (workspace, position) =>
      new Promise((resolve) => {
        const id = ++lastId;
        const done = (): void => {
          clearTimeout(timer);
          waiting.delete(id);
          resolve();
        };
        const timer = setTimeout(done, peerWaitMs);
        waiting.set(id, done);
        process.send?.({ type: 'wrote', id, workspace, position: formatPosition(position) } satisfies WriteMessage);
      }),
    lastWrite: () => undefined, // the others' writes are pushed to us
    close: () => process.off('message', listen),
  };
}

/** The parent's side: passes a write on to the other workers, and tells the writer when all of them know. */
export function relayWrites(): void {
  const outstanding = new Map<number, { readonly writer: number; readonly id: number; missing: number }>();
  let lastRelay = 0;
  cluster.on('message', (from, message: WriteMessage) => {
    const workers = Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);
    if (message?.type === 'wrote') {
      const others = workers.filter((worker) => worker.id !== from.id && worker.isConnected());
      if (others.length === 0) return void from.send({ type: 'told', id: message.id });
      const relay = ++lastRelay;
      outstanding.set(relay, { writer: from.id, id: message.id, missing: others.length });
      for (const other of others) other.send({ ...message, id: relay });
      setTimeout(() => outstanding.delete(relay), 1000).unref();
    }
    if (message?.type === 'told') {
      const relay = outstanding.get(message.id);
      if (relay === undefined || --relay.missing > 0) return;
      outstanding.delete(message.id);
      cluster.workers?.[relay.writer]?.send({ type: 'told', id: relay.id });
    }
  });
}
