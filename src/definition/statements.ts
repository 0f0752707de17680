import knexModule, { type Knex } from 'knex';
import { LRUCache } from 'lru-cache';
import type { Statement } from '../postgres/statement.js';
import { fewOrMany, type Tail } from './few-or-many.js';
import { fieldType } from './field-types.js';
import { filterCondition, filterKind, hasValue } from './filter-kinds.js';
import { columnsOf, type Direction, type Filter, leaves, type OrderColumn, type Resource } from './resource.js';
import { orderFrom, shortName, viewInOrder } from './walls.js';

const { knex } = knexModule;

/** Where a chunk begins and ends: nothing, behind a key, up to a key, or both. */
export type Bounds = 'all' | 'after' | 'until' | 'between';

/** The statements of one combination of filters and direction. */
export interface ListStatements {
  /** Rows in order, `limit` of them. Parameters: workspace, filters, after0/after1, until0/until1, limit. */
  readonly rows: Readonly<Record<Bounds, Statement>>;
  /**
   * Keys only, skipping `skip`: an index-only scan where the filters' index covers the order. `before` reads backwards, from the row
   * before the key until0/until1.
   */
  readonly keys: Readonly<Record<'all' | 'after' | 'before', Statement>>;
  /** The last key of all. */
  readonly last: Statement;
  /** The exact number of rows. */
  readonly count: Statement;
}

/** The statements of a resource. Those of a combination of filters and members are built when a client first uses it, and kept. */
export interface ResourceStatements {
  /** The statements for the filters of these names, in any order; ascending and of whole rows unless told otherwise. */
  readonly list: (filters: readonly string[], direction?: Direction, cut?: Cut | null) => ListStatements;
  readonly detail: Statement | null;
}

/** The part of the rows that is read where a client asked for some members of the records. */
export interface Cut {
  /** The names of the members. */
  readonly fields: readonly string[];
  readonly columns: readonly string[];
}

type Query = Knex.QueryBuilder | Knex.Raw;
/** Adds bounds to a query. */
type Bound = (query: Knex.QueryBuilder) => Knex.QueryBuilder;
type FarEnd = (typeof farEnd)[Direction];

/** How many combinations of filters, and how many with a cut, are kept; the least recently used one makes room. */
const combinationsKept = 128;

/** Builds the statements of the resource, each over the view that has its order. */
export function compileStatements(resource: Resource): ResourceStatements {
  const builder = knex({ client: 'pg' });
  const whole = keptLists(nameOf(resource), (shape) => compileList(builder, resource, shape));
  const cuts = keptLists(nameOf(resource), (shape) => {
    const { rows } = compileList(builder, resource, shape);
    const ofWhole = whole({ ...shape, cut: null });
    return onFirstUse<ListStatements>({
      rows: () => rows,
      keys: () => ofWhole.keys,
      last: () => ofWhole.last,
      count: () => ofWhole.count,
    });
  });
  const list: ResourceStatements['list'] = (filters, direction = 'asc', cut = null) =>
    (cut === null ? whole : cuts)({ names: [...filters].sort(), direction, cut });
  const detail = byId(builder, resource, builder.raw(fieldType(resource.idType).parameter, ['id'])).select(
    columnsOf(resource),
  );
  return { list, detail: resource.detail ? finish(`${resource.name}.detail`, detail) : null };
}

/** Rows of a pass have a column more, so their statements have names of their own. */
const nameOf = ({ name, versionSeed }: Resource): string => (versionSeed === undefined ? name : `${name}.versioned`);

export function statementName(...parts: readonly string[]): string {
  return shortName(parts.join('.'));
}

/** A combination: filters by name, in order, a direction and the cut; null: whole rows. */
interface Combination {
  readonly names: readonly string[];
  readonly direction: Direction;
  readonly cut: Cut | null;
}

/** A combination with the beginning of the names of its statements; null: they have none. */
type Shape = Combination & { readonly prefix: string | null };

