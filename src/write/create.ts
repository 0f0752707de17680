import { randomUUID } from 'node:crypto';
import type { Values } from '../db/statement.js';
import type { Committed, Ending, EndingTransaction, Step } from '../db/transaction.js';
import type { CompiledWrite } from '../definition/compiled.js';
import type { CreateStatements } from '../definition/create-statements.js';
import { refusedValues, sqlStateOf } from '../errors.js';
import { diffOf } from '../projection/audit-diff.js';
import type { WriteRequest } from './request.js';
import { diff, newMembers, type Outcome, refuseInProgress, writeOnce } from './transaction.js';

/**
 * A create in one round trip, in which PostgreSQL makes the answer that it stores. Where the key was used, a reference is unknown
 * or a value is refused, it changes nothing, and `writeOnce` finds out what the answer is.
 */
export async function createOnce(
  transaction: EndingTransaction,
  write: CompiledWrite,
  create: CreateStatements,
  request: WriteRequest,
): Promise<Ending<Outcome> | Committed<Outcome>> {
  try {
    const { outcome, position } = await transaction.commit(...createSteps(write, create, request));
    const stored = outcome.at(-1)?.[0];
    if (stored !== undefined) {
      const [id, version, body] = stored as readonly [string, string, string];
      return { outcome: { status: 201, id, version, body, replayed: false }, position };
    }
  } catch (error) {
    if (refusedValues[sqlStateOf(error) ?? ''] === undefined) throw error;
  }
  return writeOnce(transaction, write, request);
}

/** The claim of the key, and the create, whose only row is the answer; no row unless the key is claimed. */
export function createSteps(write: CompiledWrite, create: CreateStatements, request: WriteRequest): Step[] {
  const { caller, key, fingerprint, members, mayRead } = request;
  const values = Object.assign(newMembers(write, request), entryOf(write, members), {
    'claim.token': caller.tokenId,
    'claim.key': key,
    'claim.fingerprint': fingerprint,
    id: randomUUID(),
  });
  return [
    { statement: create.claim, values, onError: refuseInProgress },
    { statement: mayRead ? create.full : create.writeScope, values },
  ];
}

function entryOf(write: CompiledWrite, members: WriteRequest['members']): Values {
  const { audit } = write;
  if (audit === null) return {};
  const changes = diffOf(diff(write, {}, members), audit.diff);
  const { entity, actorType, created } = audit;
  return { 'log.entity': entity, 'log.action': created, 'log.actorType': actorType, 'log.changes': changes };
}
