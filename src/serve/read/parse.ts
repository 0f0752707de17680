import { type FieldError, type FieldErrorCode, makeInvalid } from '../../base/errors.js';
import { suggest } from '../../base/nearest-name.js';
import type { Caller } from '../../postgres/statement.js';
import type { CompiledRows, CompiledSelection } from '../../resource/compiled.js';
import { checkListValues, getKind, listValuesMax, parseFilter } from '../../resource/definition/filter-kinds.js';
import type { Direction, OrderColumn } from '../../resource/definition/resource.js';
import type { RowSerializer } from '../../resource/serializer/row-serializer.js';
import type { ListStatements } from '../../resource/statements/statements.js';
import { decodeCursor, makeCursorContext, type PageEnd } from './cursor.js';
import type { PageSeries } from './page-memory.js';

export interface RawRequest {
  readonly compiled: CompiledRows;
  readonly caller: Caller;
  readonly query: string;
  /** An address such as https://example.com/api/v1. */
  readonly baseUrl: string;
  /** Aborts when the client has closed the connection. */
  readonly signal: AbortSignal;
}

/** The part of a request that the statements of a list and of a sync pass share. */
export interface ReadRequest extends Pick<RawRequest, 'compiled' | 'caller' | 'signal'> {
  readonly statements: ListStatements;
  readonly serializer: RowSerializer;
  /** Values to bind; null matches nothing. */
  readonly values: Readonly<Record<string, string | null>>;
  readonly perPage: number;
}

export interface ListRequest extends ReadRequest, PageSeries, Pick<RawRequest, 'baseUrl'> {
  /** Fields and filters as the client gave them, for links. */
  readonly fields: readonly string[] | undefined;
  readonly filters: Parameters;
  readonly order: Direction;
  readonly start: { readonly page: number } | { readonly after: PageEnd };
  readonly wantsTotal: boolean;
}

export type Parameters = Readonly<Record<string, string | readonly string[]>>;

export interface ListLimits {
  readonly perPageDefault: number;
  readonly perPageMax: number;
  readonly timeZone: string;
}

const paging = ['page', 'perPage', 'cursor', 'total', 'order', 'fields'];

/** Throws invalid_request with every fault. */
export function parseList({ query, ...raw }: RawRequest, limits: ListLimits): ListRequest {
  const { compiled, caller } = raw;
  const { resource } = compiled;
  const parsed = parseQuery(query, [...Object.keys(resource.filters), ...paging], (name) => {
    const filter = resource.filters[name];
    return name === 'fields' || (filter !== undefined && getKind(filter.kind).isList === true);
  });
  const { filters, values } = parseFilters(compiled, parsed, limits.timeZone);
  const page = parseInteger(parsed, 'page', 1, 999_999_999);
  const perPage = parseSize(parsed, limits);
  const wantsTotal = parseChoice(parsed, 'total', ['true', 'false'], 'false', 'invalid_boolean') === 'true';
  const order = parseChoice(parsed, 'order', ['asc', 'desc'], 'asc');
  const selection = parseFields(compiled, parsed);
  const identity = order === 'desc' ? { ...filters, order } : filters;
  const context = makeCursorContext(caller.workspace, resource.name, identity);
  const after = parseCursor(parsed, context, resource.order);
  if (parsed.faults.length > 0) throw makeInvalid(parsed.faults);
  return {
    statements: compiled.statements.list(Object.keys(filters), order, selection),
    serializer: (selection ?? compiled).serializer,
    fields: parsed.lists.get('fields'),
    filters,
    values,
    context,
    order,
    start: after === undefined ? { page } : { after },
    perPage,
    wantsTotal,
    ...raw,
  };
}

/** The parameters that a client sent. Whatever reads them adds what it refuses to `faults`, so that a 400 names every fault. */
export interface ParsedQuery {
  readonly single: ReadonlyMap<string, string>;
  readonly lists: ReadonlyMap<string, readonly string[]>;
  readonly faults: FieldError[];
}