/** Keeps the statements of so many combinations. Each connection keeps the statements that have names: beyond that number they have none. */
function keptLists(
  prefix: string,
  make: (shape: Shape) => ListStatements,
): (combination: Combination) => ListStatements {
  const lists = new LRUCache<string, ListStatements>({ max: combinationsKept });
  let combinations = 0;
  return (combination) => {
    const { names, direction, cut } = combination;
    const key = `${direction} ${names.join('+')} ${cut?.fields.join('+')}`;
    const list = lists.get(key) ?? make({ ...combination, prefix: ++combinations <= combinationsKept ? prefix : null });
    lists.set(key, list);
    return list;
  };
}

function compileList(builder: Knex, resource: Resource, { names, direction, cut, prefix }: Shape): ListStatements {
  const opposite = direction === 'asc' ? 'desc' : 'asc';
  const columns = cut?.columns ?? columnsOf(resource);
  const key = keyOf(resource);
  const { read, count } = compileReads(builder, resource, names, columns);
  const within = (bounds: Bounds): Bound => withinBounds(builder, resource, direction, bounds);
  const before: Bound = (query) => query.where(beyond(builder, resource, direction === 'asc' ? '<' : '>', 'until'));
  const parts = [...(direction === 'desc' ? ['desc'] : []), ...names, ...(cut ? [`only ${cut.fields.join(' ')}`] : [])];
  const named = (part: string, [query, tail]: Read): Statement =>
    finish(prefix === null ? '' : statementName(prefix, part, ...parts), query, tail);
  return onFirstUse<ListStatements>({
    rows: () => byBounds((bounds) => named(`rows-${bounds}`, read(columns, within(bounds), direction, ['limit']))),
    keys: () =>
      onFirstUse<ListStatements['keys']>({
        all: () => named('keys-all', read(key, within('all'), direction, ['limit', 'skip'])),
        after: () => named('keys-after', read(key, within('after'), direction, ['limit', 'skip'])),
        before: () => named('keys-before', read(key, before, opposite, ['limit', 'skip'])),
      }),
    last: () => named('last', read(key, within('all'), opposite, ['limit'])),
    count: () => named('count', [count(direction), []]),
  });
}

/** A query, and the clauses that `finish` appends to it. */
type Read = readonly [Query, Tail];

/** The queries of the rows that some filters find. */
interface Reads {
  /** Columns of the rows within bounds, in the order in which the statement reads. */
  readonly read: (columns: readonly string[], bound: Bound, reading: Direction, tail: Tail) => Read;
  readonly count: (reading: Direction) => Query;
}

/** `record`: the columns that are read of a record. */
function compileReads(builder: Knex, resource: Resource, filters: readonly string[], record: readonly string[]): Reads {
  const key = keyOf(resource);
  const listed = filters.filter((name) => isListed(resource, name));
  const unlisted = filters.filter((name) => !listed.includes(name));
  const where = (query: Knex.QueryBuilder, names: readonly string[], end: FarEnd | null): Knex.QueryBuilder =>
    names.reduce((all, name) => all.where(condition(builder, resource, name, end)), query);
  const rare = listed.length > 0 ? undefined : unlisted.find((name) => resource.filters[name]?.nearlyUnique);
  const compared = rare === undefined ? [] : unlisted.filter((name) => name !== rare && !isInOrder(resource, name));
  /** The rows of the filters in the view, for a statement that reads in the direction. */
  const filtered = (view: string, reading: Direction): Knex.QueryBuilder => {
    const from = listed.length > 0 ? builder.from(fewRows(builder, resource, record, listed)) : builder(view);
    const indexed = unlisted.filter((name) => !compared.includes(name));
    return compared.reduce(
      (query, name) => query.where(withoutIndex(builder, condition(builder, resource, name))),
      where(from, indexed, farEnd[reading]),
    );
  };
  const isFew = listed.length > 0 || rare !== undefined;
  const own = isFew ? undefined : unlisted.find((name) => resource.filters[name]?.ownIndex);
  // The order names the index of a nearly unique value.
  const order = rare === undefined ? key : orderFrom((resource.filters[rare] as Filter).column, resource);
  const read = (columns: readonly string[], bound: Bound, reading: Direction, tail: Tail): Read => {
    const sorted = (query: Knex.QueryBuilder): Knex.QueryBuilder =>
      bound(query).orderBy(order.map((column) => ({ column, order: reading })));
    const inOrder = filtered(viewInOrder(resource, order, reading), reading);
    // The view has the order. PostgreSQL hands the limit on to the view only without an ORDER BY here: else it would plan for all of the
    // view's rows, and make the parts of a record before a sort.
    const walked = listed.length > 0 ? sorted(inOrder) : bound(inOrder);
    if (own === undefined) return [walked.select(columns), tail];
    const others = unlisted.filter((name) => name !== own);
    const place = orderFrom((resource.filters[own] as Filter).column, resource);
    const all = (): Knex.QueryBuilder => builder(viewInOrder(resource, place, 'asc'));
    const found = (from: Knex.QueryBuilder): Knex.QueryBuilder => where(from, [own], null);
    const narrowed = (query: Knex.QueryBuilder): Knex.QueryBuilder => sorted(where(query, others, null));
    const more = others.map((name) => resource.filters[name]?.column as string);
    const many = found(builder(resource.view));
    const ways = { columns, key, reading, tail, all, found, many, place, others: more, walked, narrowed };
    return [fewOrMany(builder, ways), []];
  };
  const count = (reading: Direction): Query => {
    // By its own index alone all rows are counted faster than in their order; with other filters each of them would be read. A nearly
    // unique value needs the order.
    const isAlone = own === undefined || unlisted.length === 1;
    if (isAlone && rare === undefined) return filtered(resource.view, reading).count('*');
    const [ways] = read(key, (query) => query, reading, []);
    return builder.from(builder.raw('(?) as found', [ways])).count('*');
  };
  return { read, count };
}

