import type { CompiledCut, CompiledResource } from '../definition/compiled.js';
import { filterKind, listedValues, listValuesMax, parseFilter } from '../definition/filter-kinds.js';
import type { Direction } from '../definition/resource.js';
import type { RowSerializer } from '../definition/row-serializer.js';
import type { ListStatements } from '../definition/statements.js';
import { type FieldError, invalid } from '../errors.js';
import { meantBy } from '../nearest-name.js';
import type { TextRow } from '../postgres/row.js';
import { cursorContext, decodeCursor, type PageEnd, type PageSeries } from './page-ends.js';
import { parseQuery } from './query-string.js';

/** A list request whose every part has been checked. */
export interface ListRequest extends PageSeries {
  readonly compiled: CompiledResource;
  readonly statements: ListStatements;
  readonly serializer: RowSerializer;
  /** The members that the client asked for, as given, for links. */
  readonly fields: string | undefined;
  /** The filters as given, for links. */
  readonly filters: Readonly<Record<string, string>>;
  /** The filters as bound; null where the value cannot exist, which matches nothing. */
  readonly values: Readonly<Record<string, string | null>>;
  readonly order: Direction;
  readonly start: { readonly page: number } | { readonly after: PageEnd };
  readonly total: boolean;
  /** Origin and path prefix of links, such as https://example.com/api/v1. */
  readonly baseUrl: string;
  /** Aborts when the client has closed the connection. */
  readonly signal: AbortSignal;
  /** Gets the marks of the replica before and after each statement. */
  readonly onMark?: (mark: TextRow) => void;
}

/** The parts of a list request that need no check, and its query string. */
export type RawListRequest = Pick<ListRequest, 'compiled' | 'caller' | 'baseUrl' | 'signal'> & {
  readonly query: string;
};

export interface ListLimits {
  readonly perPageDefault: number;
  readonly perPageMax: number;
  readonly timeZone: string;
}

const paging = ['page', 'perPage', 'cursor', 'total', 'order', 'fields'];

/** Query string → ListRequest; throws invalid() with every fault. */
export function parseList({ query, ...raw }: RawListRequest, limits: ListLimits): ListRequest {
  const { compiled, caller } = raw;
  const { resource } = compiled;
  const faults: FieldError[] = [];
  const given = parseQuery(query, [...Object.keys(resource.filters), ...paging], faults, (name) => {
    const filter = resource.filters[name];
    return name === 'fields' || (filter !== undefined && filterKind(filter.kind).isList === true);
  });
  const filters: Record<string, string> = {};
  const values: Record<string, string | null> = { timeZone: limits.timeZone };
  for (const [name, filter] of Object.entries(resource.filters)) {
    const value = given.get(name);
    if (value === undefined) continue;
    filters[name] = value;
    values[name] = parseFilter(name, filter, value, faults);
  }
  for (const { lower, upper } of compiled.filterRanges) {
    if (Date.parse(values[lower] ?? '') > Date.parse(values[upper] ?? ''))
      faults.push({ parameter: lower, code: 'range_reversed', detail: `${lower} is after ${upper}.` });
  }
  const page = integer('page', given.get('page'), 1, 999_999_999, faults);
  const perPageDefault = Math.min(limits.perPageDefault, limits.perPageMax);
  const perPage = integer('perPage', given.get('perPage'), perPageDefault, limits.perPageMax, faults);
  const total = boolean('total', given.get('total'), faults);
  const order = direction(given.get('order'), faults);
  const fields = given.get('fields');
  const cut = parseFields(compiled, fields, faults);
  const context = cursorContext(caller.workspace, resource.name, order === 'desc' ? { ...filters, order } : filters);
  const cursor = given.get('cursor');
  if (cursor !== undefined && given.has('page')) {
    faults.push({
      parameter: 'cursor',
      code: 'conflicting_parameters',
      detail: 'page and cursor cannot be given together.',
    });
  }
  const after = cursor === undefined ? undefined : decodeCursor(context, cursor, resource.order);
  if (cursor !== undefined && after === undefined) {
    const detail =
      'The cursor is damaged, or belongs to another list: use it with the filters and the order of the page it came from.';
    faults.push({ parameter: 'cursor', code: 'invalid_cursor', detail });
  }
  if (faults.length > 0) throw invalid(faults);
  return {
    statements: compiled.statements.list(Object.keys(filters), order, cut),
    serializer: (cut ?? compiled).serializer,
    fields,
    filters,
    values,
    context,
    order,
    start: after === undefined ? { page } : { after },
    perPage,
    total,
    ...raw,
  };
}

/** The members of a record that are asked for, those of a pass by the name of their version as well; null: all. */
export function parseFields(
  { cut, resource }: CompiledResource,
  given: string | undefined,
  faults: FieldError[],
): CompiledCut | null {
  if (given === undefined) return null;
  const known = [...Object.keys(resource.fields), ...(resource.versionSeed === undefined ? [] : ['syncVersion'])];
  const asked = new Set(listedValues('fields', given, faults, Math.max(listValuesMax, known.length)));
  for (const name of asked) {
    if (name === '' || known.includes(name)) continue;
    const [topLevel = ''] = name.split(/[./[]/); // "adres.straat"
    const detail = `There is no member ${JSON.stringify(name.slice(0, 100))}${meantBy(topLevel, known)}`;
    faults.push({ parameter: 'fields', code: 'unknown_field', detail });
  }
  return faults.length > 0 ? null : cut(asked);
}

/** For endpoints that take no parameters; throws invalid() naming those given. */
export function refuseParameters(query: string): void {
  const faults: FieldError[] = [];
  parseQuery(query, [], faults);
  if (faults.length > 0) throw invalid(faults);
}

/** The whole number of a parameter, from 1 to `max`; adds a fault for anything else. */
export function integer(
  parameter: string,
  value: string | undefined,
  byDefault: number,
  max: number,
  faults: FieldError[],
): number {
  if (value === undefined) return byDefault;
  const number = /^[1-9]\d{0,11}$/.test(value) ? Number(value) : Number.NaN;
  if (number <= max) return number;
  const code = /^\d+$/.test(value) ? 'out_of_range' : 'invalid_integer';
  faults.push({ parameter, code, detail: `${parameter} must be a whole number from 1 to ${max}.` });
  return byDefault;
}

function direction(value: string | undefined, faults: FieldError[]): Direction {
  if (value === undefined || value === 'asc' || value === 'desc') return value ?? 'asc';
  faults.push({ parameter: 'order', code: 'invalid', detail: 'order must be asc or desc.' });
  return 'asc';
}

function boolean(parameter: string, value: string | undefined, faults: FieldError[]): boolean {
  if (value !== undefined && value !== 'true' && value !== 'false') {
    faults.push({ parameter, code: 'invalid_boolean', detail: `${parameter} must be true or false.` });
  }
  return value === 'true';
}
