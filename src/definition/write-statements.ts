import { createHash } from 'node:crypto';
import type { Statement } from '../postgres/statement.js';
import { type FieldType, fieldType } from './field-types.js';
import { columnsOf, leaves, type Move, type Resource, type ResourceWrite } from './resource.js';
import { statementName } from './statements.js';
import { entryOf, walled } from './walls.js';

/** The statements of a write, built once. Parameters are named after the members they take; the name of no member has a dot. */
export interface WriteStatements {
  /** Takes the key, unless it was used or a reference names no record of the workspace. */
  readonly claim: Statement;
  /** The row as it is, locked against other writers until the transaction ends; no row unless this transaction claimed the key. */
  readonly lock: Statement;
  /** Adds the record and its audit entry, stores the row under the key and returns it as text; does nothing unless this transaction claimed the key. */
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

/** Adds a parameter and returns its place, such as $1. */
type Place = (parameter: string) => string;

/** The new value of a column that a PATCH moves. */
const moves: Readonly<Record<Move, (column: string) => string>> = {
  increment: (column) => `${column} + 1`,
  now: () => 'clock_timestamp()',
};

/** Whether this transaction claimed the key: a used key has a status. A replay must change nothing, and not wait for a row. */
const claimed = (place: Place): string =>
  `select from gateway.idempotency where token_id = ${place('claim.token')} and key = ${place('claim.key')} and status is null`;

/** Writes go through the resource's write view; rows have the columns of a read, in the same order. */
export function compileWriteStatements(resource: Resource & { readonly write: ResourceWrite }): WriteStatements {
  const view = quoted(resource.write.view);
  const columns = columnsOf(resource).map(quoted).join(', ');
  const writable = leaves(resource).filter(({ field }) => field.write !== undefined);
  const finish = (part: string, textOf: (place: Place) => string): Statement => {
    const parameters: string[] = [];
    const text = textOf((parameter) => `$${parameters.push(parameter)}`);
    return { name: statementName(resource.name, part), text, parameters };
  };
  const own = (place: Place): string =>
    `workspace_id = ${place('workspace')} and id = ${typed(place('id'), resource.idType)}`;
  const references = writable.flatMap(({ field: { type, write }, path: [name = ''] }) => {
    const { references: other } = write as { references?: string };
    return other === undefined ? [] : [{ name, type, other: quoted(walled(other)) }];
  });
  /** A reference that is not given, NULL, is no unknown one. */
  const known = (place: Place): string[] =>
    references.map(
      ({ name, type, other }) => `(${place(name)}::text is null
        or exists (select from ${other} where workspace_id = ${place('workspace')} and id = ${typed(place(name), type)}))`,
    );
  const values = writable.map(({ field, path }) => [quoted(field.column), path[0] as string] as const);
  const inserted = [
    ['workspace_id', 'workspace'],
    ...(resource.write.ids === 'gateway' ? [['id', 'id']] : []),
    ...values,
  ] as const;
  const moved = Object.entries(resource.write.onChange).map(([column, move]) => [column, moves[move](quoted(column))]);
  const storing = storingOf(resource);
  return {
    claim: finish(
      'claim',
      (place) => `insert into gateway.idempotency (workspace_id, token_id, key, fingerprint)
        select ${['workspace', 'claim.token', 'claim.key', 'claim.fingerprint'].map(place).join(', ')}
        where ${['true', ...known(place)].join(' and ')} on conflict do nothing returning true`,
    ),
    lock: finish(
      'lock',
      (place) => `select ${columns} from ${view} where exists (${claimed(place)}) and ${own(place)} for update`,
    ),
    create: finish('create', (place) =>
      storing(place, 201, {
        written: `insert into ${view} (${inserted.map(([column]) => column).join(', ')})
          select ${inserted.map(([, parameter]) => place(parameter as string)).join(', ')} from claimed returning ${columns}`,
        loggedId: () => newId(resource, place),
      }),
    ),
    update: finish('update', (place) => {
      const set = [...values.map(([column, name]) => [column, place(name)]), ...moved];
      return storing(place, 200, {
        written: `update ${view} set ${set.map((pair) => pair.join(' = ')).join(', ')} where ${own(place)} returning ${columns}`,
        loggedId: () => place('id'),
      });
    }),
    keep: finish('keep', (place) =>
      storing(place, 200, { written: `select ${columns} from ${view} where ${own(place)}`, loggedId: null }),
    ),
    recall: finish('recall', (place) => {
      const same = `held.fingerprint = ${place('claim.fingerprint')}, held.status, held.record_id, held.may_read`;
      const row = `case when held.shape = '${shapeOf(resource)}' then held.record end`;
      return `select ${[same, row, ...known(place)].join(', ')} from (select) as once left join gateway.idempotency held
        on held.token_id = ${place('claim.token')} and held.key = ${place('claim.key')}`;
    }),
    read: finish('read', (place) => `select ${columns} from ${view} where ${own(place)}`),
    references: references.map(({ name }) => name),
  };
}

/** A statement that writes a row, and the id of its audit entry; null: there is no entry. */
interface Storing {
  readonly written: string;
  readonly loggedId: (() => string) | null;
}

/**
 * Record, audit entry and stored row in one statement: three took PostgreSQL 4 % and the gateway 7 % longer. Divides by zero where the
 * key is claimed and no row was stored, as when a trigger of the app dropped the record, because the COMMIT that travels with it
 * must not run then.
 */
function storingOf(resource: Resource & { readonly write: ResourceWrite }) {
  const { audit } = resource.write;
  const shape = shapeOf(resource);
  return (place: Place, status: number, { written, loggedId }: Storing): string => {
    const placeOf = (id: () => string) => (parameter: string) => (parameter === 'id' ? id() : place(parameter));
    const entry = audit && entryOf(audit.columns);
    const logged =
      entry &&
      loggedId &&
      `logged as (insert into ${quoted(audit.view)} (${entry.map(([column]) => quoted(column)).join(', ')})
        select ${entry.map(([, parameter]) => placeOf(loggedId)(parameter)).join(', ')} from written),`;
    return `with claimed as (${claimed(place)}), written as (${written}), ${logged ?? ''}
      stored as (update gateway.idempotency held set status = ${status}, record_id = written.id, may_read = ${place('may-read')},
          shape = '${shape}', record = (written.*)::text
        from written where held.token_id = ${place('claim.token')} and held.key = ${place('claim.key')} returning held.record)
    select record, 1 / (select count(*) from stored) from claimed left join stored on true`;
  };
}

/** The id of a new record in its audit entry. A text that the database made is read as the log's own type, which may be another. */
function newId({ idType, write }: Resource & { readonly write: ResourceWrite }, place: Place): string {
  if (write.ids === 'gateway') return place('id');
  if (idType !== 'text' || write.audit === null) return 'written.id';
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

const typed = (place: string, type: FieldType): string => fieldType(type).parameter.replace('?', () => place);

/** A column or view of the definition, whose names are letters, digits and underscores. */
const quoted = (name: string): string => `"${name.replace('.', '"."')}"`;
