import type { CompiledWrite } from '../compile/compiled.js';
import type { Primary } from '../db/primary.js';
import type { WritePositions } from '../db/write-positions.js';
import { Problem } from '../errors.js';
import type { Observe } from '../ops/events.js';
import { etagOf } from '../read/etag.js';
import type { Reply } from '../read/reply.js';
import type { IdempotencyExpiry } from './expiry.js';
import type { WriteRequest } from './request.js';
import { inProgress, type Outcome, writeOnce } from './transaction.js';

/** What writing needs of the gateway. */
export interface WriteDeps {
  readonly primary: Primary;
  readonly positions: WritePositions;
  readonly running: Running;
  readonly expiry: IdempotencyExpiry;
  readonly idempotencyWaitMs: number;
  readonly observe: Observe;
}

/** Writes under way in this process, by token and key, so that repeats wait here and hold no connection to the primary. */
export type Running = Map<string, Promise<unknown>>;

/**
 * The whole way of a write after its request has been checked: wait for a running one with the same key → one transaction on
 * the primary → remember its position for the workspace's next reads → answer.
 */
export async function write(deps: WriteDeps, compiled: CompiledWrite, request: WriteRequest, location: (id: string) => string): Promise<Reply> {
  const startedMs = performance.now();
  const outcome = await oneAtATime(deps, `${request.writer.tokenId} ${request.key}`, () => commitWrite(deps, compiled, request));
  const done = outcome.replayed ? 'replayed' : outcome.status === 201 ? 'created' : 'updated';
  deps.observe({ type: 'write_finished', outcome: done });
  deps.expiry.afterWrite();
  const headers = {
    ETag: etagOf(outcome.version),
    ...(outcome.status === 201 && { Location: location(outcome.id) }),
    ...(outcome.replayed && { 'Idempotent-Replayed': 'true' }),
  };
  return { status: outcome.status, headers, body: outcome.body, databaseMs: performance.now() - startedMs };
}

async function commitWrite(deps: WriteDeps, compiled: CompiledWrite, request: WriteRequest): Promise<Outcome> {
  const { workspace } = request.writer;
  try {
    const { value, lsn } = await deps.primary.transaction(workspace, (transaction) => writeOnce(transaction, compiled, request));
    deps.positions.record(workspace, lsn);
    return value;
  } catch (error) {
    if (error instanceof Problem) deps.observe({ type: 'write_finished', outcome: error.code });
    // The version that made the precondition fail must be what the next read shows.
    if (error instanceof Problem && error.code === 'precondition_failed') deps.positions.record(workspace, await deps.primary.position());
    throw error;
  }
}

/** Runs `work` when no other has the name; waits for one that has, for a while. Throws idempotency_in_progress. */
async function oneAtATime<T>({ running, idempotencyWaitMs }: WriteDeps, name: string, work: () => Promise<T>): Promise<T> {
  for (const startedMs = performance.now(); running.has(name); ) {
    const leftMs = idempotencyWaitMs - (performance.now() - startedMs);
    if (leftMs <= 0) throw inProgress();
    await Promise.race([running.get(name)?.catch(() => {}), new Promise((resolve) => setTimeout(resolve, leftMs))]);
  }
  const mine = work();
  running.set(name, mine);
  try {
    return await mine;
  } finally {
    running.delete(name);
  }
}
