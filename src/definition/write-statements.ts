import knexModule, { type Knex } from 'knex';
import type { Statement, Values } from '../db/statement.js';
import { type FieldType, fieldType } from './field-types.js';
import { columnsOf, leaves, type Move, type Resource, type ResourceWrite } from './resource.js';
import { statementName } from './statements.js';

const { knex } = knexModule;

/** The statements of a write, built once. Parameters are named after the members they take. */
export interface WriteStatements {
  /** Adds the record; none unless this transaction claimed the key. */
  readonly insert: Statement;
  /** The row as it is, locked against other writers until the transaction ends; no row unless this transaction claimed the key. */
  readonly lock: Statement;
  /** Sets every writable column; those not in the patch keep the value of the locked row. */
  readonly update: Statement;
  /** By member: whether the record it refers to exists in the workspace. */
  readonly references: ReadonlyMap<string, Statement>;
}

/** The columns of an entry of the audit log, and their parameters. */
export const auditEntry = {
  workspace_id: 'workspace',
  entity: 'entity',
  entity_id: 'id',
  actie: 'action',
  actor_type: 'actorType',
  actor_id: 'token',
  wijzigingen: 'changes',
};

/** Adds an entry to the app's audit log through the view. */
export function compileAuditStatement(resource: Resource, view: string): Statement {
  const builder = knex({ client: 'pg' });
  const values = Object.entries(auditEntry).map(([column, parameter]) => [column, builder.raw('?', [parameter])]);
  const { sql, bindings } = builder(view).insert(Object.fromEntries(values)).toSQL().toNative();
  return { name: statementName(resource.name, 'audit'), text: sql, parameters: bindings as string[] };
}

/** The new value of a column that a PATCH moves. */
const moves: Readonly<Record<Move, (builder: Knex, column: string) => Knex.Raw>> = {
  increment: (builder, column) => builder.raw('?? + 1', [column]),
  now: (builder) => builder.raw('clock_timestamp()'),
};

/** Whether this transaction claimed the key: a used key has a status. A replay must change nothing, and not wait for a row. */
const claimedText = '(select status is null from gateway.idempotency where token_id = ? and key = ?)';

/** Values of that condition. The name of no member has a dot. */
export function claimedKey(token: string, key: string): Values {
  return { 'claim.token': token, 'claim.key': key };
}

/** Writes go through the resource's write view; all return the columns of a read, in the same order. */
export function compileWriteStatements(resource: Resource & { readonly write: ResourceWrite }): WriteStatements {
  const builder = knex({ client: 'pg' });
  const columns = columnsOf(resource);
  const writable = leaves(resource).filter(({ field }) => field.write !== undefined);
  const values = Object.fromEntries(
    writable.map(({ field, path }) => [field.column, builder.raw('?', [path[0] as string])]),
  );
  const record = (view: string, idType: FieldType) =>
    builder(view)
      .where(builder.raw('workspace_id = ?', ['workspace']))
      .where(builder.raw(`id = ${fieldType(idType).parameter}`, ['id']));
  const own = () => record(resource.write.view, resource.idType);
  const claimed = builder.raw(claimedText, Object.keys(claimedKey('', '')));
  const finish = (
    part: string,
    query: { toSQL(): { toNative(): { sql: string; bindings: readonly unknown[] } } },
  ): Statement => {
    const { sql, bindings } = query.toSQL().toNative();
    return { name: statementName(resource.name, part), text: sql, parameters: bindings as string[] };
  };
  const moved = Object.fromEntries(
    Object.entries(resource.write.onChange).map(([column, move]) => [column, moves[move](builder, column)]),
  );
  const id = resource.write.ids === 'gateway' ? { id: builder.raw('?', ['id']) } : {};
  const inserted = { workspace_id: builder.raw('?', ['workspace']), ...id, ...values };
  const references = writable.flatMap(({ field, path }): [string, Statement][] => {
    const { references: view } = field.write as { references?: string };
    if (view === undefined) return [];
    const query = record(view, field.type).select(builder.raw('true'));
    return [[path[0] as string, finish(`exists.${path[0]}`, query)]];
  });
  return {
    references: new Map(references),
    insert: finish(
      'insert',
      builder(builder.raw('?? (??)', [resource.write.view, Object.keys(inserted)]))
        .insert(builder.select(Object.values(inserted)).where(claimed))
        .returning(columns),
    ),
    lock: finish('lock', own().where(claimed).select(columns).forUpdate()),
    update: finish(
      'update',
      own()
        .update({ ...values, ...moved })
        .returning(columns),
    ),
  };
}