function keyOf({ order }: Ordered): string[] {
  return order.map(({ column }) => column);
}

/** Whether the filter is a list of ids. */
function isListed({ filters }: Resource, name: string): boolean {
  const { kind, column } = filters[name] as Filter;
  return column === 'id' && filterKind(kind).isList === true;
}

/** Whether the filter compares a column of the list's order, with which the index of every filter ends. */
function isInOrder(resource: Resource, name: string): boolean {
  return keyOf(resource).includes(resource.filters[name]?.column as string);
}

/**
 * The condition in a form that no index answers. Beside a value that few rows have, PostgreSQL expects one row of the index of every other
 * filter, too, in a workspace of average size. Before version 17 it may sort the rows of any index: version 15 read 44,000 work orders of an
 * installation to find one by its number.
 */
function withoutIndex(builder: Knex, condition: Knex.Raw): Knex.Raw {
  return builder.raw('coalesce(?, false)', [condition]);
}

function condition(builder: Knex, resource: Resource, name: string, end: FarEnd | null = null): Knex.Raw {
  const { sql, bindings } = filterCondition(name, resource, end);
  return builder.raw(sql, bindings);
}

function withinBounds(builder: Knex, resource: Resource, direction: Direction, bounds: Bounds): Bound {
  const [onward, back] = direction === 'asc' ? (['>', '<='] as const) : (['<', '>='] as const);
  const { after, until } = ends[bounds];
  return (query) => {
    if (after) query.where(beyond(builder, resource, onward, 'after'));
    if (until) query.where(comparison(builder, resource, back, 'until'));
    return query;
  };
}

/** The object whose members these functions make, each when it is first used: a start needs few of many statements. */
export function onFirstUse<T extends object>(makers: { readonly [M in keyof T]: () => T[M] }): T {
  const made = {} as T;
  for (const name of Object.keys(makers) as (keyof T)[]) {
    const get = (): T[typeof name] => {
      const value = makers[name]();
      Object.defineProperty(made, name, { value, enumerable: true });
      return value;
    };
    Object.defineProperty(made, name, { get, enumerable: true, configurable: true });
  }
  return made;
}

/** A statement for each kind of bounds. */
export function byBounds(make: (bounds: Bounds) => Statement): Readonly<Record<Bounds, Statement>> {
  return onFirstUse({
    all: () => make('all'),
    after: () => make('after'),
    until: () => make('until'),
    between: () => make('between'),
  });
}

/** The ends that each kind of bounds has. */
export const ends: Readonly<Record<Bounds, { after?: true; until?: true }>> = {
  all: {},
  after: { after: true },
  until: { until: true },
  between: { after: true, until: true },
};

