import { randomUUID } from 'node:crypto';
import { Row, type TextRow } from '../db/row.js';
import type { Statement, Values } from '../db/statement.js';
import type { Ending, Rows, Step, Transaction } from '../db/transaction.js';
import type { CompiledWrite } from '../definition/compiled.js';
import { type FieldType, fieldType } from '../definition/field-types.js';
import { claimedKey } from '../definition/write-statements.js';
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
/** Stores the answer under the key. Divides by zero unless it did, because the COMMIT that travels with it must not run then. */
export const store: Statement = {
  name: 'idempotency.store',
  text: `with stored as (update gateway.idempotency set status = $3, record_id = $4, version = $5, body = $6
      where token_id = $1 and key = $2 returning true)
    select 1 / count(*) from stored`,
  parameters: ['token', 'key', 'status', 'id', 'version', 'body'],
};

/**
 * The whole write, inside one transaction: claim the key, look up references, insert the record or lock it → replay if the key was
 * used → update the locked record → audit entry, and store the answer under the key, with COMMIT. Each arrow is a round trip. Safe
 * to repeat. Throws Problems (422, 400, 404, 412), which roll the transaction back.
 */
export async function writeOnce(
  transaction: Transaction,
  write: CompiledWrite,
  request: WriteRequest,
): Promise<Ending<Outcome>> {
  const { caller, key, fingerprint, target } = request;
  const { tokenId } = caller;
  const held = { token: tokenId, key, fingerprint };
  const ifClaimed = claimedKey(tokenId, key);
  const references = referencesOf(write, request);
  const [claimed, ...found] = await transaction.run(
    { statement: claim, values: held, onError: refuseInProgress },
    ...references.map(({ step }) => step),
    ...(target === null ? [insertOf(write, request, ifClaimed, references)] : lockOf(write, target, ifClaimed)),
  );
  if (claimed.length === 0) {
    const [stored] = await transaction.run({ statement: recall, values: held });
    return { outcome: replay(stored), last: [] };
  }
  refuseUnknown(references, found);
  const row = found[references.length]?.[0];
  const change =
    target === null ? creation(write, request, row) : await update(transaction, write, request, target, row);
  const serializer = request.mayRead ? write.fullRecord : write.writeScopeRecord;
  const outcome = {
    status: target === null ? 201 : 200,
    id: change.id,
    version: change.row[write.versionAt] as string,
    body: serializer.json(Row.of(change.row), caller.workspace),
  };
  const stored: Step = { statement: store, values: { token: tokenId, key, ...outcome } };
  return { outcome: { ...outcome, replayed: false }, last: [...auditOf(write, change, tokenId), stored] };
}

/** Throws 409 when another transaction held the key for longer than lock_timeout (SQLSTATE 55P03). */
export function refuseInProgress(error: unknown): never {
  if ((error as { code?: unknown }).code !== '55P03') throw error;
  throw inProgress();
}

/** 409; when the running request has ended, the same request gets its outcome, or a free key. */
export function inProgress(): Problem {
  const detail = 'A request with this Idempotency-Key is still running; send the same request again for its outcome.';
  return new Problem('idempotency_in_progress', detail);
}

