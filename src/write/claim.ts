import type { Values } from '../db/statement.js';
import type { Step } from '../db/transaction.js';
import type { CompiledWrite } from '../definition/compiled.js';
import { Problem } from '../errors.js';
import type { Members } from './changes.js';
import type { WriteRequest } from './request.js';

/** Takes the key, unless it was used or a reference is unknown; waits while another transaction holds it. */
export function claimOf(write: CompiledWrite, request: WriteRequest): Step {
  const values = Object.assign(newMembers(write, request), keyOf(request));
  return { statement: write.statements.claim, values, onError: refuseInProgress };
}

/** Locks the row before its version is compared, so that no other write can change it in between; only while the key is claimed. */
export function lockOf(write: CompiledWrite, request: WriteRequest, id: string): Step {
  return { statement: write.statements.lock, values: { id, ...keyOf(request) } };
}

/** The parameters of a key. */
export function keyOf({ caller, key, fingerprint }: WriteRequest): Values {
  return { 'claim.token': caller.tokenId, 'claim.key': key, 'claim.fingerprint': fingerprint };
}

/** Every writable member of a new record: those given, else null. */
export function newMembers({ writableAt }: CompiledWrite, { members }: WriteRequest): Members {
  const all: Record<string, string | null> = {};
  for (const [name] of writableAt) all[name] = members[name] ?? null;
  return all;
}

/** 409; when the running request has ended, the same request gets its outcome, or a free key. */
export function inProgress(): Problem {
  const detail = 'A request with this Idempotency-Key is still running; send the same request again for its outcome.';
  return new Problem('idempotency_in_progress', detail);
}

/**
 * Throws 409 when another transaction held the key for longer than lock_timeout (SQLSTATE 55P03). PostgreSQL then names the table of the
 * key in the error's context; a lock on a table, or on a record that is referenced, is a fault of the primary at this moment.
 */
function refuseInProgress(error: unknown): never {
  const { code, where } = error as { code?: unknown; where?: string };
  if (code === '55P03' && /\bidempotency\b/.test(where ?? '')) throw inProgress();
  throw error;
}
