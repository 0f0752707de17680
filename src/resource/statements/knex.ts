import knex, { type Knex } from 'knex';
import { prepareSql, type Statement } from '../../postgres/statement.js';

/** Composes SQL, without a connection. In a raw fragment no `:name` may equal the name of a type: `::text` would be taken for it. */
export const sql = knex.knex({ client: 'pg' });

export type Fragment = Knex.Raw;
export type Query = Knex.QueryBuilder;

/** Binds a value by its name. Each occurrence has another number, so that PostgreSQL finds a type for each. */
export class Parameter {
  readonly [member: string]: unknown; // as knex types a binding
  constructor(readonly name: string) {}
}

/** Selects the rows of a view or of a subquery that meet all conditions. */
export const readRows = (from: string | Fragment, conditions: readonly Fragment[] = []): Query =>
  conditions.reduce((rows: Query, condition) => rows.where(condition), sql.queryBuilder().from(from));

/** Writes a number of the program itself as a literal in `limit` and `offset`. */
export const asLiteral = { skipBinding: true } as const;

const limit = (query: Query): Fragment => sql.raw('? limit ?', [query, new Parameter('limit')]);

/** Ends of a query. `limit` of knex takes numbers alone; PostgreSQL drops the parentheses around the query. */
export const queryEnds = {
  limit,
  limitAfterSkipped: (query: Query): Fragment => sql.raw('? offset ?', [limit(query), new Parameter('skip')]),
  none: (query: Query): Fragment => sql.raw('?', [query]),
};

export const orderBy = (columns: readonly string[], order: 'asc' | 'desc') =>
  columns.map((column) => ({ column, order }));

/** Throws an error when a value in the query has no name. */
export function compile(label: string, query: Fragment | Query, inTableOrder?: true): Statement {
  const { sql: text, bindings } = query.toSQL().toNative();
  const parameters = bindings.map((bound) => {
    if (bound instanceof Parameter) return bound.name;
    throw new TypeError(`${label} binds a value without a name.`);
  });
  return prepareSql(label, text, parameters, inTableOrder);
}
