import cluster from 'node:cluster';
import { LRUCache } from 'lru-cache';
import { limitEntries } from '../../base/cache-bound.js';
import { type Count, countNext, type LocalWindow, type SharedWindow } from '../../base/flow/rate-limiter.js';
import { isLater, parsePosition, type WritePosition } from '../../postgres/wal-position.js';
import { listenToParent, listenToWorkers, sendToParent, sendToWorker } from './channel.js';
import { connectPeers, type Peers, SilenceDetector } from './peers.js';

type Question =
  | { readonly key: string; readonly known: LocalWindow; readonly requests: number }
  | { readonly workspace: string; readonly position: string };

/** All questions of a turn of the event loop: a message costs more than a single record. */
interface WorkerMessage {
  readonly type: 'questions';
  readonly questions: readonly (readonly [id: number, asked: Question])[];
}

/** Has the writes since the last message, as a request is counted before it reads. */
interface ParentMessage {
  readonly type: 'answers';
  readonly answers: readonly (readonly [id: number, count: Count | null])[];
  readonly writes: readonly (readonly [workspace: string, position: string])[];
}

/** With more open questions, a frozen parent is asked nothing. */
const questionsMax = 10_000;

/** Lets the parent count; the counts bring the others' writes. Each request asks a silent parent again: no read misses a write. */
export function connectWorkerPeers(
  workers: number,
  onWrite: (workspace: string, position: WritePosition) => void,
): Peers {
  const waiting = new Map<number, (count: Count | null) => void>();
  let lastId = 0;
  let questions: (readonly [number, Question])[] = [];
  const send = (): void => {
    sendToParent<WorkerMessage>({ type: 'questions', questions });
    questions = [];
  };
  const ask = async (asked: Question): Promise<Count | null> => {
    if (waiting.size >= questionsMax) throw new Error('the parent does not answer');
    const id = ++lastId;
    if (questions.push([id, asked]) === 1) setImmediate(send);
    return new Promise((resolve) => waiting.set(id, resolve));
  };
  const close = listenToParent<ParentMessage>({
    answers: ({ answers, writes }) => {
      for (const [workspace, position] of writes) onWrite(workspace, parsePosition(position));
      for (const [id, count] of answers) {
        waiting.get(id)?.(count);
        waiting.delete(id);
      }
    },
  });
  const answers = new SilenceDetector(0);
  const store = {
    count: async (key: string, known: LocalWindow, requests: number) => (await ask({ key, known, requests })) as Count,
    publish: (workspace: string, position: string) => ask({ workspace, position }),
  };
  return { ...connectPeers(workers, store, (request) => answers.ask(request)), redis: () => null, close };
}

export function serveWorkers(): void {
  /** Writes by workspace, the newest first, each with its number among all writes. */
  const writes = new LRUCache<string, { readonly position: string; readonly number: number }>({
    ...limitEntries(10_000),
    ttl: 3_600_000,
  });
  let lastNumber = 0;
  const known = new Map<number, number>();
  const counts = new LRUCache<string, SharedWindow & { readonly endsAtMs: number }>(limitEntries(100_000));

  const count = (worker: number, { key, known, requests }: Extract<Question, { key: string }>): Count => {
    const nowMs = performance.now();
    const kept = counts.get(key);
    const isRunning = kept !== undefined && kept.endsAtMs > nowMs;
    const running = isRunning ? kept : { consumed: 0, granted: new Map(), endsAtMs: nowMs + known.endsInMs };
    const consumed = countNext(running, worker, known, requests);
    if (consumed > 0) counts.set(key, running);
    return { consumed, endsInMs: Math.ceil(running.endsAtMs - nowMs) };
  };
  const keepWrite = ({ workspace, position }: Extract<Question, { workspace: string }>): null => {
    const kept = writes.peek(workspace)?.position;
    if (kept === undefined || isLater(parsePosition(position), parsePosition(kept)))
      writes.set(workspace, { position, number: ++lastNumber });
    return null;
  };
  const writesSince = (number: number): ParentMessage['writes'] => {
    const since: [string, string][] = [];
    for (const [workspace, write] of writes.entries()) {
      if (write.number <= number) break;
      since.push([workspace, write.position]);
    }
    return since;
  };

  listenToWorkers<WorkerMessage>({
    questions: ({ questions }, worker) => {
      const answers = questions.map(([id, asked]): readonly [number, Count | null] => {
        return [id, 'key' in asked ? count(worker.id, asked) : keepWrite(asked)];
      });
      const writes = writesSince(known.get(worker.id) ?? 0);
      known.set(worker.id, lastNumber);
      sendToWorker<ParentMessage>(worker, { type: 'answers', answers, writes });
    },
  });
  cluster.on('exit', (worker) => known.delete(worker.id));
}
