import { formatPosition, parsePosition, type WritePosition } from '../db/wal-position.js';
import { type Count, type KnownCount, rateLimiter, type SharedCounter } from '../flow/rate-limiter.js';
import { Answers } from './answers.js';
import type { Peers } from './peers.js';

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
