import knex, { type Knex } from 'knex';
import { prepareSql, type Statement } from '../../postgres/statement.js';

/** Composes SQL, without a connection. In a raw fragment no `:name` may equal the name of a type: `::text` would be taken for it. */
export const sql = knex.knex({ client: 'pg' });

export type Fragment = Knex.Raw;
export type Query = Knex.QueryBuilder;

/** A value is bound by its name. Each place has a number of its own, so that PostgreSQL finds a type for each. */
export class Parameter {
  readonly [member: string]: unknown; // as knex types a binding
  constructor(readonly name: string) {}
}

/** All conditions bound the rows of a view or of a subquery. */
export const readRows = (from: string | Fragment, conditions: readonly Fragment[] = []): Query =>
  conditions.reduce((rows: Query, condition) => rows.where(condition), sql.queryBuilder().from(from));

/** A number of the program's own is not bound in `limit` and `offset`. */
export const asLiteral = { skipBinding: true } as const;

const limit = (query: Query): Fragment => sql.raw('? limit ?', [query, new Parameter('limit')]);

/** A query ends with one of these. `limit` of knex takes numbers alone; PostgreSQL drops the parentheses around the query. */
export const ends = {
  limit,
  limitAfterSkipped: (query: Query): Fragment => sql.raw('? offset ?', [limit(query), new Parameter('skip')]),
  none: (query: Query): Fragment => sql.raw('?', [query]),
};

export const orderBy = (columns: readonly string[], order: 'asc' | 'desc') =>
  columns.map((column) => ({ column, order }));

/** Throws an error when a value is part of the query that has no name. */
export function compile(label: string, query: Fragment | Query, inTableOrder?: true): Statement {
  const { sql: text, bindings } = query.toSQL().toNative();
  const parameters = bindings.map((bound) => {
    if (bound instanceof Parameter) return bound.name;
    throw new TypeError(`${label} binds a value without a name.`);
  });
  return prepareSql(label, text, parameters, inTableOrder);
}
