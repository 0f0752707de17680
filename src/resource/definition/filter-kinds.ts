import type { FieldError } from '../../base/errors.js';
import { type FieldType, getType, idTypes, type QueryForm } from './field-types.js';

interface FilterKindRow {
  readonly columnTypes: readonly FieldType[];
  /** Form of the value in a query string; absent: the column's type decides. */
  readonly form?: QueryForm;
  /** The condition is `column operator value`; `value` returns SQL of `:given`, or of the same cast to the column's type. */
  readonly operator: '=' | '>=' | '<';
  readonly value: (given: string, typed: string, type: FieldType) => string;
  readonly isList?: true;
  /** End of a range: of two filters on one column, the lower end must not be above the upper end. */
  readonly end?: 'lower' | 'upper';
  /** The value can be a day, of a timestamp in the gateway's time zone. */
  readonly takesDays?: true;
}

const getQueryForm = (type: FieldType): QueryForm => getType(type).query as QueryForm;

/** PostgreSQL tells a date from an instant by the length of a date. */
const dateOrInstant: QueryForm = {
  schema: { type: 'string', anyOf: [getQueryForm('date').schema, getQueryForm('timestamp').schema] },
  isValue: (text) => getQueryForm('date').isValue(text) || getQueryForm('timestamp').isValue(text),
  error: {
    code: 'invalid_instant',
    form: `${getQueryForm('date').error?.form}, or ${getQueryForm('timestamp').error?.form}`,
  },
};

/** Compares a date with a column of the type: with a timestamp as the first moment of the day. */
const findPeriodStart = (date: string, type: FieldType): string =>
  type === 'date' ? date : findFirstMoment(`${date}::timestamp`);

/**
 * Finds the first of a midnight that comes twice, because PostgreSQL takes the second, in standard time. The first is where the clock of
 * the day before shows it, unless the clock went back before it was reached. No subquery is used, so that PostgreSQL still prunes
 * partitions before it runs.
 */
function findFirstMoment(midnight: string): string {
  const usual = `(${midnight} at time zone :timeZone)`;
  const clockOfDayBefore = `((${usual} - interval '24 hours') at time zone :timeZone + interval '24 hours')`;
  const sooner = `(${usual} - (${clockOfDayBefore} - ${midnight}))`;
  return `case when ${sooner} < ${usual} and ${sooner} at time zone :timeZone >= ${midnight} then ${sooner} else ${usual} end`;
}

export const listValuesMax = 100;

/** Table of the kinds, from which SQL, `check`, parsing and JSON Schema derive. PostgreSQL makes days into instants. */
export const filterKinds = {
  equals: {
    columnTypes: ['uuid', 'bigint', 'text', 'enum', 'integer', 'boolean', 'date', 'timestamp'],
    operator: '=',
    value: (_, typed) => typed,
  },
  /** Belongs to every list and to no definition: a list of ids is no condition, see statements.ts. */
  ids: { columnTypes: idTypes, operator: '=', value: (list) => `any(${list})`, isList: true },
  from: {
    columnTypes: ['date', 'timestamp'],
    form: getQueryForm('date'),
    operator: '>=',
    value: (day, _, type) => findPeriodStart(`${day}::date`, type),
    end: 'lower',
    takesDays: true,
  },
  to: {
    columnTypes: ['date', 'timestamp'],
    form: getQueryForm('date'),
    operator: '<',
    value: (day, _, type) => findPeriodStart(`(${day}::date + 1)`, type),
    end: 'upper',
    takesDays: true,
  },
  since: {
    columnTypes: ['timestamp'],
    form: dateOrInstant,
    operator: '>=',
    value: (at, _, type) =>
      `case when length(${at}::text) = 10 then ${findPeriodStart(`${at}::date`, type)} else ${at}::timestamptz end`,
    takesDays: true,
  },
} as const satisfies Readonly<Record<string, FilterKindRow>>;

export type FilterKind = keyof typeof filterKinds;

/** Names that no filter and no written field can have: parameters of every list, and of the statements themselves. */
export const parameterNames: readonly RegExp[] = [
  /^(page|perPage|cursor|total|order|fields|ids)$/,
  /^(workspace|id|timeZone|limit|skip|(after|until)[0-9]+)$/,
];

/** Parameters of the paths of sync; a `period` is filters and these. No filter of a resource with sync has such a name. */
export const syncParameters: Readonly<Record<'feed' | 'ids' | 'digest' | 'period', readonly string[]>> = {
  feed: ['perPage', 'since', 'cursor', 'prefix', 'fields'],
  ids: ['prefix', 'since'],
  digest: ['depth', 'since'],
  period: ['by'],
};

export const isParameter = (filter: string, hasSync: boolean): boolean =>
  parameterNames.some((reserved) => reserved.test(filter)) ||
  (hasSync && Object.values(syncParameters).flat().includes(filter));

export interface Filter {
  readonly column: string;
  readonly kind: FilterKind;
  readonly type: FieldType;
  readonly description: string;
  readonly ownIndex?: boolean;
  readonly nearlyUnique?: boolean;
}

export function getKind(kind: FilterKind): FilterKindRow {
  return filterKinds[kind];
}

export function getFilterForm({ kind, type }: Filter): QueryForm {
  const { form, isList } = getKind(kind);
  const each = form ?? getQueryForm(type);
  return isList ? { ...each, schema: { type: 'array', items: each.schema, maxItems: listValuesMax } } : each;
}

/** A list keeps its values separate, because one can contain a comma. */
export type ParameterText = string | readonly string[];

/** Returns the value to bind; null, which matches nothing, when no record can have it. Adds a fault when it is malformed. */
export function parseFilter(name: string, filter: Filter, text: ParameterText, faults: FieldError[]): string | null {
  const { isValue, error } = getFilterForm(filter);
  if (typeof text !== 'string') {
    const values = filter.type === 'text' ? text : text.flatMap((value) => value.split(',')); // only a text can contain a comma
    return formatArray(checkListValues(name, values, faults).filter(isValue));
  }
  if (isValue(text)) return text;
  if (error !== undefined) faults.push({ parameter: name, code: error.code, detail: `${name} must be ${error.form}.` });
  return null;
}

/** Checks the values of a list. Adds a fault for an empty value, and for too many values, of which it returns none. */
export function checkListValues(name: string, values: readonly string[], faults: FieldError[], max = listValuesMax) {
  if (values.includes('')) {
    const detail = `${name} has an empty element: separate its values by single commas.`;
    faults.push({ parameter: name, code: 'empty_value', detail });
  }
  if (values.length > max) {
    const detail = `${name} has ${values.length} values, and at most ${max} are allowed.`;
    faults.push({ parameter: name, code: 'out_of_range', detail });
    return [];
  }
  return values;
}

/** Formats an array in PostgreSQL's text form (PostgreSQL documentation §8.15.2). */
export function formatArray(values: readonly string[]): string {
  const quoted = values.map((value) => `"${value.replace(/["\\]/g, '\\$&')}"`);
  return `{${quoted.join(',')}}`;
}

export function listFilterRanges(filters: Readonly<Record<string, Filter>>): { lower: string; upper: string }[] {
  const entries = Object.entries(filters);
  const withEnd = (end: 'lower' | 'upper') => entries.filter(([, { kind }]) => getKind(kind).end === end);
  return withEnd('lower').flatMap(([lower, { column }]) =>
    withEnd('upper').flatMap(([upper, high]) => (high.column === column ? [{ lower, upper }] : [])),
  );
}
