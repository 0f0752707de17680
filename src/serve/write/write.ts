import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { type FieldError, makeInvalid, makeNotFound, Problem } from '../../base/errors.js';
import type { Observe } from '../../base/events.js';
import { getOwn } from '../../base/members.js';
import { getRefusal, isOfApp, lockNotAvailable, type Refusal } from '../../postgres/database-errors.js';
import type { WritePositions } from '../../postgres/heartbeat.js';
import type { Primary } from '../../postgres/primary.js';
import { Row, type TextRow } from '../../postgres/row.js';
import type { Values } from '../../postgres/statement.js';
import { type Committed, committing, dryRun, type Step, type Transaction } from '../../postgres/transaction.js';
import type { CompiledWrite, WritableMember } from '../../resource/compiled.js';
import { type FieldType, getType } from '../../resource/definition/field-types.js';
import { composeDiff, type NewChange } from '../../resource/projection/audit-diff.js';
import { makeEtag, matchesStrongly } from '../entity-tags.js';
import type { Reply } from '../reply.js';
import type { Target, WriteRequest } from './write-request.js';

export interface WriteDeps {
  readonly primary: Primary;
  /** The views of the resource no longer fit. */
  readonly refuses: (resource: string) => boolean;
  readonly positions: WritePositions;
  readonly observe: Observe;
}

/** Records the position before it answers, so that the next reads show the change, or the version that refused it, also after a dry run. */
export async function write(
  { primary, positions, observe }: WriteDeps,
  compiled: CompiledWrite,
  request: WriteRequest,
  location: (id: string) => string,
): Promise<Reply> {
  const startedMs = performance.now();
  const { workspace } = request.caller;
  const work = (transaction: Transaction) => writeOnce({ transaction, write: compiled, request });
  const { outcome, position } = await primary
    .runTransaction(workspace, compiled.resource, work, request.isDryRun ? dryRun : committing)
    .catch((error: unknown) => {
      observe({ type: 'write_finished', outcome: error instanceof Problem ? error.code : 'internal' });
      throw error;
    });
  const isRefused = outcome instanceof Problem;
  if (isRefused ? outcome.code === 'precondition_failed' : !request.isDryRun)
    await positions.noteWrite(workspace, position);
  observe({ type: 'write_finished', outcome: isRefused ? outcome.code : nameOutcome(outcome, request) });
  if (isRefused) throw outcome;
  const { status, row, mayRead, isReplayed } = outcome;
  const headers: Record<string, string> = {};
  if (!request.isDryRun) {
    headers.ETag = makeEtag((at) => row[at] ?? null, compiled.tag);
    if (status === 201) headers.Location = location(row[compiled.idAt] as string);
  }
  if (isReplayed) headers['Idempotent-Replayed'] = 'true';
  const databaseMs = performance.now() - startedMs;
  const serializer = mayRead && request.mayRead ? compiled.fullRecord : compiled.writeScopeRecord;
  const content = { resource: compiled.resource, personal: serializer.personal, records: 1 };
  return { status, headers, body: serializer.toJson(Row.make(row), workspace), content, databaseMs };
}

const nameOutcome = ({ status, isReplayed }: Outcome, { isDryRun }: WriteRequest): string =>
  isDryRun ? 'dry_run' : isReplayed ? 'replayed' : status === 201 ? 'created' : 'updated';

export interface Outcome {
  readonly status: number;
  /** The record after the write. */
  readonly row: TextRow;
  /** An answer with only the write scope stays so when it is replayed. */
  readonly mayRead: boolean;
  readonly isReplayed: boolean;
}

interface WriteContext {
  readonly transaction: Transaction;
  readonly write: CompiledWrite;
  readonly request: WriteRequest;
}

/** Safe to repeat. Throws Problems (422, 409, 400, 404, 412), and then nothing is changed. */
export function writeOnce(writing: WriteContext): Promise<Committed<Outcome>> {
  const { target } = writing.request;
  return target === null ? createRecord(writing) : updateRecord(writing, target);
}

/** Takes one round trip; a second one finds why the key was not claimed: PostgreSQL reads all values before it knows. */
async function createRecord(writing: WriteContext): Promise<Committed<Outcome>> {
  const { transaction, write, request } = writing;
  const members = bindMembers(write, request);
  const entries = makeDiff(write, null, request.members);
  const values = { id: randomUUID(), ...members, ...bindStored(request), ...bindChanges(write, 'created', entries) };
  try {
    const create = { statement: write.statements.create, values };
    const { outcome, position } = await transaction.commit(makeClaim(write, request), create);
    const [stored] = outcome[1];
    if (stored !== undefined) return { outcome: makeOutcome(201, stored, request), position };
  } catch (error) {
    if (getRefusal(error) === undefined) throw error;
    return recallOutcome(writing, () => refuseValue(writing, error));
  }
  return recallOutcome(writing);
}