function replay([row]: Rows): Outcome {
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

/** Locks the row before its version is compared, so that no other write can change it in between; only while the key is claimed. */
function lockOf(write: CompiledWrite, target: Target, ifClaimed: Values): Step[] {
  const { id } = target;
  return id === null ? [] : [{ statement: write.statements.lock, values: { ...ifClaimed, id } }];
}

function auditOf({ audit }: CompiledWrite, { id, action, entries }: Change, token: string): Step[] {
  if (audit === null || (entries.length === 0 && action === 'changed')) return [];
  const { statement, entity, actorType, diff: shape, [action]: actionName } = audit;
  const changes = diffOf(entries, shape);
  return [{ statement, values: { entity, id, action: actionName, actorType, token, changes } }];
}

/** Every writable member, by the function. */
function membersOf({ writableAt }: CompiledWrite, textOf: (name: string, at: number) => string | null): Members {
  const members: Record<string, string | null> = {};
  for (const [name, at] of writableAt) members[name] = textOf(name, at);
  return members;
}

/** Every writable member of a new record: those given, else null. */
export function newMembers(write: CompiledWrite, { members }: WriteRequest): Members {
  return membersOf(write, (name) => members[name] ?? null);
}

/** Inserts the record only while the key is claimed. An unknown reference is reported before a refused value. */
function insertOf(
  write: CompiledWrite,
  request: WriteRequest,
  ifClaimed: Values,
  references: readonly Reference[],
): Step {
  const refuseValue = asRefusedValue(write.validators.writable, request.members);
  const onError = (error: unknown, [, ...found]: readonly Rows[]): never => {
    refuseUnknown(references, found);
    return refuseValue(error);
  };
  return {
    statement: write.statements.insert,
    values: Object.assign(newMembers(write, request), ifClaimed, write.makesIds && { id: randomUUID() }),
    onError,
  };
}

function creation(write: CompiledWrite, request: WriteRequest, row: TextRow | undefined): Change {
  if (row === undefined) throw new TypeError('the record was not inserted');
  const entries = diff(write, {}, request.members);
  return { id: row[write.idAt] as string, row, action: 'created', entries };
}

/** Changes the locked row unless it has another version. */
async function update(
  transaction: Transaction,
  write: CompiledWrite,
  { members }: WriteRequest,
  { id, ifMatch }: Target,
  row: TextRow | undefined,
): Promise<Change> {
  if (row === undefined || id === null) throw notFound();
  const etag = etagOf(row[write.versionAt] as string);
  if (!matchesStrongly(ifMatch, etag)) {
    throw new Problem('precondition_failed', 'The record has another version now: read it again and decide again.', {
      headers: { ETag: etag },
    });
  }
  const before = membersOf(write, (_, at) => row[at] as string | null);
  const after = { ...before, ...members };
  const entries = diff(write, before, after);
  if (entries.length === 0) return { id, row, action: 'changed', entries };
  const onError = asRefusedValue(write.validators.writable, members);
  const [rows] = await transaction.run({ statement: write.statements.update, values: { ...after, id }, onError });
  return { id, row: rows[0] as TextRow, action: 'changed', entries };
}

/** The members that differ, by their names in the audit log. */
export function diff({ validators }: CompiledWrite, before: Members, after: Members): Change['entries'] {
  const changes: NewChange[] = [];
  for (const { name, type, auditName } of validators.writable) {
    const texts = [before[name] ?? null, after[name] ?? null] as const;
    if (texts[0] === texts[1]) continue;
    const change = { name: auditName, before: auditValue(type, texts[0]), after: auditValue(type, texts[1]) };
    if (change.before !== change.after) changes.push(change);
  }
  return changes;
}

/** A member that refers to another record, and the step that looks it up. */
interface Reference {
  readonly name: string;
  readonly step: Step;
}

/** The references that the request sets. */
function referencesOf({ statements }: CompiledWrite, { members }: WriteRequest): Reference[] {
  const references: Reference[] = [];
  for (const [name, statement] of statements.references) {
    const id = members[name] ?? null;
    if (id !== null) references.push({ name, step: { statement, values: { id } } });
  }
  return references;
}

/** Throws invalid() with every reference that names no record of the same workspace. */
function refuseUnknown(references: readonly Reference[], found: readonly Rows[]): void {
  const unknown = references.filter((_, i) => found[i]?.length === 0);
  const detail = 'There is no record with this id.';
  const faults = unknown.map(({ name }): FieldError => ({ pointer: `/${name}`, code: 'unknown_reference', detail }));
  if (faults.length > 0) throw invalid(faults);
}

/** A value in PostgreSQL's text form → its value in an audit diff. */
function auditValue(type: FieldType, text: string | null): unknown {
  return text === null ? null : (fieldType(type).auditValue?.(text) ?? text);
}
