import { hash, randomUUID } from 'node:crypto';
import type pg from 'pg';
import { Problem } from '../../base/errors.js';
import { getCorrection, getRefusal, getSqlState } from '../../postgres/database-errors.js';
import type { TextRow } from '../../postgres/row.js';
import { prepareSql, type WorkspaceId } from '../../postgres/statement.js';
import { nested, OpenTransaction, type Transaction } from '../../postgres/transaction.js';
import type { CompiledResource, CompiledWrite, WritableMember } from '../../resource/compiled.js';
import { formatText, getType } from '../../resource/definition/field-types.js';
import { listLeaves, type Resource } from '../../resource/definition/resource.js';
import { addShown } from '../../resource/statements/write-statements.js';
import { makeEtag, parseEntityTags } from '../../serve/entity-tags.js';
import { makeClaim, makeLock, type Outcome, writeOnce } from '../../serve/write/write.js';
import type { Target, WriteRequest } from '../../serve/write/write-request.js';
import { runReadOnly } from '../check-session.js';
import { type Item, makeItem } from '../finding.js';
import type { WorkspaceSample } from './workspaces.js';

const begin = `begin isolation level read committed; set local lock_timeout = '250ms'; set local statement_timeout = '1s'`;

type WritableCompiled = CompiledResource & { readonly write: CompiledWrite };

/** Runs PATCH, its repetition and POST dry. A constraint that refuses the values is no fault: PostgreSQL checks privileges first. */
export async function checkWrites(
  client: pg.Client,
  compiled: WritableCompiled,
  { ids, computeMac }: WorkspaceSample,
): Promise<Item> {
  const { name } = compiled.resource;
  try {
    for (const workspace of ids) {
      const mac = computeMac(workspace);
      const change = await runRolledBack(client, mac, (transaction) => tryChange(transaction, compiled, workspace));
      if (change === null) continue;
      if (change.row === undefined)
        return makeItem('failed', 'writes', 'the statement that locks a record does not find it.', name);
      const request = makeRequest(workspace, copyRequired(compiled, change.row), null);
      const creation: Trial = compiled.write.creates
        ? await runRolledBack(client, mac, (transaction) => tryCreate(transaction, compiled.write, request))
        : { refused: change.refused };
      return describeTrials(change, creation, compiled);
    }
    return makeItem('ok', 'writes', 'No workspace of the sample has a record to try them with.', name);
  } catch (error) {
    if (getSqlState(error) === undefined && !(error instanceof Problem) && !(error instanceof TypeError)) throw error;
    return { ...makeItem('failed', 'writes', `${(error as Error).message}.`, name), advice: getCorrection(error) };
  }
}

async function runRolledBack<T>(client: pg.Client, mac: string, work: (trial: Transaction) => Promise<T>): Promise<T> {
  await client.query(begin);
  return work(new OpenTransaction(client, mac, false, nested)).finally(() => client.query('rollback'));
}

/** Copies the values of the members that a new record must have. */
function copyRequired({ resource, write }: WritableCompiled, row: TextRow): WriteRequest['members'] {
  const required = listLeaves(resource).flatMap(({ field, path }) => (field.write?.required ? [path[0]] : []));
  const members = write.members.filter(({ name }) => required.includes(name));
  return Object.fromEntries(members.map(({ name, at }) => [name, row[at] as string | null]));
}

interface Trial {
  readonly faults?: readonly string[];
  readonly doubt?: string;
  readonly refused?: pg.DatabaseError | undefined;
}

function describeTrials(change: Trial, creation: Trial, { resource, write }: WritableCompiled): Item {
  const { name } = resource;
  const faults = [...(change.faults ?? []), ...(creation.faults ?? [])];
  if (faults.length > 0) return makeItem('failed', 'writes', `${faults.join('; ')}.`, name);
  if (change.refused && creation.refused) return describeAllRefused(creation.refused, name);
  if (creation.doubt !== undefined) return makeItem('warning', 'writes', creation.doubt, name);
  const newRecord = write.creates ? 'and a new record ' : '';
  return makeItem('ok', 'writes', `A change, its repetition ${newRecord}work, and were rolled back.`, name);
}

