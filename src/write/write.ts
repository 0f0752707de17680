import type { CompiledWrite } from '../definition/compiled.js';
import { Problem } from '../errors.js';
import type { Observe } from '../events.js';
import type { WritePositions } from '../postgres/heartbeat.js';
import type { Primary } from '../postgres/primary.js';
import { Row } from '../postgres/row.js';
import { etagOf, type Reply } from '../read/reply.js';
import type { WriteRequest } from './request.js';
import { type Outcome, writeOnce } from './transaction.js';

/** Dependencies of a write; made once per gateway. */
export interface WriteDeps {
  readonly primary: Primary;
  readonly positions: WritePositions;
  readonly observe: Observe;
}

/**
 * The whole way of a checked write: one transaction on the primary → remember its position for the workspace's next reads → answer.
 */
export async function write(
  deps: WriteDeps,
  compiled: CompiledWrite,
  request: WriteRequest,
  location: (id: string) => string,
): Promise<Reply> {
  const startedMs = performance.now();
  const { status, row, mayRead, replayed } = await observed(deps, () => commitWrite(deps, compiled, request));
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
