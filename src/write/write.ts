import type { Primary } from '../db/primary.js';
import type { WritePositions } from '../db/write-positions.js';
import type { CompiledWrite } from '../definition/compiled.js';
import { Problem } from '../errors.js';
import type { Observe } from '../events.js';
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

/** A write under way in this process. */
interface RunningWrite {
  readonly fingerprint: Buffer;
  readonly outcome: Promise<Outcome>;
}

/** Those under way, by token and key, so that repeats wait here and hold no connection to the primary. */
export type Running = Map<string, RunningWrite>;

/**
 * The whole way of a write after its request has been checked: wait for a running one with the same key → one transaction on
 * the primary → remember its position for the workspace's next reads → answer.
 */
export async function write(
  deps: WriteDeps,
  compiled: CompiledWrite,
  request: WriteRequest,
  location: (id: string) => string,
): Promise<Reply> {
  const startedMs = performance.now();
  const outcome = await observed(deps, () => oneAtATime(deps, request, () => commitWrite(deps, compiled, request)));
  deps.expiry.afterWrite();
  const headers = {
    ETag: etagOf(outcome.version),
    ...(outcome.status === 201 && { Location: location(outcome.id) }),
    ...(outcome.replayed && { 'Idempotent-Replayed': 'true' }),
  };
  return { status: outcome.status, headers, body: outcome.body, databaseMs: performance.now() - startedMs };
}

/** Runs the transaction; what it committed, or the version that refused it, is what the workspace's next read shows. */
async function commitWrite(deps: WriteDeps, compiled: CompiledWrite, request: WriteRequest): Promise<Outcome> {
  const { workspace } = request.caller;
  const { outcome, position } = await deps.primary.transaction(workspace, (transaction) =>
    writeOnce(transaction, compiled, request),
  );
  const isRefused = outcome instanceof Problem;
  if (!isRefused || outcome.code === 'precondition_failed') await deps.positions.record(workspace, position);
  if (isRefused) throw outcome;
  return outcome;
}

/**
 * Runs `work` when no write with the same key is under way. One that is, is waited for, for a while; what it gave the same
 * request is this one's outcome too. Throws idempotency_in_progress.
 */
async function oneAtATime(
  { running, idempotencyWaitMs }: WriteDeps,
  { caller, key, fingerprint }: WriteRequest,
  work: () => Promise<Outcome>,
): Promise<Outcome> {
  const name = `${caller.tokenId} ${key}`;
  const startedMs = performance.now();
  for (let other = running.get(name); other !== undefined; other = running.get(name)) {
    const leftMs = idempotencyWaitMs - (performance.now() - startedMs);
    if (leftMs <= 0) throw inProgress();
    const outcome = await settledWithin(other.outcome, leftMs);
    if (outcome && other.fingerprint.equals(fingerprint)) return { ...outcome, replayed: true };
  }
  const outcome = work();
  running.set(name, { fingerprint, outcome });
  try {
    return await outcome;
  } finally {
    running.delete(name);
  }
}

/** What the promise gave within `waitMs`; null when it failed or took longer. */
async function settledWithin<T>(promise: Promise<T>, waitMs: number): Promise<T | null> {
  let timer: NodeJS.Timeout | undefined;
  const patience = new Promise<null>((resolve) => {
    timer = setTimeout(resolve, waitMs, null);
  });
  const settled = await Promise.race([promise.catch(() => null), patience]);
  clearTimeout(timer);
  return settled;
}

async function observed({ observe }: WriteDeps, work: () => Promise<Outcome>): Promise<Outcome> {
  try {
    const outcome = await work();
    const done = outcome.replayed ? 'replayed' : outcome.status === 201 ? 'created' : 'updated';
    observe({ type: 'write_finished', outcome: done });
    return outcome;
  } catch (error) {
    observe({ type: 'write_finished', outcome: error instanceof Problem ? error.code : 'internal' });
    throw error;
  }
}
