import cluster, { type Worker } from 'node:cluster';
import { LRUCache } from 'lru-cache';
import { RateLimiterCluster } from 'rate-limiter-flexible';
import { formatPosition, isLater, parsePosition, type WritePosition } from '../db/wal-position.js';
import { limiterOf, memoryLimiter, windowSeconds } from '../http/limits.js';
import { type Peers, peerWaitMs } from './peers.js';

/** Messages about writes between a worker, its parent and the other workers. */
export type WriteMessage =
  /** A worker has started: the parent answers with the positions that it keeps. */
  | { readonly type: 'joined' }
  | { readonly type: 'positions'; readonly positions: readonly (readonly [workspace: string, position: string])[] }
  | { readonly type: 'wrote'; readonly id: number; readonly workspace: string; readonly position: string }
  | { readonly type: 'acknowledged'; readonly id: number };

/** How long a worker that starts waits for the positions that its parent keeps. */
const joinMsMax = 1000;

/**
 * Gateways that are workers of one parent on one machine: the parent counts for all, keeps the last write of each workspace
 * and passes it on to the other workers before the writing worker answers its client. A parent that does not answer
 * leaves each worker its share of the limits. Resolves when the worker knows the writes of the others.
 */
export async function workerPeers(
  workers: number,
  onWrite: (workspace: string, position: WritePosition) => void,
): Promise<Peers> {
  const waiting = new Map<number, () => void>();
  let lastId = 0;
  let onJoined = (): void => undefined;
  const send = (message: WriteMessage): void => void process.send?.(message);
  const listen = (message: WriteMessage): void => {
    if (message.type === 'acknowledged') waiting.get(message.id)?.();
    if (message.type === 'positions') {
      for (const [workspace, position] of message.positions) onWrite(workspace, parsePosition(position));
      onJoined();
    }
    if (message.type === 'wrote') {
      onWrite(message.workspace, parsePosition(message.position));
      send({ type: 'acknowledged', id: message.id });
    }
  };
  process.on('message', listen);
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, joinMsMax);
    onJoined = () => {
      clearTimeout(timer);
      resolve();
    };
    send({ type: 'joined' });
  });
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
        send({ type: 'wrote', id, workspace, position: formatPosition(position) });
      }),
    lastWrite: () => undefined, // the parent sends the others' writes
    close: () => process.off('message', listen),
  };
}

/** The parent's side: keeps the last write of each workspace for workers that start, and passes writes on. */
export function relayWrites(): void {
  const positions = new LRUCache<string, string>({ max: 10_000, ttl: 3_600_000 });
  const joined = new Map<number, Worker>();
  const relays = new Map<number, { readonly writer: Worker; readonly id: number; missing: number }>();
  let lastRelay = 0;
  const answers: { readonly [Type in WriteMessage['type']]?: (from: Worker, message: never) => void } = {
    joined: (from) => {
      joined.set(from.id, from);
      send(from, { type: 'positions', positions: [...positions.entries()] });
    },
    wrote: (writer, { id, workspace, position }: Extract<WriteMessage, { type: 'wrote' }>) => {
      const known = positions.get(workspace);
      if (known === undefined || isLater(parsePosition(position), parsePosition(known)))
        positions.set(workspace, position);
      const others = [...joined.values()].filter((worker) => worker !== writer && worker.isConnected());
      if (others.length === 0) return send(writer, { type: 'acknowledged', id });
      const relay = ++lastRelay;
      relays.set(relay, { writer, id, missing: others.length });
      for (const other of others) send(other, { type: 'wrote', id: relay, workspace, position });
      setTimeout(() => relays.delete(relay), 1000).unref();
    },
    acknowledged: (_, { id }: Extract<WriteMessage, { type: 'acknowledged' }>) => {
      const relay = relays.get(id);
      if (relay === undefined || --relay.missing > 0) return;
      relays.delete(id);
      send(relay.writer, { type: 'acknowledged', id: relay.id });
    },
  };
  cluster.on('message', (from, message: WriteMessage) => answers[message?.type]?.(from, message as never));
  cluster.on('exit', (worker) => joined.delete(worker.id));
}

/** A worker that has died meanwhile is no error: its successor gets the positions when it starts. */
function send(worker: Worker, message: WriteMessage): void {
  worker.send(message, () => undefined);
}
