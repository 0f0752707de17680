import { createHash } from 'node:crypto';
import type { Statement } from '../postgres/statement.js';
import { columnsOf, leaves, type Move, type Resource, type ResourceWrite } from './resource.js';
import { param, quoted, quotedList, type Sql, statement, typed } from './sql.js';
import { statementName } from './statements.js';
import { entryOf } from './walls.js';

/** The statements of a write, built once. Parameters are named after the members they take; the name of no member has a dot. */
export interface WriteStatements {
  /** Takes the key, unless it was used or a reference names no record of the workspace. */
  readonly claim: Statement;
  /** The row as it is, locked against other writers until the transaction ends; no row unless this transaction claimed the key. */
  readonly lock: Statement;
  /** Adds the record and its audit entry, stores the row under the key and returns it as a JSON array; does nothing unless this transaction claimed the key. */
  readonly create: Statement;
  /** The same with a record that is there. Sets every writable column; those not in the patch keep the value of the locked row. */
  readonly update: Statement;
  /** Stores and returns a row that stays as it is. */
  readonly keep: Statement;
  /** The outcome that is stored under the key, NULLs where it is free, and then for each reference whether its record exists. */
  readonly recall: Statement;
  /** The row as it is now. */
  readonly read: Statement;
  /** The members that refer to other records, in the order of `recall`. */
  readonly references: readonly string[];
}

/** The new value of a column that a PATCH moves. */
const moves: Readonly<Record<Move, (column: string) => string>> = {
  increment: (column) => `${column} + 1`,
  now: () => 'clock_timestamp()',
};

/** Whether this transaction claimed the key: a used key has a status. A replay must change nothing, and not wait for a row. */
const claimed = `select from gateway.idempotency where token_id = ${param('claim.token')} and key = ${param('claim.key')} and status is null`;

/** Writes go through the resource's write view; rows have the columns of a read, in the same order. */
export function compileWriteStatements(resource: Resource & { readonly write: ResourceWrite }): WriteStatements {
  const view = quoted(resource.write.view);
  const columns = quotedList(columnsOf(resource));
  const writable = leaves(resource).filter(({ field }) => field.write !== undefined);
  const made = (part: string, pieces: Sql): Statement => statement(statementName(resource.name, part), pieces);
  const workspace = param('workspace');
  const own = `workspace_id = ${workspace} and id = ${typed(resource.idType, param('id'))}`;
  const references = writable.flatMap(({ field: { type, write }, path: [name = ''] }) => {
    const { references: other } = write as { references?: string };
    return other === undefined ? [] : [{ name, type, other: quoted(other) }];
  });
  /** A reference that is not given, NULL, is no unknown one. */
  const known = references.map(
    ({ name, type, other }) => `(${param(name)}::text is null
      or exists (select from ${other} where workspace_id = ${workspace} and id = ${typed(type, param(name))}))`,
  );
  const values = writable.map(({ field, path }) => [quoted(field.column), path[0] as string] as const);
  const inserted = [
    ['workspace_id', 'workspace'],
    ...(resource.write.ids === 'gateway' ? [['id', 'id']] : []),
    ...values,
  ] as const;
  const set = [
    ...values.map(([column, name]) => `${column} = ${param(name)}`),
    ...Object.entries(resource.write.onChange).map(
      ([column, move]) => `${quoted(column)} = ${moves[move](quoted(column))}`,
    ),
  ];
  const read = `select ${columns} from ${view} where ${own}`;
  const stored = storingOf(resource);
  const row = `case when held.shape = '${shapeOf(resource)}' then held.record end`;
  return {
    claim: made(
      'claim',
      `insert into gateway.idempotency (workspace_id, token_id, key, fingerprint)
        select ${['workspace', 'claim.token', 'claim.key', 'claim.fingerprint'].map(param).join(', ')}
        where ${['true', ...known].join(' and ')} on conflict do nothing returning true`,
    ),
    lock: made('lock', `select ${columns} from ${view} where exists (${claimed}) and ${own} for update`),
    create: made(
      'create',
      stored(201, {
        written: `insert into ${view} (${inserted.map(([column]) => column).join(', ')})
          select ${inserted.map(([, parameter = '']) => param(parameter)).join(', ')} from claimed returning ${columns}`,
        loggedId: newId(resource),
      }),
    ),
    update: made(
      'update',
      stored(200, {
        written: `update ${view} set ${set.join(', ')} where ${own} returning ${columns}`,
        loggedId: param('id'),
      }),
    ),
    keep: made('keep', stored(200, { written: read, loggedId: null })),
    recall: made(
      'recall',
      `select held.fingerprint = ${param('claim.fingerprint')}, held.status, held.record_id, held.may_read,
        ${[row, ...known].join(', ')} from (select) as once left join gateway.idempotency held
        on held.token_id = ${param('claim.token')} and held.key = ${param('claim.key')}`,
    ),
    read: made('read', read),
    references: references.map(({ name }) => name),
  };
}

/** A statement that writes a row, and the id of its audit entry; null: there is no entry. */
interface Storing {
  readonly written: Sql;
  readonly loggedId: Sql | null;
}

/**
 * Record, audit entry and stored row in one statement: three took PostgreSQL 4 % and the gateway 7 % longer. Divides by zero where the
 * key is claimed and no row was stored, as when a trigger of the app dropped the record, because the COMMIT that travels with it
 * must not run then.
 */
function storingOf(resource: Resource & { readonly write: ResourceWrite }) {
  const { audit } = resource.write;
  const entry = audit && entryOf(audit.columns);
  const columns = columnsOf(resource).map((column) => `written.${quoted(column)}`);
  /** As PostgreSQL prints the values; a cast to text has other forms of booleans and of blanks at the end. */
  const texts = columns.map((column) => `case when ${column} is not null then concat(${column}) end`);
  return (status: number, { written, loggedId }: Storing): Sql => {
    const logged =
      entry && loggedId
        ? `logged as (insert into ${quoted(audit.view)} (${quotedList(entry.map(([column]) => column))})
        select ${entry.map(([, parameter]) => (parameter === 'id' ? loggedId : param(parameter))).join(', ')} from written),`
        : '';
    return `with claimed as (${claimed}), written as (${written}), ${logged}
      stored as (update gateway.idempotency held set status = ${status}, record_id = written.id,
          may_read = ${param('may-read')}, shape = '${shapeOf(resource)}', record = array_to_json(array[${texts.join(', ')}])::text
        from written where held.token_id = ${param('claim.token')} and held.key = ${param('claim.key')} returning held.record)
    select record, 1 / (select count(*) from stored) from claimed left join stored on true`;
  };
}

/** The id of a new record in its audit entry. A text that the database made is read as the log's own type, which may be another. */
function newId({ idType, write }: Resource & { readonly write: ResourceWrite }): Sql {
  if (write.ids === 'gateway') return param('id');
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
