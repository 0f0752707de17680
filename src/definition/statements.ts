import knexModule, { type Knex } from 'knex';
import type { Statement } from '../db/statement.js';
import { filterCondition } from './filter-kinds.js';
import { type Filter, leaves, type Resource } from './resource.js';

const { knex } = knexModule;

/** Where a chunk begins and ends: nothing, behind a key, up to a key, or both. */
export type Bounds = 'all' | 'after' | 'until' | 'between';

/** The statements of one combination of filters. */
export interface ListStatements {
  /** Rows in order, `limit` of them. Parameters: workspace, filters, after0/after1, until0/until1, limit. */
  readonly rows: Readonly<Record<Bounds, Statement>>;
  /** Keys only, skipping `skip`: an index-only scan where the filters' index covers the order. */
  readonly keys: Readonly<Record<'all' | 'after', Statement>>;
  /** The last key of all. */
  readonly last: Statement;
  /** The exact number of rows. */
  readonly count: Statement;
}

/** All statements of a resource, built once with knex and never per request. */
export interface ResourceStatements {
  /** By the names of the filters given, sorted and joined with "+"; '' for none. */
  readonly lists: ReadonlyMap<string, ListStatements>;
  readonly detail: Statement | null;
}

/** The key under which a combination of filters is kept. */
export function filterShape(names: Iterable<string>): string {
  return [...names].sort().join('+');
}

/** Builds every statement of the resource. Every one carries workspace_id = $1. */
export function compileStatements(resource: Resource): ResourceStatements {
  const builder = knex({ client: 'pg' });
  const lists = new Map<string, ListStatements>();
  for (const names of subsets(Object.keys(resource.filters))) {
    lists.set(filterShape(names), compileList(builder, resource, names));
  }
  const detail = resource.detail
    ? finish(
        `${resource.name}.detail`,
        scoped(builder, resource)
          .select(columns(resource))
          .where(builder.raw('id = ?', ['id'])),
      )
    : null;
  return { lists, detail };
}

function compileList(builder: Knex, resource: Resource, filters: readonly string[]): ListStatements {
  const [first, second] = resource.order.map(({ column }) => column) as [string, string];
  const named = (what: string): string => [resource.name, what, ...filters].join('.');
  const filtered = (): Knex.QueryBuilder => {
    const query = scoped(builder, resource);
    for (const name of filters) {
      const { sql, bindings } = filterCondition(name, resource.filters[name] as Filter);
      query.where(builder.raw(sql, bindings));
    }
    return query;
  };
  // The comparison of the first column alone repeats what the row comparison says; it is what prunes partitions.
  const bounded = (query: Knex.QueryBuilder, bounds: Bounds): Knex.QueryBuilder => {
    if (bounds === 'after' || bounds === 'between') {
      query.where(builder.raw('?? >= ?', [first, 'after0']));
      query.where(builder.raw('(??, ??) > (?, ?)', [first, second, 'after0', 'after1']));
    }
    if (bounds === 'until' || bounds === 'between') {
      query.where(builder.raw('?? <= ?', [first, 'until0']));
      query.where(builder.raw('(??, ??) <= (?, ?)', [first, second, 'until0', 'until1']));
    }
    return query;
  };
  const rows = (bounds: Bounds): Statement =>
    finish(named(`rows-${bounds}`), bounded(filtered(), bounds).select(columns(resource)).orderBy([first, second]), [
      'limit',
    ]);
  const keys = (bounds: 'all' | 'after'): Statement =>
    finish(named(`keys-${bounds}`), bounded(filtered(), bounds).select(first, second).orderBy([first, second]), [
      'limit',
      'skip',
    ]);
  const descending = [first, second].map((column) => ({ column, order: 'desc' as const }));
  return {
    rows: { all: rows('all'), after: rows('after'), until: rows('until'), between: rows('between') },
    keys: { all: keys('all'), after: keys('after') },
    last: finish(named('last'), filtered().select(first, second).orderBy(descending), ['limit']),
    count: finish(named('count'), filtered().count('*')),
  };
}

function scoped(builder: Knex, resource: Resource): Knex.QueryBuilder {
  return builder(resource.view).where(builder.raw('workspace_id = ?', ['workspace']));
}

function columns(resource: Resource): string[] {
  return leaves(resource).map(({ field }) => field.column);
}

/**
 * knex binds the parameters' names; their order in its bindings is the order of $1, $2, … It takes only numbers for
 * LIMIT and OFFSET, so those are appended.
 */
function finish(name: string, query: Knex.QueryBuilder, tail: readonly ('limit' | 'skip')[] = []): Statement {
  const { sql, bindings } = query.toSQL().toNative();
  const clauses = tail.map((word, i) => ` ${word === 'skip' ? 'offset' : word} $${bindings.length + i + 1}`);
  return { name, text: sql + clauses.join(''), parameters: [...(bindings as string[]), ...tail] };
}

/** Every combination of the names, the empty one included. */
function subsets([name, ...others]: readonly string[]): string[][] {
  if (name === undefined) return [[]];
  const without = subsets(others);
  return [...without, ...without.map((set) => [name, ...set])];
}
