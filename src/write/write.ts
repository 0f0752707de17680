import type { CompiledWrite } from '../definition/compiled.js';
import { Problem } from '../errors.js';
import type { Observe } from '../events.js';
import type { WritePositions } from '../postgres/heartbeat.js';
import type { Primary } from '../postgres/primary.js';
import { Row } from '../postgres/row.js';
import { etagOf } from '../read/etag.js';
import type { Reply } from '../read/reply.js';
import type { WriteRequest } from './request.js';
import { inProgress, type Outcome, writeOnce } from './transaction.js';

/** Dependencies of a write; made once per gateway. */
export interface WriteDeps {
  readonly primary: Primary;
  readonly positions: WritePositions;
  readonly running: RunningWrites;
  readonly observe: Observe;
}

/**
 * The whole way of a checked write: wait for a running write with the same key → one transaction on the primary → remember
 * its position for the workspace's next reads → answer.
 */
export async function write(
  deps: WriteDeps,
  compiled: CompiledWrite,
  request: WriteRequest,
  location: (id: string) => string,
): Promise<Reply> {
  const startedMs = performance.now();
  const { status, row, mayRead, replayed } = await observed(deps, () =>
    deps.running.run(request, () => commitWrite(deps, compiled, request)),
  );
  const headers: Record<string, string> = { ETag: etagOf((at) => row[at] ?? null, compiled.tag) };
  if (status === 201) headers.Location = location(row[compiled.idAt] as string);
  if (replayed) headers['Idempotent-Replayed'] = 'true';
  const databaseMs = performance.now() - startedMs;
  const serializer = mayRead && request.mayRead ? compiled.fullRecord : compiled.writeScopeRecord;
  return { status, headers, body: serializer.json(Row.of(row), request.caller.workspace), databaseMs };
}

/** Runs the transaction and records its position, so that the next read shows its changes, or the version that refused it. */
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

/** A write that is running in this gateway. */
interface RunningWrite {
  readonly fingerprint: Buffer;
  readonly outcome: Promise<Outcome>;
}

/** Serializes writes with the same token and key, so that repetitions wait here, not on a connection to the primary. */
export class RunningWrites {
  /** By token and key. */
  readonly #running = new Map<string, RunningWrite>();
  readonly #waitMs: number;

  constructor(waitMs: number) {
    this.#waitMs = waitMs;
  }

  /**
   * Runs `work` when no write with the same key is running. An identical request gets the outcome of the running one; a
   * different request waits for its end. Throws idempotency_in_progress after `waitMs`.
   */
  async run({ caller, key, fingerprint }: WriteRequest, work: () => Promise<Outcome>): Promise<Outcome> {
    const name = `${caller.tokenId} ${key}`;
    const startedMs = performance.now();
    for (let other = this.#running.get(name); other !== undefined; other = this.#running.get(name)) {
      const leftMs = this.#waitMs - (performance.now() - startedMs);
      if (leftMs <= 0) throw inProgress();
      const outcome = await outcomeWithin(leftMs, other);
      if (outcome && other.fingerprint.equals(fingerprint)) return { ...outcome, replayed: true };
    }
    const outcome = work();
    this.#running.set(name, { fingerprint, outcome });
    try {
      return await outcome;
    } finally {
      this.#running.delete(name);
    }
  }
}

/** The outcome of the write; null when it failed or takes longer than `waitMs`. */
async function outcomeWithin(waitMs: number, { outcome }: RunningWrite): Promise<Outcome | null> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(resolve, waitMs, null);
  });
  const settled = await Promise.race([outcome.catch(() => null), late]);
  clearTimeout(timer);
  return settled;
}
