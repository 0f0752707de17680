import { createHash } from 'node:crypto';
import { projectText } from '../../base/paths.js';
import type { Statement } from '../../postgres/statement.js';
import { columnsOf, leaves, type Move, type Resource, type ResourceWrite } from '../definition/resource.js';
import { quoted, quotedList, type Sql, statement, typed } from './sql.js';
import { entryOf } from './walls.js';

type Writable = Resource & { readonly write: ResourceWrite };

/** The new value of a column that a PATCH moves. */
const moves: Readonly<Record<Move, (column: string) => string>> = {
  increment: (column) => `${column} + 1`,
  now: () => 'clock_timestamp()',
};

/** Whether this transaction claimed the key: a used key has a status. A replay must change nothing, and not wait for a row. */
const claimed = `select from gateway.idempotency where token_id = {claim.token} and key = {claim.key} and status is null`;

/**
 * Builds the statements of the writes of a resource. They go through its write view; rows have the columns of a read, in the same order.
 * Parameters are named after the members that they take; the name of no member has a dot.
 */
export function compileWriteStatements(resource: Writable) {
  const { ids, onChange } = resource.write;
  const view = quoted(resource.write.view);
  const columns = quotedList(columnsOf(resource));
  const writable = leaves(resource).filter(({ field }) => field.write !== undefined);
  const own = `id = ${typed(resource.idType, '{id}')}`;
  const references = writable.filter(({ field }) => field.write?.references !== undefined);
  /** A reference that is not given, NULL, is no unknown one. */
  const known = references.map(
    ({ field: { type, write }, path: [name] }) => `({${name}}::text is null
      or exists (select from ${quoted(write?.references as string)} where id = ${typed(type, `{${name}}`)}))`,
  );
  const values = writable.map(({ field, path }) => [quoted(field.column), `{${path[0]}}`] as const);
  const inserted = [...(ids === 'gateway' ? [['id', '{id}']] : []), ...values];
  const moved = Object.entries(onChange).map(([column, move]) => [quoted(column), moves[move](quoted(column))]);
  const set = [...values, ...moved].map(([column, value]) => `${column} = ${value}`);
  const read = `select ${columns} from ${view} where ${own}`;
  const texts = {
    /** Takes the key, unless it was used or a reference names no record of the workspace. */
    claim: `insert into gateway.idempotency (token_id, key, fingerprint)
        select {claim.token}, {claim.key}, {claim.fingerprint}
        where ${['true', ...known].join(' and ')} on conflict do nothing returning true`,
    /** The row as it is, locked against other writers until the transaction ends; no row unless this transaction claimed the key. */
    lock: `select ${columns} from ${view} where exists (${claimed}) and ${own} for update`,
    /** Adds the record and its audit entry, stores the row under the key and returns it as a JSON array; does nothing unless this transaction claimed the key. */
    create: stored(
      resource,
      201,
      `insert into ${view} (${inserted.map(([column]) => column).join(', ')})
          select ${inserted.map(([, value]) => value).join(', ')} from claimed returning ${columns}`,
      newId(resource),
    ),
    /** The same with a record that is there. Sets every writable column; those not in the patch keep the value of the locked row. */
    update: stored(resource, 200, `update ${view} set ${set.join(', ')} where ${own} returning ${columns}`, '{id}'),
    /** Stores and returns a row that stays as it is. */
    keep: stored(resource, 200, read),
    /** The outcome that is stored under the key, NULLs where it is free, and then for each reference whether its record exists. */
    recall: `select held.fingerprint = {claim.fingerprint}, held.status, held.record_id, held.may_read,
        ${[`case when held.shape = '${shapeOf(resource)}' then held.record end`, ...known].join(', ')} from (select) as once left join gateway.idempotency held
        on held.token_id = {claim.token} and held.key = {claim.key}`,
    read,
    /** The columns of the write view that PostgreSQL refused. */
    refused: withShown('refused', resource.write.view),
  };
  const made = Object.entries(texts).map(([part, sql]) => [part, statement(`${resource.name}.${part}`, sql)]);
  const statements: Record<keyof typeof texts, Statement> = Object.fromEntries(made);
  return {
    ...statements,
    /** In the order of `recall`. */ references: references.map(({ path }) => path[0] as string),
  };
}

/**
 * Record, audit entry and stored row in one statement: three took PostgreSQL 4 % and the gateway 7 % longer. Fails with 2201G where the
 * key is claimed and no row was stored, as when a trigger of the app dropped the record, because the COMMIT that travels with it
 * must not run then. `written` writes a row, `loggedId` is the id of its audit entry; without it there is none.
 */
function stored(resource: Writable, status: number, written: Sql, loggedId?: Sql): Sql {
  const { audit } = resource.write;
  const entry = audit && loggedId !== undefined ? entryOf(audit.columns) : [];
  const columns = columnsOf(resource).map((column) => `written.${quoted(column)}`);
  /** As PostgreSQL prints the values; a cast to text has other forms of booleans and of spaces at the end. */
  const texts = columns.map((column) => `case when ${column} is not null then concat(${column}) end`);
  const logged =
    audit && entry.length > 0
      ? `logged as (insert into ${quoted(audit.view)} (${quotedList(entry.map(([column]) => column))})
        select ${entry.map(([, parameter]) => (parameter === 'id' ? loggedId : `{${parameter}}`)).join(', ')} from written),`
      : '';
  return `with claimed as (${claimed}), written as (${written}), ${logged}
      stored as (update gateway.idempotency held set status = ${status}, record_id = written.id,
          may_read = {may-read}, shape = '${shapeOf(resource)}', record = array_to_json(array[${texts.join(', ')}])::text
        from written where held.token_id = {claim.token} and held.key = {claim.key} returning held.record)
    select record, width_bucket(0, 0, 1, (select count(*)::integer from stored)) from claimed left join stored on true`;
}

/** The id of a new record in its audit entry. A text that the database made is read as the log's own type, which may be another. */
function newId({ idType, write }: Writable): Sql {
  if (write.ids === 'gateway') return '{id}';
  if (idType !== 'text' || !write.audit) return `written.id`;
  const { view, columns } = write.audit;
  return `(json_populate_record(null::${quoted(view)}, json_build_object('${columns.entityId}', written.id))).${quoted(columns.entityId)}`;
}

/** Differs when rows of the resource have other columns, or columns of other types. */
function shapeOf(resource: Resource): string {
  const types = leaves(resource).map(({ field: { column, type } }) => [column, type]);
  return createHash('sha256')
    .update(JSON.stringify([columnsOf(resource), types]))
    .digest('hex')
    .slice(0, 16);
}

/** The text of sql/check/NAME.sql, with the CTE of the columns that a view shows. */
export function withShown(name: string, view: string): Sql {
  const shown = projectText('sql/check/shown.sql').replace('{view}', quoted(view));
  return projectText(`sql/check/${name}.sql`).replace('{shown}', () => shown);
}