/** Returns undefined without a cursor. */
function parseCursor(
  { single, faults }: ParsedQuery,
  context: string,
  order: readonly OrderColumn[],
): PageEnd | undefined {
  const cursor = single.get('cursor');
  if (cursor === undefined) return undefined;
  const refuse = (code: FieldErrorCode, detail: string) => faults.push({ parameter: 'cursor', code, detail });
  if (single.has('page')) refuse('conflicting_parameters', 'page and cursor cannot be given together.');
  const end = decodeCursor(context, cursor, order);
  const origin = 'use it with the filters and the order of the page it came from';
  if (end === undefined) refuse('invalid_cursor', `The cursor is damaged, or belongs to another list: ${origin}.`);
  return end;
}

/** Returns filters as the client gave them, and the values to bind. */
export function parseFilters(
  { resource, filterRanges }: CompiledRows,
  { single, lists, faults }: ParsedQuery,
  timeZone: string,
) {
  const filters: Record<string, Parameters[string]> = {};
  const values: Record<string, string | null> = { timeZone };
  for (const [name, filter] of Object.entries(resource.filters)) {
    const value = lists.get(name) ?? single.get(name);
    if (value === undefined) continue;
    filters[name] = value;
    values[name] = parseFilter(name, filter, value, faults);
  }
  for (const { lower, upper } of filterRanges) {
    if (Date.parse(values[lower] ?? '') > Date.parse(values[upper] ?? ''))
      faults.push({ parameter: lower, code: 'range_reversed', detail: `${lower} is after ${upper}.` });
  }
  return { filters, values };
}

