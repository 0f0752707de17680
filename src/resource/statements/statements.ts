import { LRUCache } from 'lru-cache';
import type { Statement } from '../../postgres/statement.js';
import { getType } from '../definition/field-types.js';
import type { Filter } from '../definition/filter-kinds.js';
import { type Direction, getColumns, listLeaves, type Resource } from '../definition/resource.js';
import {
  type Bounds,
  composeBeyond,
  composeComparison,
  composeCondition,
  composeKeyBounds,
  listKeyColumns,
  operators,
  whereValue,
} from './conditions.js';
import { asLiteral, compile, type Fragment, orderBy, Parameter, type Query, queryEnds, readRows, sql } from './knex.js';
import { listOrderFrom, nameOrderedView } from './walls.js';

// Example: GET /werkbonnen?installationId=…&cursor=… reads
//   select "id", "datum", … from gateway.werkbonnen_asc
//   where "installation_id" = $1 and "datum" >= $2 and ("datum", "id") > ($3, $4) limit $5
// with the key of the cursor in $2 to $4. The view has the order of the list, so the statement has none. Three filters read otherwise: ids
// are looked up one by one (`selectRowsByIds`); a nearly unique value, such as `nummer`, reads the view whose order begins with its column;
// and `updatedSince`, which has an index of its own, chooses between two branches (`selectInOrder`).

export interface ListStatements {
  /** Reads rows in order. Parameters: filters, after0/after1, until0/until1, limit. */
  readonly rows: Readonly<Record<Bounds, Statement>>;
  /** Finds keys after `skip` others by an index-only scan. `before` reads backwards, from the row before the key until0/until1. */
  readonly keys: Readonly<Record<'all' | 'after' | 'before', Statement>>;
  readonly last: Statement;
  readonly count: Statement;
}

/** Statements of each combination of filters and fields, composed when a client first uses it, and kept. */
export interface ResourceStatements {
  /** Returns the statements for the filters of these names, in any order; the defaults are ascending and whole rows. */
  readonly list: (names: readonly string[], direction?: Direction, selection?: FieldSelection | null) => ListStatements;
  readonly detail: Statement | null;
}

/** Fields that a client asked for, and their columns. */
export interface FieldSelection {
  readonly fields: readonly string[];
  readonly columns: readonly string[];
}

const combinationsKept = 256;

/** Composes the statements of the resource, each over the view that has its order. */
export function compileStatements(resource: Resource): ResourceStatements {
  const lists = new LRUCache<string, ListStatements>({ max: combinationsKept });
  const list: ResourceStatements['list'] = (filters, direction = 'asc', selection = null) => {
    const names = [...filters].sort();
    const key = JSON.stringify([direction, names, selection?.fields]);
    let composed = lists.get(key);
    if (composed === undefined) {
      const described = describeList(resource, names, direction, selection?.columns ?? getColumns(resource));
      const rows = compileRows(described);
      composed = selection === null ? { rows, ...compileRest(described) } : { ...list(names, direction), rows };
      lists.set(key, composed);
    }
    return composed;
  };
  const detail = () => compile(`${resource.name}.detail`, selectRowById(resource, new Parameter('id')));
  return { list, detail: resource.detail ? detail() : null };
}

/** Members that the statements of a combination of filters and a direction share. */
interface List {
  readonly label: string;
  readonly resource: Resource;
  readonly direction: Direction;
  readonly columns: readonly string[];
  /** A list of ids names the rows; every other filter is a condition. */
  readonly hasIds: boolean;
  readonly filters: readonly string[];
  readonly nearlyUniqueFilter: string | undefined;
  readonly ownIndexFilter: string | undefined;
  /** Filters that no index answers. */
  readonly unindexed: readonly string[];
  /** Order of the view, which selects the index of a nearly unique value. */
  readonly order: readonly string[];
}

function describeList(resource: Resource, names: string[], direction: Direction, columns: List['columns']): List {
  const label = resource.versionSeed === undefined ? resource.name : `${resource.name}.versioned`;
  const key = listKeyColumns(resource.order);
  const hasIds = names.includes('ids');
  const filters = names.filter((name) => name !== 'ids');
  const nearlyUnique = hasIds ? undefined : filters.find((name) => resource.filters[name]?.nearlyUnique);
  const isWalked = !hasIds && nearlyUnique === undefined;
  const isUnindexed = (name: string) => name !== nearlyUnique && !key.includes(getFilterColumn(resource, name));
  return {
    label,
    resource,
    direction,
    columns,
    hasIds,
    filters,
    nearlyUniqueFilter: nearlyUnique,
    ownIndexFilter: isWalked ? filters.find((name) => resource.filters[name]?.ownIndex) : undefined,
    unindexed: nearlyUnique === undefined ? [] : filters.filter(isUnindexed),
    order: nearlyUnique === undefined ? key : listOrderFrom(getFilterColumn(resource, nearlyUnique), resource),
  };
}

