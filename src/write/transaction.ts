import { randomUUID } from 'node:crypto';
import { valuesOfComposite } from '../db/composite.js';
import type { TextRow } from '../db/row.js';
import type { Values } from '../db/statement.js';
import type { Committed, Rows, Transaction } from '../db/transaction.js';
import type { CompiledWrite } from '../definition/compiled.js';
import { notFound, Problem, refusedValues, sqlStateOf } from '../errors.js';
import { etagOf, matchesStrongly } from '../read/etag.js';
import { changesOf, diffOfMembers } from './changes.js';
import { claimOf, keyOf, lockOf, newMembers } from './claim.js';
import { type Outcome, recall } from './recall.js';
import { asRefusedValue } from './refused-values.js';
import type { Target, WriteRequest } from './request.js';

/** The whole write, safe to repeat. Throws Problems (422, 409, 400, 404, 412), for which nothing is changed. */
export function writeOnce(
  transaction: Transaction,
  write: CompiledWrite,
  request: WriteRequest,
): Promise<Committed<Outcome>> {
  const { target } = request;
  return target === null ? create(transaction, write, request) : update(transaction, write, request, target);
}

/**
 * One round trip: claim the key, look up references, insert, audit entry, store, COMMIT. A second finds out why the key was not
 * claimed. A value can be refused before PostgreSQL knows that, because it reads all values first.
 */
async function create(
  transaction: Transaction,
  write: CompiledWrite,
  request: WriteRequest,
): Promise<Committed<Outcome>> {
  const refuse = asRefusedValue(write.validators.writable, request.members);
  const onError = (error: unknown, [claimed]: readonly Rows[]): never => {
    if (claimed?.length === 1) refuse(error);
    throw error;
  };
  const members = newMembers(write, request);
  const entries = diffOfMembers(write, null, request.members);
  const values = { id: randomUUID(), ...members, ...storedValues(request), ...changesOf(write, 'created', entries) };
  try {
    const { outcome, position } = await transaction.commit(claimOf(write, request), {
      statement: write.statements.create,
      values,
      onError,
    });
    const [stored] = outcome[1];
    if (stored !== undefined) return { outcome: outcomeOf(201, stored, request), position };
  } catch (error) {
    if (refusedValues[sqlStateOf(error) ?? ''] === undefined) throw error;
    return recall(transaction, write, request, () => refuse(error));
  }
  return recall(transaction, write, request);
}

/** Two round trips: claim the key, look up references, lock the record → update, audit entry, store, COMMIT. */
async function update(
  transaction: Transaction,
  write: CompiledWrite,
  request: WriteRequest,
  { id, ifMatch }: Target,
): Promise<Committed<Outcome>> {
  const { members } = request;
  const [claimed, [row] = []] = await transaction.run(
    claimOf(write, request),
    ...(id === null ? [] : [lockOf(write, request, id)]),
  );
  if (claimed.length === 0) return recall(transaction, write, request);
  if (row === undefined || id === null) throw notFound();
  refuseStale(
    ifMatch,
    etagOf((at) => row[at] ?? null, write.tag),
  );
  const before: Record<string, string | null> = {};
  for (const [name, at] of write.writableAt) before[name] = row[at] ?? null;
  const after = { ...before, ...members };
  const entries = diffOfMembers(write, before, after);
  const changed = transaction.commit({
    statement: entries.length === 0 ? write.statements.keep : write.statements.update,
    values: { id, ...after, ...storedValues(request), ...changesOf(write, 'changed', entries) },
  });
  const { outcome, position } = await changed.catch(asRefusedValue(write.validators.writable, members)); // COMMIT can refuse it, too
  return { outcome: outcomeOf(200, outcome[0][0] as TextRow, request), position };
}

function refuseStale(ifMatch: Target['ifMatch'], etag: string): void {
  if (matchesStrongly(ifMatch, etag)) return;
  throw new Problem('precondition_failed', 'The record has another version now: read it again and decide again.', {
    headers: { ETag: etag },
  });
}

const storedValues = (request: WriteRequest): Values => ({
  'may-read': request.mayRead ? 't' : 'f',
  ...keyOf(request),
});

function outcomeOf(status: number, [text]: TextRow, { mayRead }: WriteRequest): Outcome {
  return { status, row: valuesOfComposite(text as string), mayRead, replayed: false };
}