/** Returns the fields that the client asks for; a sync pass can also name its version. Null: all. */
export function parseFields(
  { select, resource }: CompiledRows,
  { lists, faults }: ParsedQuery,
): CompiledSelection | null {
  const texts = lists.get('fields');
  if (texts === undefined) return null;
  const knownFields = [...Object.keys(resource.fields), ...(resource.versionSeed === undefined ? [] : ['syncVersion'])];
  const names = texts.flatMap((value) => value.split(',')); // no name has a comma
  const asked = new Set(checkListValues('fields', names, faults, Math.max(listValuesMax, knownFields.length)));
  for (const name of asked) {
    if (name === '' || knownFields.includes(name)) continue;
    const [topLevel = ''] = name.split(/[./[]/); // "adres.straat"
    const detail = `There is no member ${JSON.stringify(name.slice(0, 100))}${suggest(topLevel, knownFields)}`;
    faults.push({ parameter: 'fields', code: 'unknown_field', detail });
  }
  return faults.length > 0 ? null : select(asked);
}

/** Reads the parameter of a write. Throws invalid_request naming the parameters. */
export function parseDryRun(query: string): boolean {
  const { single, faults } = parseQuery(query, ['dryRun']);
  const value = single.get('dryRun');
  if (value !== undefined && value !== 'true')
    faults.push({ parameter: 'dryRun', code: 'invalid', detail: 'dryRun must be true, or left out.' });
  if (faults.length > 0) throw makeInvalid(faults);
  return value !== undefined;
}

/** Throws invalid_request naming each parameter, of a request that takes none. */
export function refuseParameters(query: string, endpoint: 'detail' | 'other' = 'other'): void {
  const { faults } = parseQuery(query, [], undefined, endpoint);
  if (faults.length > 0) throw makeInvalid(faults);
}

export function parseSize(parsed: ParsedQuery, { perPageDefault, perPageMax }: ListLimits): number {
  return parseInteger(parsed, 'perPage', Math.min(perPageDefault, perPageMax), perPageMax);
}

/** Accepts 1 to `max`. */
function parseInteger({ single, faults }: ParsedQuery, parameter: string, byDefault: number, max: number): number {
  const value = single.get(parameter);
  if (value === undefined) return byDefault;
  const number = /^[1-9]\d{0,11}$/.test(value) ? Number(value) : Number.NaN;
  if (number <= max) return number;
  const code = /^(0|[1-9]\d*)$/.test(value) ? 'out_of_range' : 'invalid_integer';
  faults.push({ parameter, code, detail: `${parameter} must be a whole number from 1 to ${max}.` });
  return byDefault;
}

function parseChoice<T extends string>(
  { single, faults }: ParsedQuery,
  parameter: string,
  values: readonly [T, T],
  byDefault: T,
  code: FieldErrorCode = 'invalid',
): T {
  const value = single.get(parameter) ?? byDefault;
  const chosen = values.find((each) => each === value);
  if (chosen === undefined) faults.push({ parameter, code, detail: `${parameter} must be ${values.join(' or ')}.` });
  return chosen ?? byDefault;
}

/** Separates the values of a list at commas; an encoded comma belongs to a value. "+" is a space (URL Standard §5.1). */
export function parseQuery(
  query: string,
  known: readonly string[],
  isList: (name: string) => boolean = () => false,
  endpoint: 'detail' | 'other' = 'other',
): ParsedQuery {
  const single = new Map<string, string>();
  const lists = new Map<string, readonly string[]>();
  const faults: FieldError[] = [];
  const seen = new Set<string>();
  for (const pair of query.split('&').filter((text) => text !== '')) {
    const [encodedName = '', ...afterName] = pair.split('=');
    const raw = afterName.join('=');
    const name = decode(encodedName);
    if (name === undefined || !known.includes(name)) {
      const parameter = (name ?? pair).slice(0, 100);
      const isOfList = endpoint === 'detail' && parameter === 'fields';
      const suggestion = faults.length < suggestionsMax ? suggest(simplifyName(parameter), known, synonyms) : '.';
      const detail = `There is no parameter ${JSON.stringify(parameter)} here${isOfList ? fieldsElsewhere : suggestion}`;
      faults.push({ parameter, code: 'unknown_parameter', detail });
      continue;
    }
    const value = decode(raw);
    const fault = findValueFault(name, value, seen.has(name) && !isList(name));
    if (fault !== null) faults.push(fault);
    else if (isList(name))
      lists.set(name, [...(lists.get(name) ?? []), ...raw.split(',').map((text) => decode(text) as string)]);
    else single.set(name, value as string);
    seen.add(name);
  }
  return { single, lists, faults };
}

function findValueFault(parameter: string, value: string | undefined, isRepeated: boolean): FieldError | null {
  const describe = (code: FieldErrorCode, detail: string): FieldError => ({ parameter, code, detail });
  if (isRepeated) return describe('repeated_parameter', `The parameter ${parameter} is given more than once.`);
  if (value === undefined)
    return describe('invalid_encoding', `The value of ${parameter} is not valid percent-encoded UTF-8.`);
  return value === '' ? describe('empty_value', `The parameter ${parameter} has no value.`) : null;
}

const fieldsElsewhere =
  ', but on lists and sync passes: a detail is the whole record, because its ETag is of the whole record.';

/** A query string has room for thousands of unknown parameters, and a suggestion compares a name with each known one. */
const suggestionsMax = 20;

/** Parameters of other APIs, in small letters and digits alone, and the parameters of lists that do the same. */
const synonyms: ReadonlyMap<string, string> = new Map(
  Object.entries({
    perPage: 'limit top first take size pagesize maxresults count',
    page: 'offset skip pagenumber pageindex',
    cursor: 'after startingafter pagetoken skiptoken continuationtoken',
    order: 'sort sortby sortorder orderby direction',
    fields: 'columns properties select',
    ids: 'id',
    total: 'includetotal totalcount withtotal',
    updatedSince: 'since modifiedsince updatedafter changedsince',
    from: 'start startdate datefrom',
    to: 'end enddate until dateto',
    dryRun: 'validateonly simulate preview',
  }).flatMap(([name, others]) => others.split(' ').map((other) => [other, name] as const)),
);

/** Turns JSON:API's "filter[status]" and "fields[klanten]" into "status" and "fields". */
function simplifyName(name: string): string {
  return name.replace(/^filter\[(.*)\]$/s, '$1').replace(/^fields\[.*\]$/s, 'fields');
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
}