/** The side of a range at which a statement in this direction ends. */
const farEnd = { asc: 'upper', desc: 'lower' } as const;

function compileRows(list: List): ListStatements['rows'] {
  const { label, columns, direction } = list;
  return mapBounds((bounds) => {
    const rows = { columns, bounds: composeListBounds(list, bounds), direction, end: queryEnds.limit };
    return compile(`${label}.rows-${bounds}`, selectInOrder(list, rows));
  });
}

function compileRest(list: List): Omit<ListStatements, 'rows'> {
  const { label, resource, direction } = list;
  const opposite = direction === 'asc' ? 'desc' : 'asc';
  const select = (name: string, bounds: readonly Fragment[], reading: Direction, end = queryEnds.limitAfterSkipped) => {
    const keys = { columns: listKeyColumns(resource.order), bounds, direction: reading, end };
    return compile(`${label}.${name}`, selectInOrder(list, keys));
  };
  return {
    keys: {
      all: select('keys-all', [], direction),
      after: select('keys-after', composeListBounds(list, 'after'), direction),
      before: select('keys-before', [composeBeyond(resource.order, operators[opposite][0], 'until')], opposite),
    },
    last: select('last', [], opposite, queryEnds.limit),
    count: compile(`${label}.count`, countRows(list)),
  };
}

const composeListBounds = ({ resource, direction }: List, bounds: Bounds): Fragment[] =>
  composeKeyBounds(resource.order, bounds, operators[direction], composeComparison);

/** Counts all rows by their own index, which is faster than in their order; a nearly unique value needs that order all the same. */
function countRows(list: List): Query {
  const { resource, direction, nearlyUniqueFilter, ownIndexFilter, filters } = list;
  const isAlone = ownIndexFilter === undefined || filters.length === 1;
  if (isAlone && nearlyUniqueFilter === undefined)
    return selectFilteredRows(list, resource.view, direction, []).count();
  const keys = { columns: listKeyColumns(resource.order), bounds: [], direction, end: queryEnds.none };
  return readRows(sql.raw('? as found', [selectInOrder(list, keys)])).count();
}

/** Part of a list that a statement reads, in a direction, up to its end. */
interface ListSection {
  readonly columns: readonly string[];
  readonly bounds: readonly Fragment[];
  readonly direction: Direction;
  readonly end: (typeof queryEnds)[keyof typeof queryEnds];
}

/**
 * The columns of the rows within bounds, in the order of the view: PostgreSQL hands the limit on to it only without an ORDER BY here, else
 * it would plan for all of the view's rows, and make the parts of a record before a sort. EXPLAIN (ANALYZE, BUFFERS) of a page over the
 * rows of feature/plans: order outside the view: 209,824 buffers;
 * order inside the view:  643 buffers.
 */
function selectInOrder(list: List, reading: ListSection): Fragment | Query {
  const { resource, order, hasIds, ownIndexFilter } = list;
  const { columns, bounds, direction, end } = reading;
  const view = nameOrderedView(resource, order, direction);
  const walk = (more: readonly Fragment[]) => selectFilteredRows(list, view, direction, more).select(columns);
  if (hasIds) return end(walk(bounds).orderBy(orderBy(order, direction)));
  if (ownIndexFilter === undefined) return end(walk(bounds));
  const many = readRows(resource.view, [composeCondition(ownIndexFilter, resource)]).select(sql.raw('1 as n'));
  const whereMany = sql.raw('(select n from many) is not null');
  return sql
    .withMaterialized('many', many.offset(fewMax, asLiteral).limit(1, asLiteral))
    .unionAll([end(walk([...bounds, whereMany])), selectFew(list, ownIndexFilter, reading)], true)
    .orderBy(orderBy(order, direction));
}

/** Selects the rows of the filters in the view, for a statement that reads in the direction. */
function selectFilteredRows(list: List, view: string, reading: Direction, conditions: readonly Fragment[]): Query {
  const { resource, filters, unindexed, hasIds, columns } = list;
  const indexed = filters.filter((name) => !unindexed.includes(name));
  return readRows(hasIds ? selectRowsByIds(resource, columns) : view, [
    ...indexed.map((name) => composeCondition(name, resource, farEnd[reading])),
    ...unindexed.map((name) => hideFromIndexes(composeCondition(name, resource))),
    ...conditions,
  ]);
}

