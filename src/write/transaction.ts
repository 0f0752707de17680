import { randomUUID } from 'node:crypto';
import type { Transaction } from '../db/primary.js';
import { Row, type TextRow } from '../db/row.js';
import type { Statement } from '../db/statement.js';
import type { CompiledWrite } from '../definition/compiled.js';
import { type FieldType, fieldType } from '../definition/field-types.js';
import { type FieldError, invalid, notFound, Problem } from '../errors.js';
import { diffOf, type NewChange } from '../projection/audit-diff.js';
import { etagOf, matchesStrongly } from '../read/etag.js';
import { asRefusedValue } from './refused-values.js';
import type { Target, WriteRequest } from './request.js';

/** The answer to a write, from its transaction or replayed. */
export interface Outcome {
  readonly status: number;
  readonly id: string;
  readonly version: string;
  readonly body: string;
  readonly replayed: boolean;
}

/** Takes the key, unless it was used. */
export const claim: Statement = {
  name: 'idempotency.claim',
  text: `insert into gateway.idempotency (workspace_id, token_id, key, fingerprint) values ($1, $2, $3, $4)
    on conflict do nothing returning true`,
  parameters: ['workspace', 'token', 'key', 'fingerprint'],
};
const recall: Statement = {
  name: 'idempotency.recall',
  text: `select fingerprint = $3, status, record_id, version, body from gateway.idempotency where token_id = $1 and key = $2`,
  parameters: ['token', 'key', 'fingerprint'],
};
/** Stores the answer under the key. */
export const store: Statement = {
  name: 'idempotency.store',
  text: `update gateway.idempotency set status = $3, record_id = $4, version = $5, body = $6 where token_id = $1 and key = $2
    returning true`,
  parameters: ['token', 'key', 'status', 'id', 'version', 'body'],
};

/**
 * The whole write, inside one transaction: claim the key → replay if the key was used → change the record → audit entry →
 * store the answer under the key. Safe to repeat. Throws Problems (422, 400, 404, 412), which roll the transaction back.
 */
export async function writeOnce(
  transaction: Transaction,
  write: CompiledWrite,
  request: WriteRequest,
): Promise<Outcome> {
  const { tokenId } = request.caller;
  const claimed = { token: tokenId, key: request.key, fingerprint: request.fingerprint };
  if ((await transaction.query(claim, claimed).catch(asInProgress)).length === 0) {
    return replay(await transaction.query(recall, claimed));
  }
  await checkReferences(transaction, write, request);
  const change =
    request.target === null
      ? await create(transaction, write, request)
      : await update(transaction, write, request, request.target);
  if (write.audit !== null && (change.entries.length > 0 || change.action === 'created')) {
    const { id, action, entries } = change;
    const { statement, entity, actorType, diff: shape, [action]: actionName } = write.audit;
    const changes = diffOf(entries, shape);
    await transaction.query(statement, { entity, id, action: actionName, actorType, token: tokenId, changes });
  }
  const serializer = request.mayRead ? write.fullRecord : write.writeScopeRecord;
  const body = serializer.json(Row.of(change.row), request.caller.workspace);
  const outcome = {
    status: request.target === null ? 201 : 200,
    id: change.id,
    version: change.row[write.versionAt] as string,
    body,
  };
  const stored = await transaction.query(store, { token: tokenId, key: request.key, ...outcome });
  if (stored.length !== 1) throw new TypeError('the outcome was not stored under its key');
  return { ...outcome, replayed: false };
}

/** Throws 409 when another transaction held the key for longer than lock_timeout (SQLSTATE 55P03). */
function asInProgress(error: unknown): never {
  if ((error as { code?: unknown }).code !== '55P03') throw error;
  throw inProgress();
}

/** 409; when the running request has ended, the same request gets its outcome, or a free key. */
export function inProgress(): Problem {
  const detail = 'A request with this Idempotency-Key is still running; send the same request again for its outcome.';
  return new Problem('idempotency_in_progress', detail);
}

function replay([row]: TextRow[]): Outcome {
  // Only expiry can delete the key between the conflict and this statement; sent again, the request claims it.
  if (row === undefined) throw inProgress();
  const [same, status, id, version, body] = row as readonly string[];
  if (same !== 't') {
    throw new Problem(
      'idempotency_key_reused',
      'This Idempotency-Key was used for a request with another method, path, If-Match or body.',
    );
  }
  return { status: Number(status), id: id as string, version: version as string, body: body as string, replayed: true };
}

/** A changed or new record, and the audit entries of its changed members. */
interface Change {
  readonly id: string;
  readonly row: TextRow;
  readonly action: 'created' | 'changed';
  readonly entries: readonly NewChange[];
}

/** The writable members of a record, in PostgreSQL's text form. */
type Members = Readonly<Record<string, string | null>>;

async function create(transaction: Transaction, write: CompiledWrite, { members }: WriteRequest): Promise<Change> {
  const nothing = Object.fromEntries(write.writableAt.map(([name]) => [name, null]));
  const after = { ...nothing, ...members };
  const id = write.makesIds ? { id: randomUUID() } : {};
  const refused = asRefusedValue(write.validators.writable, members);
  const [row] = (await transaction.query(write.statements.insert, { ...after, ...id }).catch(refused)) as [TextRow];
  return { id: row[write.idAt] as string, row, action: 'created', entries: diff(write, nothing, after) };
}

/** Locks the row before it compares the version, so that no other write can change the row in between. */
async function update(
  transaction: Transaction,
  write: CompiledWrite,
  { members }: WriteRequest,
  { id, ifMatch }: Target,
): Promise<Change> {
  const [row] = id === null ? [] : await transaction.query(write.statements.lock, { id });
  if (row === undefined || id === null) throw notFound();
  const etag = etagOf(row[write.versionAt] as string);
  if (!matchesStrongly(ifMatch, etag)) {
    throw new Problem('precondition_failed', 'The record has another version now: read it again and decide again.', {
      headers: { ETag: etag },
    });
  }
  const before: Members = Object.fromEntries(write.writableAt.map(([name, at]) => [name, row[at] as string | null]));
  const after = { ...before, ...members };
  const entries = diff(write, before, after);
  if (entries.length === 0) return { id, row, action: 'changed', entries };
  const refused = asRefusedValue(write.validators.writable, members);
  const [updated] = await transaction.query(write.statements.update, { ...after, id }).catch(refused);
  return { id, row: updated as TextRow, action: 'changed', entries };
}

/** The members that differ, by their names in the audit log. */
function diff({ validators }: CompiledWrite, before: Members, after: Members): Change['entries'] {
  return validators.writable
    .map(({ name, type, auditName }) => ({
      name: auditName,
      before: auditValue(type, before[name] ?? null),
      after: auditValue(type, after[name] ?? null),
    }))
    .filter((change) => change.before !== change.after);
}

/** Throws invalid() with every reference that names no record of the same workspace. */
async function checkReferences(
  transaction: Transaction,
  write: CompiledWrite,
  { members }: WriteRequest,
): Promise<void> {
  const faults: FieldError[] = [];
  for (const [name, statement] of write.statements.references) {
    const id = members[name];
    if (id === undefined || id === null || (await transaction.query(statement, { id })).length > 0) continue;
    faults.push({ pointer: `/${name}`, code: 'unknown_reference', detail: 'There is no record with this id.' });
  }
  if (faults.length > 0) throw invalid(faults);
}

/** A value in PostgreSQL's text form → its value in an audit diff. */
function auditValue(type: FieldType, text: string | null): unknown {
  return text === null ? null : (fieldType(type).auditValue?.(text) ?? text);
}
