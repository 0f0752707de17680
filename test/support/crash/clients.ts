import type { ApiClient, ApiReply } from '../client.js';
import { type Installation, newKey, patch, post } from '../writes.js';

export interface Written {
  /** The name it gave the installation; no other write used it. */
  readonly mark: string;
  readonly kind: 'create' | 'update';
  /** It was answered 2xx; otherwise it was refused with 412 and must have had no effect. */
  readonly done: boolean;
  readonly id: string;
  readonly version: number;
}

export interface Encounters {
  requests: number;
  retries: number;
  /** Only a replay revealed these outcomes. */
  replays: number;
  longestMs: number;
}

const undecided: ReadonlySet<number> = new Set([409, 500, 502, 503]);
const pauseMs = 60;
const patienceMs = 60_000;

async function persist(met: Encounters, send: () => Promise<ApiReply>): Promise<ApiReply> {
  const startedMs = performance.now();
  for (;;) {
    met.requests++;
    const reply = await send().catch((error: NodeJS.ErrnoException) => {
      if (error.code === undefined) throw error;
      return null;
    });
    const tookMs = performance.now() - startedMs;
    met.longestMs = Math.max(met.longestMs, tookMs);
    if (reply?.status === 500) throw new Error(`500: ${reply.text}`);
    if (reply !== null && !undecided.has(reply.status)) {
      if (reply.headers['idempotent-replayed']) met.replays++;
      return reply;
    }
    met.retries++;
    if (tookMs > patienceMs) throw new Error(`no answer within ${patienceMs} ms, the last was ${reply?.status}`);
    await new Promise((resolve) => setTimeout(resolve, pauseMs * (0.5 + Math.random())));
  }
}

/** Creates and changes installations until `next` gives no more marks, repeating each request with its key until there is an answer. */
export async function writeUntilDone(
  client: ApiClient,
  customerId: string,
  shared: string[],
  met: Encounters,
  next: () => string | undefined,
): Promise<Written[]> {
  const all: Written[] = [];
  for (let mark = next(); mark !== undefined; mark = next()) {
    const key = newKey();
    if (shared.length < 5 || Math.random() < 0.3) {
      const body = { naam: mark, customerId };
      const reply = await persist(met, () => post(client, body, { key }));
      if (reply.status !== 201) throw new Error(`POST: ${reply.status} ${reply.text}`);
      const { id, version } = reply.json<Installation>();
      shared.push(id);
      all.push({ mark, kind: 'create', done: true, id, version });
      continue;
    }
    // Few records, so that clients meet on them.
    const id = shared[Math.floor(Math.random() * Math.min(shared.length, 40))] as string;
    const read = await persist(met, () => client.get(`/installaties/${id}`));
    const ifMatch = read.headers.etag as string;
    const reply = await persist(met, () => patch(client, id, ifMatch, { naam: mark as string }, { key }));
    if (reply.status !== 200 && reply.status !== 412) throw new Error(`PATCH: ${reply.status} ${reply.text}`);
    const done = reply.status === 200;
    all.push({ mark, kind: 'update', done, id, version: done ? reply.json<Installation>().version : 0 });
  }
  return all;
}
