import cluster, { type Worker } from 'node:cluster';
import { LRUCache } from 'lru-cache';
import { atMost } from '../cache-bound.js';
import { isLater, parsePosition } from '../db/wal-position.js';
import { nextCount } from '../flow/rate-limiter.js';
import type { Answer, CountQuestion, ParentMessage, WorkerMessage } from './workers.js';

type Of<Type extends WorkerMessage['type']> = Extract<WorkerMessage, { type: Type }>;

/** A write that some of the other workers have not acknowledged. */
interface Relay {
  readonly from: Worker;
  readonly id: number;
  missing: number;
}

/**
 * How long a write waits for the other workers; then it is answered without those that are frozen. Shorter than the silence
 * after which a worker takes its parent for away (answers.ts): that one is not noticed while the parent answers its counts.
 */
const relayMsMax = 200;

/** The parent's side of `workerPeers`: counts for all workers, keeps the last write of each workspace and passes it on. */
export function serveWorkers(): void {
  const positions = new LRUCache<string, string>({ ...atMost(10_000), ttl: 3_600_000 });
  const counts = new LRUCache<string, { readonly consumed: number; readonly endsAtMs: number }>(atMost(100_000));
  const joined = new Map<number, Worker>();
  const relays = new Map<number, Relay>();
  let lastRelay = 0;
  const othersThan = (from: Worker): Worker[] =>
    [...joined.values()].filter((worker) => worker !== from && worker.isConnected());

  const join = (from: Worker): void => {
    joined.set(from.id, from);
    send(from, { type: 'positions', positions: [...positions.entries()] });
  };
  const relay = (from: Worker, { id, workspace, position }: Of<'wrote'>): void => {
    const kept = positions.get(workspace);
    if (kept === undefined || isLater(parsePosition(position), parsePosition(kept))) positions.set(workspace, position);
    const others = othersThan(from);
    if (others.length === 0) return send(from, { type: 'answers', answers: [{ id }] });
    const relayId = ++lastRelay;
    relays.set(relayId, { from, id, missing: others.length });
    for (const other of others) send(other, { type: 'wrote', id: relayId, workspace, position });
    setTimeout(answerRelay, relayMsMax, relayId).unref();
  };
  const answerRelay = (relayId: number): void => {
    const relayed = relays.get(relayId);
    if (relayed === undefined) return;
    relays.delete(relayId);
    send(relayed.from, { type: 'answers', answers: [{ id: relayed.id }] });
  };
  const acknowledge = ({ id }: Of<'acknowledged'>): void => {
    const relayed = relays.get(id);
    if (relayed !== undefined && --relayed.missing === 0) answerRelay(id);
  };
  const count = ({ id, name, key, known, requests }: CountQuestion): Answer => {
    const nowMs = performance.now();
    const kept = counts.get(`${name} ${key}`);
    const running = kept !== undefined && kept.endsAtMs > nowMs ? kept : undefined;
    const consumed = nextCount(running?.consumed ?? 0, known, requests);
    const endsAtMs = running?.endsAtMs ?? nowMs + known.endsInMs;
    if (consumed > 0) counts.set(`${name} ${key}`, { consumed, endsAtMs });
    return { id, count: { consumed, endsInMs: Math.ceil(endsAtMs - nowMs) } };
  };

  cluster.on('message', (from, message: WorkerMessage) => {
    if (message?.type === 'joined') join(from);
    if (message?.type === 'wrote') relay(from, message);
    if (message?.type === 'acknowledged') acknowledge(message);
    if (message?.type === 'count') send(from, { type: 'answers', answers: message.questions.map(count) });
  });
  cluster.on('exit', (worker) => joined.delete(worker.id));
}

/** Sends a message. Ignores that the worker has died, because its successor gets the positions when it starts. */
function send(worker: Worker, message: ParentMessage): void {
  worker.send(message, () => undefined);
}
