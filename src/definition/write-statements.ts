import knexModule from 'knex';
import type { Statement } from '../db/statement.js';
import { leaves, type Resource, type ResourceWrite } from './resource.js';

const { knex } = knexModule;

/** The statements of a write, built once. Parameters are named after the members they take. */
export interface WriteStatements {
  readonly insert: Statement;
  /** The row as it is, locked against other writers until the transaction ends. */
  readonly lock: Statement;
  /** Sets every writable column: those not in the patch to what the locked row holds. */
  readonly update: Statement;
  /** By member: whether the record it refers to exists in the workspace. */
  readonly references: ReadonlyMap<string, Statement>;
}

/** Writes go through the resource's write view; all return the columns of a read, in the same order. */
export function compileWriteStatements(resource: Resource & { readonly write: ResourceWrite }): WriteStatements {
  const builder = knex({ client: 'pg' });
  const columns = leaves(resource).map(({ field }) => field.column);
  const writable = leaves(resource).filter(({ field }) => field.write !== undefined);
  const values = Object.fromEntries(
    writable.map(({ field, path }) => [field.column, builder.raw('?', [path[0] as string])]),
  );
  const one = () =>
    builder(resource.write.view)
      .where(builder.raw('workspace_id = ?', ['workspace']))
      .where(builder.raw('id = ?', ['id']));
  const finish = (
    what: string,
    query: { toSQL(): { toNative(): { sql: string; bindings: readonly unknown[] } } },
  ): Statement => {
    const { sql, bindings } = query.toSQL().toNative();
    return { name: `${resource.name}.${what}`, text: sql, parameters: bindings as string[] };
  };
  const id = resource.write.ids === 'gateway' ? { id: builder.raw('?', ['id']) } : {};
  const keys = { workspace_id: builder.raw('?', ['workspace']), ...id };
  const references = writable.flatMap(({ field, path }): [string, Statement][] => {
    const { references: view } = field.write as { references?: string };
    if (view === undefined) return [];
    const query = builder(view)
      .where(builder.raw('workspace_id = ?', ['workspace']))
      .where(builder.raw('id = ?', ['id']));
    return [[path[0] as string, finish(`exists.${path[0]}`, query.select(builder.raw('true')))]];
  });
  return {
    references: new Map(references),
    insert: finish(
      'insert',
      builder(resource.write.view)
        .insert({ ...keys, ...values })
        .returning(columns),
    ),
    lock: finish('lock', one().select(columns).forUpdate()),
    update: finish('update', one().update(values).returning(columns)),
  };
}