/** Takes two round trips: claim and lock, then update and COMMIT. */
async function updateRecord(writing: WriteContext, { id, ifMatch }: Target): Promise<Committed<Outcome>> {
  const { transaction, write, request } = writing;
  const locks = id === null ? [] : [makeLock(write, request, id)];
  const [claimed, [row] = []] = await transaction.run(makeClaim(write, request), ...locks);
  if (claimed.length === 0) return recallOutcome(writing);
  if (row === undefined || id === null) throw makeNotFound();
  const etag = makeEtag((at) => row[at] ?? null, write.tag);
  refuseStale(ifMatch, etag);
  const before: Record<string, string | null> = {};
  for (const { name, at } of write.members) before[name] = row[at] ?? null;
  const after = { ...before, ...request.members };
  const entries = makeDiff(write, before, after);
  const changed = transaction.commit({
    statement: entries.length === 0 ? write.statements.keep : write.statements.update,
    values: { id, ...after, ...bindStored(request), ...bindChanges(write, 'changed', entries) },
  });
  const { outcome, position } = await changed.catch((error) => refuseValue(writing, error)); // COMMIT can refuse the change, too
  return { outcome: makeOutcome(200, outcome[0][0] as TextRow, request), position };
}

function refuseStale(ifMatch: Target['ifMatch'], etag: string): void {
  if (matchesStrongly(ifMatch, etag)) return;
  const detail = 'The record has another version now: fetch it and reapply your change.';
  throw new Problem('precondition_failed', detail, { headers: { ETag: etag } });
}

function bindStored(request: WriteRequest): Values {
  return { 'may-read': request.mayRead ? 't' : 'f', ...bindKey(request) };
}

function makeOutcome(status: number, [text]: TextRow, { mayRead }: WriteRequest): Outcome {
  return { status, row: JSON.parse(text as string) as TextRow, mayRead, isReplayed: false };
}

/** Claims the key unless it was used or a reference is unknown; waits while another transaction holds it. */
export function makeClaim(write: CompiledWrite, request: WriteRequest): Step {
  const values = Object.assign(bindMembers(write, request), bindKey(request));
  return { statement: write.statements.claim, values, onError: refuseInProgress };
}

/** Locks the row before its version is compared; only while the key is claimed. */
export function makeLock(write: CompiledWrite, request: WriteRequest, id: string): Step {
  return { statement: write.statements.lock, values: { id, ...bindKey(request) } };
}

function bindKey({ caller, key, fingerprint }: WriteRequest): Values {
  return { 'claim.token': caller.tokenId, 'claim.key': key, 'claim.fingerprint': fingerprint };
}

function bindMembers(write: CompiledWrite, { members }: WriteRequest): MemberTexts {
  const all: Record<string, string | null> = {};
  for (const { name } of write.members) all[name] = getMemberText(members, name);
  return all;
}

/** The same request gets the outcome later, or a free key. */
function makeInProgress(): Problem {
  const detail = 'A request with this Idempotency-Key is still running; send the same request again for its outcome.';
  return new Problem('idempotency_in_progress', detail);
}

/** Throws 409 for 55P03 of the key's table: another transaction held the key. Another lock is a passing fault. */
function refuseInProgress(error: unknown): never {
  const { code, where } = error as { code?: unknown; where?: string };
  if (code === lockNotAvailable && /\bidempotency\b/.test(where ?? '')) throw makeInProgress();
  throw error;
}

/** Finds why the key was not claimed: replays, throws 422 or 400, or does `otherwise` if the key has expired. */
async function recallOutcome(
  { transaction, write, request }: WriteContext,
  otherwise: () => Promise<never> = () => Promise.reject(makeInProgress()),
): Promise<Committed<Outcome>> {
  const values = Object.assign(bindMembers(write, request), bindKey(request));
  const { outcome, position } = await transaction.commit({ statement: write.statements.recall, values });
  const [same, status, id, mayRead, record, ...known] = outcome[0][0] as TextRow;
  if (typeof status !== 'string') {
    refuseUnknown(write.statements.references.filter((_, i) => known[i] === 'f'));
    return otherwise();
  }
  if (same !== 't') throw makeReused('for a request with another method, path, If-Match or body');
  const replay = { status: Number(status), mayRead: mayRead === 't', isReplayed: true };
  if (typeof record === 'string') return { outcome: { ...replay, row: JSON.parse(record) as TextRow }, position };
  const now = await transaction.commit({ statement: write.statements.read, values: { id: id as string } });
  const [row] = now.outcome[0];
  if (row === undefined) throw makeReused('for a record that is gone');
  return { outcome: { ...replay, row }, position: now.position };
}

