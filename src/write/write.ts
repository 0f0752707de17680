import type { Primary } from '../db/primary.js';
import type { WritePositions } from '../db/write-positions.js';
import type { CompiledWrite } from '../definition/compiled.js';
import { Problem } from '../errors.js';
import type { Observe } from '../events.js';
import { etagOf } from '../read/etag.js';
import type { Reply } from '../read/reply.js';
import { createOnce } from './create.js';
import type { WriteRequest } from './request.js';
import type { RunningWrites } from './running-writes.js';
import { type Outcome, writeOnce } from './transaction.js';

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
  const { status, id, version, body, replayed } = await observed(deps, () =>
    deps.running.run(request, () => commitWrite(deps, compiled, request)),
  );
  const headers: Record<string, string> = { ETag: etagOf(version) };
  if (status === 201) headers.Location = location(id);
  if (replayed) headers['Idempotent-Replayed'] = 'true';
  const shown = replayed && !request.mayRead ? writeScopeOf(compiled, body) : body;
  return { status, headers, body: shown, databaseMs: performance.now() - startedMs };
}

/** Runs the transaction and records its position, so that the next read shows its changes, or the version that refused it. */
async function commitWrite(deps: WriteDeps, compiled: CompiledWrite, request: WriteRequest): Promise<Outcome> {
  const { workspace } = request.caller;
  const { create } = compiled;
  const { outcome, position } = await deps.primary.transaction(workspace, (transaction) =>
    request.target === null && create !== null
      ? createOnce(transaction, compiled, create, request)
      : writeOnce(transaction, compiled, request),
  );
  const isRefused = outcome instanceof Problem;
  if (!isRefused || outcome.code === 'precondition_failed') await deps.positions.record(workspace, position);
  if (isRefused) throw outcome;
  return outcome;
}

/**
 * Cuts a stored answer to the write scope, because the token has lost the read scope since. An answer that was stored for the
 * write scope stays byte for byte the same.
 */
function writeScopeOf({ writeScopeMembers }: CompiledWrite, body: string): string {
  const members = Object.entries(JSON.parse(body) as object);
  const shown = members.filter(([name]) => writeScopeMembers.has(name));
  return shown.length === members.length ? body : JSON.stringify(Object.fromEntries(shown));
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
