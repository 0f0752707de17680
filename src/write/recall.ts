import { valuesOfComposite } from '../db/composite.js';
import type { TextRow } from '../db/row.js';
import type { Committed, Transaction } from '../db/transaction.js';
import type { CompiledWrite } from '../definition/compiled.js';
import { type FieldError, invalid, Problem } from '../errors.js';
import { inProgress, keyOf, newMembers } from './claim.js';
import type { WriteRequest } from './request.js';

/** The outcome of a write, from its transaction or replayed. */
export interface Outcome {
  readonly status: number;
  /** The record as the write left it, with the columns of a read. */
  readonly row: TextRow;
  /** Whether the token had the read scope; an answer that was cut to the write scope stays so. */
  readonly mayRead: boolean;
  readonly replayed: boolean;
}

/**
 * Why the key was not claimed: replays the outcome that is stored under it, or throws 422, or 400 with the unknown references, or else
 * `otherwise`: only expiry can delete the key between the claim and this statement; sent again, the request claims it.
 */
export async function recall(
  transaction: Transaction,
  write: CompiledWrite,
  request: WriteRequest,
  otherwise: () => never = () => {
    throw inProgress();
  },
): Promise<Committed<Outcome>> {
  const values = Object.assign(newMembers(write, request), keyOf(request));
  const { outcome, position } = await transaction.commit({ statement: write.statements.recall, values });
  const [same, status, id, mayRead, record, ...known] = outcome[0][0] as TextRow;
  if (typeof status !== 'string') {
    refuseUnknown(write.statements.references.filter((_, i) => known[i] === 'f'));
    return otherwise();
  }
  if (same !== 't') throw reused('for a request with another method, path, If-Match or body');
  const replay = { status: Number(status), mayRead: mayRead === 't', replayed: true };
  if (typeof record === 'string') return { outcome: { ...replay, row: valuesOfComposite(record) }, position };
  const now = await transaction.commit({ statement: write.statements.read, values: { id: id as string } });
  const [row] = now.outcome[0];
  if (row === undefined) throw reused('for a record that is gone');
  return { outcome: { ...replay, row }, position: now.position };
}

function reused(how: string): Problem {
  return new Problem('idempotency_key_reused', `This Idempotency-Key was used ${how}.`);
}

function refuseUnknown(references: readonly string[]): void {
  const detail = 'There is no record with this id.';
  const faults = references.map((name): FieldError => ({ pointer: `/${name}`, code: 'unknown_reference', detail }));
  if (faults.length > 0) throw invalid(faults);
}