function makeReused(how: string): Problem {
  return new Problem('idempotency_key_reused', `This Idempotency-Key was used ${how}.`);
}

function refuseUnknown(references: readonly string[]): void {
  const detail = 'There is no record with this id.';
  const faults = references.map((name): FieldError => ({ pointer: `/${name}`, code: 'unknown_reference', detail }));
  if (faults.length > 0) throw makeInvalid(faults);
}

/** Answers a refused value with 400, naming the member if it is known. Rethrows errors that no value of the client causes. */
async function refuseValue(writing: WriteContext, error: unknown): Promise<never> {
  const refusal = getRefusal(error);
  const isId = (error as pg.DatabaseError).constraint?.endsWith('_pkey') === true; // its sequence is behind its table
  if (refusal === undefined || isId) throw error;
  const members = await findMembersRefused(writing, error as pg.DatabaseError, refusal);
  if (members === null) throw error;
  const pointer = members.length === 1 ? `/${members[0]?.name}` : '';
  const sentence = `${pointer === '' ? 'A value' : 'This'} is refused: ${refusal.detail}`;
  throw makeInvalid([{ pointer, code: refusal.code, detail: sentence }], 'invalid_request', error as Error);
}

/** Finds members of the columns that PostgreSQL names, otherwise of a possible type. Null: no value of the client is the reason. */
async function findMembersRefused(
  { transaction, write: { members, statements }, request: { members: sent, target } }: WriteContext,
  error: pg.DatabaseError,
  { code, types }: Refusal,
): Promise<readonly WritableMember[] | null> {
  const { schema = null, table = null, column = null, constraint = null } = error;
  if (schema !== null && table !== null && !isOfApp(error)) {
    const names = { schema, table, column, constraint };
    const values = Object.fromEntries(Object.entries(names).map(([kind, name]) => [`refused.${kind}`, name]));
    const columns = await transaction.run({ statement: statements.refused, values }).catch(() => null); // the catalogs can be closed
    if (columns?.[0].length === 0) return null;
    const namedColumns = columns?.[0].flatMap(([name, isNamed]) => (isNamed === 't' ? [name] : [])) ?? [];
    const refused = members.filter((member) => namedColumns.includes(member.column));
    if (refused.length === 0 && code === 'not_nullable') return null;
    if (namedColumns.length > 0) return refused.filter(({ name }) => target === null || Object.hasOwn(sent, name));
  }
  const isPossible = (type: FieldType) => types === 'all' || types.includes(type);
  return members.filter(({ name, type }) => isPossible(type) && getMemberText(sent, name) !== null);
}

/** Values in PostgreSQL's text form. */
type MemberTexts = Readonly<Record<string, string | null>>;

const getMemberText = (members: MemberTexts, name: string): string | null => getOwn(members, name) ?? null;

/** Names the members as the audit log does; `before` is null for a new record. */
export function makeDiff(
  { members }: Pick<CompiledWrite, 'members'>,
  before: MemberTexts | null,
  after: MemberTexts,
): NewChange[] {
  const changes: NewChange[] = [];
  for (const { name, type, auditName } of members) {
    const texts = [before && getMemberText(before, name), getMemberText(after, name)] as const;
    if (texts[0] === texts[1]) continue;
    const change = { name: auditName, before: toAuditValue(type, texts[0]), after: toAuditValue(type, texts[1]) };
    if (change.before !== change.after) changes.push(change);
  }
  return changes;
}

function bindChanges({ audit }: CompiledWrite, action: 'created' | 'changed', entries: NewChange[]): Values {
  if (!audit) return {};
  const { entity, actorType, diff, [action]: name } = audit;
  const changes = composeDiff(entries, diff);
  return { 'log.entity': entity, 'log.action': name, 'log.actorType': actorType, 'log.changes': changes };
}

/** Turns PostgreSQL's text form into the form of an audit diff. */
function toAuditValue(type: FieldType, text: string | null): unknown {
  return text === null ? null : (getType(type).auditValue?.(text) ?? text);
}
