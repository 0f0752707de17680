import type { FieldError } from '../errors.js';
import { type FieldType, fieldType, type QueryForm } from './field-types.js';
import type { Filter } from './resource.js';

/** All that follows from the kind of a filter. */
interface FilterKindRow {
  /** Types of the columns it fits. */
  readonly columnTypes: readonly FieldType[];
  /** Type of the value in the query string; absent: that of the column. */
  readonly valueType?: FieldType;
  /** Condition in knex's form: ?? is the column; VALUE and ZONE are the parameters, in this order. */
  readonly sql: string;
  /** Which end of a range it gives: of two filters on one column, the lower must not be above the upper. */
  readonly end?: 'lower' | 'upper';
  /** Whether the value is a day in the gateway's time zone. */
  readonly takesDays?: true;
}

/** The table of filter kinds: SQL, `check`, parsing and JSON Schema derive from it. Days are made instants by PostgreSQL. */
export const filterKinds = {
  equals: { columnTypes: ['uuid', 'bigint', 'text', 'integer', 'boolean', 'date', 'timestamp'], sql: '?? = VALUE' },
  dateFrom: { columnTypes: ['date'], sql: '?? >= VALUE::date', end: 'lower' },
  dateTo: { columnTypes: ['date'], sql: '?? <= VALUE::date', end: 'upper' },
  dayFrom: {
    columnTypes: ['timestamp'],
    valueType: 'date',
    sql: '?? >= VALUE::date::timestamp at time zone ZONE',
    end: 'lower',
    takesDays: true,
  },
  dayTo: {
    columnTypes: ['timestamp'],
    valueType: 'date',
    sql: '?? < (VALUE::date + 1)::timestamp at time zone ZONE',
    end: 'upper',
    takesDays: true,
  },
  instantFrom: { columnTypes: ['timestamp'], sql: '?? >= VALUE::timestamptz', end: 'lower' },
  instantTo: { columnTypes: ['timestamp'], sql: '?? <= VALUE::timestamptz', end: 'upper' },
} as const satisfies Readonly<Record<string, FilterKindRow>>;

/** How a query parameter restricts the rows. */
export type FilterKind = keyof typeof filterKinds;

/** Names that no filter and no written field can have: parameters of every list, and of the statements themselves. */
export const parameterNames: readonly RegExp[] = [
  /^(page|perPage|cursor|total|order|ids)$/,
  /^(workspace|id|timeZone|limit|skip|(after|until)[0-9]+)$/,
];

/** The row of a kind, with every property it may have. */
export function filterKind(kind: FilterKind): FilterKindRow {
  return filterKinds[kind];
}

/** The condition of a filter in knex's form, and the bindings of its placeholders: the column, then names of parameters. */
export function filterCondition(name: string, { column, kind, type }: Filter): { sql: string; bindings: string[] } {
  const { sql } = filterKind(kind);
  const value = kind === 'equals' ? fieldType(type).parameter : '?';
  const bindings = [column, name, ...(sql.includes('ZONE') ? ['timeZone'] : [])];
  return { sql: sql.replace('VALUE', value).replace('ZONE', '?'), bindings };
}

/** Values that the parameter of a filter takes. */
export function filterForm({ kind, type }: Filter): QueryForm {
  return fieldType(filterKind(kind).valueType ?? type).query as QueryForm;
}

/** The value as it is bound; null, which matches nothing, when no record can have it. Adds a fault when it is malformed. */
export function parseFilter(name: string, filter: Filter, text: string, faults: FieldError[]): string | null {
  const { isValue, error } = filterForm(filter);
  if (isValue(text)) return text;
  if (error !== undefined) faults.push({ parameter: name, code: error.code, detail: `${name} must be ${error.form}.` });
  return null;
}

/** Names of two filters that are the ends of a range of one column and take the same form of value. */
export interface FilterRange {
  readonly lower: string;
  readonly upper: string;
}

export function filterRanges(filters: Readonly<Record<string, Filter>>): FilterRange[] {
  const entries = Object.entries(filters);
  const ends = (end: 'lower' | 'upper') => entries.filter(([, { kind }]) => filterKind(kind).end === end);
  return ends('lower').flatMap(([lower, low]) =>
    ends('upper')
      .filter(([, high]) => high.column === low.column && filterForm(high) === filterForm(low))
      .map(([upper]) => ({ lower, upper })),
  );
}
