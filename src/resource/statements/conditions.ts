import { type FieldType, getType } from '../definition/field-types.js';
import { type Filter, getKind } from '../definition/filter-kinds.js';
import type { Direction, OrderColumn } from '../definition/resource.js';
import { type Fragment, Parameter, sql } from './knex.js';

/** Casts a value for a column of the type: no number is out of range. */
export function castTo(type: FieldType, value: string): string {
  const { comparedAs } = getType(type);
  return comparedAs === undefined ? value : `${value}::${comparedAs}`;
}

/**
 * The column has the value, for a statement whose order begins with the column. After an equality alone PostgreSQL ignores the order and
 * may scan the workspace; after a list of one value only an index of the column needs no sort. Before version 17 the bounds make that index
 * read one value. A text is compared as the type of its column, because character(n) ends in spaces.
 */
export function whereValue(column: string, value: Parameter | Fragment, type: FieldType): Fragment {
  const { comparedAs, columnTypes } = getType(type);
  const each = castTo(type, ':value');
  const ofColumn = `array[case when true then ${each} else :column: end]`;
  const list = type === 'text' ? ofColumn : `array[${each}]::${comparedAs ?? (columnTypes[0] as string)}[]`;
  return sql.raw(`:column: = any(${list}) and :column: >= ${each} and :column: <= ${each}`, { column, value });
}

/** Bounds a range at its `farEnd` by a row comparison, as `composeComparison` says; the second column is the same on both sides. */
export function composeCondition(
  name: string,
  { filters }: { readonly filters: Readonly<Record<string, Filter>> },
  farEnd: 'lower' | 'upper' | null = null,
): Fragment {
  const { column, kind, type, nearlyUnique } = filters[name] as Filter;
  const { operator, value: composeValue, end } = getKind(kind);
  const parameter = new Parameter(name);
  if (nearlyUnique) return whereValue(column, parameter, type);
  const value = composeValue(':given', castTo(type, ':given'), type);
  const isRow = end !== undefined && end === farEnd;
  const condition = isRow ? `(:column:, true) ${operator} (${value}, true)` : `:column: ${operator} ${value}`;
  return sql.raw(condition, { column, given: parameter, timeZone: new Parameter('timeZone') });
}

/** A chunk has no bound, begins after a key, ends at a key, or both. */
export type Bounds = 'all' | 'after' | 'until' | 'between';

/** Operators of an order: a list continues after a key by the first, and ends at a key by the second. */
export const operators = { asc: ['>', '<='], desc: ['<', '>='] } as const;

export function listKeyColumns(order: Order): string[] {
  return order.map(({ column }) => column);
}

type OperatorPair = (typeof operators)[Direction];
type Operator = OperatorPair[number];
type Order = readonly OrderColumn[];

/** Makes the conditions of a chunk's bounds: it begins after a key by one operator, and ends at a key by the other. */
export function composeKeyBounds(
  order: Order,
  bounds: Bounds,
  [onward, back]: OperatorPair = operators.asc,
  atEnd = composeBeyond,
) {
  return [
    ...(bounds === 'after' || bounds === 'between' ? [composeBeyond(order, onward, 'after')] : []),
    ...(bounds === 'until' || bounds === 'between' ? [atEnd(order, back, 'until')] : []),
  ];
}

/**
 * Compares the key of a row with the parameters after0, after1, … or until0, until1, …. The first column by itself is compared only where a
 * statement begins to read: between two bounds of a column a generic plan expects no row of an average workspace, so all indexes look
 * alike.
 */
export function composeComparison(order: Order, operator: Operator, end: 'after' | 'until'): Fragment {
  const values = order.map(({ type }) => castTo(type, '?')).join(', ');
  return sql.raw(`(??) ${operator} (${values})`, [
    listKeyColumns(order),
    ...order.map((_, i) => new Parameter(`${end}${i}`)),
  ]);
}

/**
 * The same for the end where reading begins. The first column by itself repeats it, because PostgreSQL prunes partitions by that alone.
 * A later page of the log, so explained:
 * without it: 32 buffers;
 * with it:    25 buffers.
 */
export function composeBeyond(order: Order, operator: Operator, end: 'after' | 'until'): Fragment {
  const { column, type } = order[0] as OrderColumn;
  const first = `?? ${operator.charAt(0)}= ${castTo(type, '?')}`;
  return sql.raw(`${first} and ?`, [column, new Parameter(`${end}0`), composeComparison(order, operator, end)]);
}
