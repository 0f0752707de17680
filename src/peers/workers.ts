import cluster, { type Worker } from 'node:cluster';
import { LRUCache } from 'lru-cache';
import { atMost } from '../cache-bound.js';
import {
  type Count,
  countNext,
  type Kept,
  type KnownCount,
  rateLimiter,
  type SharedCounter,
} from '../flow/rate-limiter.js';
import { formatPosition, isLater, parsePosition, type WritePosition } from '../postgres/wal-position.js';
import { Answers, type Peers } from './peers.js';

/** From a worker to its parent. */
export type WorkerMessage =
  /** The worker has started: the parent sends the positions that it keeps. */
  | { readonly type: 'joined' }
  | { readonly type: 'wrote'; readonly id: number; readonly workspace: string; readonly position: string }
  | { readonly type: 'acknowledged'; readonly id: number }
  /** All counts of a turn of the event loop: a message costs more than a detail does. Their answers come in one message, too. */
  | { readonly type: 'count'; readonly questions: readonly CountQuestion[] };

/** A request to count, as SharedCounter. */
export interface CountQuestion {
  readonly id: number;
  readonly name: string;
  readonly key: string;
  readonly known: KnownCount;
  readonly requests: number;
}

/** The answer to the message with the id; `count` to a question. */
export interface Answer {
  readonly id: number;
  readonly count?: Count;
}

/** From the parent to a worker. */
export type ParentMessage =
  | { readonly type: 'positions'; readonly positions: readonly (readonly [workspace: string, position: string])[] }
  | { readonly type: 'wrote'; readonly id: number; readonly workspace: string; readonly position: string }
  | { readonly type: 'answers'; readonly answers: readonly Answer[] };

/** How long a starting worker waits for its parent's positions. */
const joinMsMax = 1000;

/**
 * Peers that are workers of one parent on one machine. The parent counts for all workers, keeps the last write of each
 * workspace and passes it on to the other workers before the writing worker answers its client. While the parent does not
 * answer, each worker enforces its share of the limits. Resolves when this worker knows the writes of the others.
 */
export async function workerPeers(
  workers: number,
  onWrite: (workspace: string, position: WritePosition) => void,
): Promise<Peers> {
  const waiting = new Map<number, (count: Count | undefined) => void>();
  const answers = new Answers();
  let lastId = 0;
  let onJoined = (): void => undefined;
  const send = (message: WorkerMessage): void => void process.send?.(message);
  const answerTo = (id: number): Promise<Count | undefined> => new Promise((resolve) => waiting.set(id, resolve));
  let questions: CountQuestion[] = [];
  const sendQuestions = (): void => {
    send({ type: 'count', questions });
    questions = [];
  };
  const counterOf =
    (name: string): SharedCounter =>
    async (key, known, requests) => {
      const id = ++lastId;
      try {
        return (await answers.ask(() => {
          const answer = answerTo(id);
          if (questions.push({ id, name, key, known, requests }) === 1) setImmediate(sendQuestions);
          return answer;
        })) as Count;
      } finally {
        waiting.delete(id);
      }
    };
  const listen = (message: ParentMessage): void => {
    if (message.type === 'answers') for (const { id, count } of message.answers) waiting.get(id)?.(count);
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
    limiter: (name, quota) => rateLimiter(quota, { gateways: workers, counter: counterOf(name) }),
    publishWrite: async (workspace, position) => {
      const id = ++lastId;
      const sent = answerTo(id);
      send({ type: 'wrote', id, workspace, position: formatPosition(position) }); // sent even while `answers` asks the parent nothing
      await answers.ask(() => sent).catch(() => undefined);
      waiting.delete(id);
    },
    lastWrite: () => undefined, // the parent sends the others' writes
    redis: () => null,
    close: () => process.off('message', listen),
  };
}

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
  const counts = new LRUCache<string, Kept & { readonly endsAtMs: number }>(atMost(100_000));
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
  const count = (from: Worker, { id, name, key, known, requests }: CountQuestion): Answer => {
    const nowMs = performance.now();
    const kept = counts.get(`${name} ${key}`);
    const isRunning = kept !== undefined && kept.endsAtMs > nowMs;
    const running = isRunning ? kept : { consumed: 0, granted: new Map(), endsAtMs: nowMs + known.endsInMs };
    const consumed = countNext(running, from.id, known, requests);
    if (consumed > 0) counts.set(`${name} ${key}`, running);
    return { id, count: { consumed, endsInMs: Math.ceil(running.endsAtMs - nowMs) } };
  };

  cluster.on('message', (from, message: WorkerMessage) => {
    if (message?.type === 'joined') join(from);
    if (message?.type === 'wrote') relay(from, message);
    if (message?.type === 'acknowledged') acknowledge(message);
    if (message?.type === 'count')
      send(from, { type: 'answers', answers: message.questions.map((question) => count(from, question)) });
  });
  cluster.on('exit', (worker) => joined.delete(worker.id));
}

/** Sends a message. Ignores that the worker has died, because its successor gets the positions when it starts. */
function send(worker: Worker, message: ParentMessage): void {
  worker.send(message, () => undefined);
}