/** The side of a range at which a statement that reads in a direction ends. */
const farEnd = { asc: 'upper', desc: 'lower' } as const satisfies Record<Direction, string>;

type Operator = '>' | '<=' | '<' | '>=';
type Ordered = Pick<Resource, 'order'>;

/**
 * Compares the key of a row with the parameters after0, after1, … or until0, until1, …. A statement compares the first column by itself
 * from the side alone where it begins to read; where it ends, this and the filters of `farEnd` are row comparisons. In a generic plan
 * PostgreSQL expects 0.5 % of the rows between a lower and an upper bound of a column: of a workspace of average size that is no row, so
 * all indexes look alike, and the list of an installation with from and to was seen to walk all work orders of the period.
 */
function comparison(builder: Knex, { order }: Ordered, operator: Operator, end: 'after' | 'until'): Knex.Raw {
  const columns = keyOf({ order });
  const parameters = order.map(({ type }) => fieldType(type).parameter);
  const names = order.map((_, i) => `${end}${i}`);
  const row = `(${columns.map(() => '??').join(', ')}) ${operator} (${parameters.join(', ')})`;
  return builder.raw(row, [...columns, ...names]);
}

/** The same for the end where reading begins. The first column by itself repeats it, because PostgreSQL prunes partitions by that alone. */
export function beyond(builder: Knex, resource: Ordered, operator: Operator, end: 'after' | 'until'): Knex.Raw {
  const { column, type } = resource.order[0] as OrderColumn;
  const first = `?? ${operator[0]}= ${fieldType(type).parameter}`;
  return builder.raw(`${first} and ?`, [column, `${end}0`, comparison(builder, resource, operator, end)]);
}

/** The row of an id. */
function byId(builder: Knex, resource: Resource, id: Knex.Raw): Knex.QueryBuilder {
  return builder(viewInOrder(resource, ['id'], 'asc'))
    .where(builder.raw(hasValue('id', '?', resource.idType), [id, id, id]))
    .orderBy('id');
}

/**
 * The rows that a list of ids names, at most 100, each looked up by itself. With `id = any(…)` a generic plan read an index of the whole
 * workspace, which it took for one of average size, and so did a look-up that wants the key alone, unless the row is materialized.
 * OFFSET 0 keeps the planner from merging the query into the outer one. For the CASE see `hasValue`.
 */
function fewRows(
  builder: Knex,
  resource: Resource,
  columns: readonly string[],
  [list = '', ...more]: readonly string[],
): Knex.Raw {
  const { idType, view } = resource;
  const ofView = builder.raw('case when true then ? else array[(select id from ?? limit 0)] end', [list, view]);
  const named = idType === 'text' ? ofView : builder.raw(`?::${fieldType(idType).columnTypes[0]}[]`, [list]);
  const ids = builder.select(builder.raw('distinct unnest(?) as id', [named])).as('named');
  // By name: the view has the version of a sync pass as well, which costs a look-up of the parts. Filters compare plain columns, and without
  // them PostgreSQL can take an index with all the columns for the cheapest, and read the workspace in it.
  const plain = leaves(resource).filter(({ field: { codec, type } }) => codec === undefined && type !== 'json');
  const read = new Set([...columns, ...plain.map(({ field }) => field.column)]);
  const row = byId(builder, resource, builder.raw('named.id')).select([...read]);
  for (const name of more) row.where(condition(builder, resource, name));
  const found = builder.withMaterialized('one', row).select('*').from('one').as('found');
  const rows = builder
    .select('found.*')
    .from(ids)
    .crossJoin(builder.raw('lateral ?', [found]));
  return builder.raw('(? offset 0) as few', [rows]);
}

/**
 * knex binds the parameters' names; their order in its bindings is the order of $1, $2, … It takes only numbers for
 * LIMIT and OFFSET, so those are appended.
 */
export function finish(name: string, query: Query, tail: Tail = []): Statement {
  const { sql, bindings } = query.toSQL().toNative();
  const clauses = tail.map((word, i) => ` ${word === 'skip' ? 'offset' : word} $${bindings.length + i + 1}`);
  return { name, text: sql + clauses.join(''), parameters: [...(bindings as string[]), ...tail] };
}