/** Tries members in turn until the app's constraints take one; the version must move with it. Returns null without a record. */
async function tryChange(
  transaction: Transaction,
  { resource, write }: WritableCompiled,
  workspace: WorkspaceId,
): Promise<(Trial & { readonly row: TextRow | undefined }) | null> {
  const statement = prepareSql('sample', `select id from ${resource.write?.view} limit 1`);
  const [[sample]] = await transaction.run({ statement, values: {} });
  if (sample === undefined) return null;
  const lock = makeRequest(workspace, {}, null);
  const [, [row]] = await transaction.run(makeClaim(write, lock), makeLock(write, lock, sample[0] as string));
  if (row === undefined) return { row };
  const id = row[write.idAt] as string;
  const { versionAt } = write.tag;
  const etag = makeEtag((at) => row[at] ?? null, write.tag);
  const target = { id, ifMatch: parseEntityTags(etag) as Target['ifMatch'] };
  let refused: pg.DatabaseError | undefined;
  const free = listLeaves(resource).filter(({ field: { write } }) => write && !write.references);
  for (const { field, path } of free) {
    const name = path[0] as string;
    const { at } = write.members.find((member) => member.name === name) as WritableMember;
    const { example, auditValue = (text: string) => text } = getType(field.type);
    const current = row[at] ?? null;
    const value = current !== null && field.nullable ? null : formatText(field.example ?? example);
    if (current !== null && value !== null && auditValue(value) === auditValue(current)) continue; // 3 and 3.0 are equal
    const change = makeRequest(workspace, { [name]: value }, target);
    const outcome = await tryWrite(transaction, write, change).catch(getRefusalError);
    if (!('row' in outcome)) {
      refused = outcome;
      continue;
    }
    const replay = await tryWrite(transaction, write, change);
    const stays = `an UPDATE leaves ${resource.version} as it is, so two changes with one If-Match would both succeed: let a trigger raise it`;
    const unknown = 'the outcome of a write is not found again under its key';
    const isMoved = outcome.row[versionAt] !== row[versionAt];
    return { row, faults: [...(isMoved ? [] : [stays]), ...(replay.isReplayed ? [] : [unknown])] };
  }
  return { row, refused };
}

async function tryCreate(transaction: Transaction, write: CompiledWrite, create: WriteRequest): Promise<Trial> {
  try {
    const { row } = await tryWrite(transaction, write, create);
    return { faults: row[write.idAt] === null ? ['a new record has no id'] : [] };
  } catch (error) {
    const unknown =
      error instanceof Problem ? error.fieldErrors.filter(({ code }) => code === 'unknown_reference') : [];
    if (unknown.length === 0) return { refused: getRefusalError(error) };
    const pointers = unknown.flatMap((field) => ('pointer' in field ? [field.pointer] : [])).join(', ');
    return {
      doubt: `A new record was not tried to its end, because the resource that ${pointers} refers to does not show the record to which an existing one refers. A deleted one is no fault; else the reference leads to another resource than its column.`,
    };
  }
}

async function tryWrite(transaction: Transaction, write: CompiledWrite, request: WriteRequest): Promise<Outcome> {
  const { outcome } = await writeOnce({ transaction, write, request });
  return outcome;
}

function findDatabaseCause(error: unknown): pg.DatabaseError {
  return ((error instanceof Problem ? error.cause : undefined) ?? error) as pg.DatabaseError;
}

function getRefusalError(error: unknown): pg.DatabaseError {
  if (getRefusal(findDatabaseCause(error)) === undefined) throw error;
  return findDatabaseCause(error);
}

/** Describes refusals by a rule of the audit log, or by a trigger that misses a setting of the app. */
function describeAllRefused({ message, table }: pg.DatabaseError, name: string): Item {
  const detail = `Every trial of a change and of a new record was refused, the last by${table ? ` the table ${table}` : ' the app'}: ${message}. If no value of a client can satisfy that, no write succeeds.`;
  const advice =
    'Make the rules of the app accept what clients may send. A trigger must not need a parameter that only the app sets: read it by current_setting(name, true).';
  return { ...makeItem('warning', 'writes', detail, name), advice };
}

function makeRequest(workspace: WorkspaceId, members: WriteRequest['members'], target: Target | null): WriteRequest {
  const fingerprint = hash('sha256', 'check', 'buffer');
  const caller = { tokenId: randomUUID(), workspace };
  return { caller, key: 'check', isDryRun: true, fingerprint, members, target, mayRead: true };
}

/** Finds unique indexes across workspaces, which reveal to one workspace that another has a value. */
export function checkUnique(client: pg.Client, resource: Resource, view: string): Promise<Item[]> {
  const written = listLeaves(resource).flatMap(({ field }) => (field.write ? [field] : []));
  const own = written.flatMap(({ write, column }) => (write?.references === undefined ? [] : [column]));
  const columns = written.map(({ column }) => column).filter((column) => !own.includes(column));
  const values = [resource.name, columns, ['workspace_id', ...own]];
  const look = async () => (await client.query<Item>(addShown('sql/check/unique.sql', view), values)).rows;
  return runReadOnly(client, { object: resource.name }, look, () => []);
}