/**
 * Puts the condition in a form that no index answers: beside a value that few rows have, PostgreSQL expects one row of every other index,
 * too, and may read thousands of that one. A column of the list's order is left out, as the index of every filter ends with it. With
 * `updatedSince`, so explained: as it is: 381 buffers; hidden: 8 buffers.
 */
const hideFromIndexes = (condition: Fragment): Fragment => sql.raw('coalesce(?, false)', [condition]);

/**
 * Up to this many matches are sorted; beyond it the list is scanned in order. Counting to it costs 0.2 ms; with one row more,
 * a page of 100 in a workspace of 5,000,000 rows walks a tenth of their index entries, by calculation 12 ms.
 */
const fewMax = 1000;

/**
 * Finds the rows of a filter with its own index, if there are few: each branch tests `many`, so PostgreSQL runs exactly one. "order by"
 * its column chooses the index. The keys are sorted and cut first, then each row is found by its whole place in the index: by the id
 * alone PostgreSQL may read the whole workspace for each.
 */
function selectFew({ resource, order, filters }: List, ownIndexFilter: string, reading: ListSection): Fragment | Query {
  const { columns, bounds, direction, end } = reading;
  const others = filters.filter((name) => name !== ownIndexFilter);
  const fewOrder = listOrderFrom(getFilterColumn(resource, ownIndexFilter), resource);
  const view = nameOrderedView(resource, fewOrder, 'asc');
  const few = readRows(view, [composeCondition(ownIndexFilter, resource), sql.raw('(select n from many) is null')])
    .select([...new Set([...fewOrder, ...others.map((name) => getFilterColumn(resource, name))])])
    .orderBy(fewOrder)
    .limit(fewMax, asLiteral);
  const keysOfFew = (selected: readonly string[]) => {
    const matching = readRows(sql.raw('? as few', [few]), [
      ...others.map((name) => composeCondition(name, resource)),
      ...bounds,
    ]);
    return end(matching.select(selected).orderBy(orderBy(order, direction)));
  };
  if (columns.every((each) => order.includes(each))) return keysOfFew(columns);
  const atPlace = sql.raw('(??) >= (??)', [fewOrder, fewOrder.map((column) => `places.${column}`)]);
  const record = readRows(view, [atPlace]).select(columns).orderBy(fewOrder).limit(1, asLiteral);
  const places = readRows(sql.raw('(?) as places', [keysOfFew(fewOrder)]));
  return places.select('record.*').crossJoin(sql.raw('lateral ? as record', [record]));
}

const getFilterColumn = ({ filters }: Resource, name: string): string => (filters[name] as Filter).column;

export function mapBounds(make: (bounds: Bounds) => Statement): Readonly<Record<Bounds, Statement>> {
  return { all: make('all'), after: make('after'), until: make('until'), between: make('between') };
}

/** Finds the row of an id. Names columns, because the view also has the version of a sync pass, which costs a look-up of the parts. */
function selectRowById(resource: Resource, id: Parameter | Fragment, columns = getColumns(resource)): Query {
  const rows = readRows(nameOrderedView(resource, ['id'], 'asc'), [whereValue('id', id, resource.idType)]);
  return rows.select(columns).orderBy('id');
}

/**
 * Finds the rows that a list of ids names, 100 of a client or a chunk of sync, each looked up by itself: with `id = any(…)` a generic plan
 * read the whole workspace, as did a look-up that is not materialized. OFFSET 0 keeps the query apart. For the CASE see `whereValue`. All
 * plain columns are read, because filters compare them, and an index that has all columns of a look-up seems the cheapest in any order. So
 * explained: `id = any(…)`: 281 buffers; looked up: 16 buffers.
 */
function selectRowsByIds(resource: Resource, record: readonly string[]): Fragment {
  const { idType, view } = resource;
  const plain = listLeaves(resource).filter(({ field: { codec, type } }) => codec === undefined && type !== 'json');
  const columns = [...new Set([...record, ...plain.map(({ field }) => field.column)])];
  const idsParameter = new Parameter('ids');
  const none = readRows(view).select('id').limit(0, asLiteral);
  const ids =
    idType === 'text'
      ? sql.raw('case when true then ? else array[?] end', [idsParameter, none])
      : sql.raw(`?::${getType(idType).columnTypes[0] as string}[]`, [idsParameter]);
  const one = sql.withMaterialized('one', selectRowById(resource, sql.raw('named.id'), columns)).from('one');
  const wantedIds = '(select distinct unnest(?) as id) as named cross join lateral ? as found';
  return sql.raw(`(select found.* from ${wantedIds} offset 0) as few`, [ids, one]);
}
