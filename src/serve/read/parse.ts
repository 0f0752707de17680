import { type FieldError, type FieldErrorCode, makeInvalid } from '../../base/errors.js';
import { suggest } from '../../base/nearest-name.js';
import type { Caller } from '../../postgres/statement.js';
import type { CompiledRows, CompiledSelection } from '../../resource/compiled.js';
import { getKind, listValuesMax, parseFilter, splitValues } from '../../resource/definition/filter-kinds.js';
import type { Direction } from '../../resource/definition/resource.js';
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
  const faults: FieldError[] = [];
  const { single, lists } = parseQuery(query, [...Object.keys(resource.filters), ...paging], faults, (name) => {
    const filter = resource.filters[name];
    return name === 'fields' || (filter !== undefined && getKind(filter.kind).isList === true);
  });
  const { filters, values } = parseFilters(compiled, { single, lists }, limits, faults);
  const page = parseInteger('page', single, 1, 999_999_999, faults);
  const perPage = parseSize(single, limits, faults);
  const wantsTotal = parseChoice(single, 'total', ['true', 'false'], 'false', faults) === 'true';
  const order = parseChoice(single, 'order', ['asc', 'desc'], 'asc', faults);
  const fields = lists.get('fields');
  const selection = parseFields(compiled, fields, faults);
  const context = makeCursorContext(
    caller.workspace,
    resource.name,
    order === 'desc' ? { ...filters, order } : filters,
  );
  const cursor = single.get('cursor');
  if (cursor !== undefined && single.has('page')) {
    const detail = 'page and cursor cannot be given together.';
    faults.push({ parameter: 'cursor', code: 'conflicting_parameters', detail });
  }
  const after = cursor === undefined ? undefined : decodeCursor(context, cursor, resource.order);
  if (cursor !== undefined && after === undefined) {
    const detail =
      'The cursor is damaged, or belongs to another list: use it with the filters and the order of the page it came from.';
    faults.push({ parameter: 'cursor', code: 'invalid_cursor', detail });
  }
  if (faults.length > 0) throw makeInvalid(faults);
  return {
    statements: compiled.statements.list(Object.keys(filters), order, selection),
    serializer: (selection ?? compiled).serializer,
    fields,
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

type ParsedQuery = ReturnType<typeof parseQuery>;

/** Returns filters as the client gave them, and the values to bind. */
export function parseFilters(
  { resource, filterRanges }: CompiledRows,
  { single, lists }: ParsedQuery,
  { timeZone }: Pick<ListLimits, 'timeZone'>,
  faults: FieldError[],
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
  texts: readonly string[] | undefined,
  faults: FieldError[],
): CompiledSelection | null {
  if (texts === undefined) return null;
  const knownFields = [...Object.keys(resource.fields), ...(resource.versionSeed === undefined ? [] : ['syncVersion'])];
  const names = texts.flatMap((value) => value.split(',')); // no name has a comma
  const asked = new Set(splitValues('fields', names, faults, Math.max(listValuesMax, knownFields.length)));
  for (const name of asked) {
    if (name === '' || knownFields.includes(name)) continue;
    const [topLevel = ''] = name.split(/[./[]/); // "adres.straat"
    const detail = `There is no member ${JSON.stringify(name.slice(0, 100))}${suggest(topLevel, knownFields)}`;
    faults.push({ parameter: 'fields', code: 'unknown_field', detail });
  }
  return faults.length > 0 ? null : select(asked);
}

/** Reads the parameter of a write. Throws invalid_request naming the parameters. */
export function parseDryRun(query: string, known: readonly string[] = ['dryRun']): boolean {
  const faults: FieldError[] = [];
  const value = parseQuery(query, known, faults).single.get('dryRun');
  if (value !== undefined && value !== 'true')
    faults.push({ parameter: 'dryRun', code: 'invalid', detail: 'dryRun must be true, or left out.' });
  if (faults.length > 0) throw makeInvalid(faults);
  return value !== undefined;
}

/** Throws invalid_request naming each parameter, of a request that takes none. */
export function refuseParameters(query: string): void {
  parseDryRun(query, []);
}

type SingleParameters = ReadonlyMap<string, string>;

export function parseSize(single: SingleParameters, limits: ListLimits, faults: FieldError[]): number {
  const { perPageDefault, perPageMax } = limits;
  return parseInteger('perPage', single, Math.min(perPageDefault, perPageMax), perPageMax, faults);
}

/** Accepts 1 to `max`; adds a fault for anything else. */
function parseInteger(
  parameter: string,
  single: SingleParameters,
  byDefault: number,
  max: number,
  faults: FieldError[],
): number {
  const value = single.get(parameter);
  if (value === undefined) return byDefault;
  const number = /^[1-9]\d{0,11}$/.test(value) ? Number(value) : Number.NaN;
  if (number <= max) return number;
  const code = /^(0|[1-9]\d*)$/.test(value) ? 'out_of_range' : 'invalid_integer';
  faults.push({ parameter, code, detail: `${parameter} must be a whole number from 1 to ${max}.` });
  return byDefault;
}

function parseChoice<T extends string>(
  single: SingleParameters,
  parameter: string,
  values: readonly [T, T],
  byDefault: T,
  faults: FieldError[],
): T {
  const value = single.get(parameter) ?? byDefault;
  const chosen = values.find((each) => each === value);
  const code = values.includes('true' as T) ? 'invalid_boolean' : 'invalid';
  if (chosen === undefined) faults.push({ parameter, code, detail: `${parameter} must be ${values.join(' or ')}.` });
  return chosen ?? byDefault;
}

/** Separates the values of a list at commas; an encoded comma belongs to a value. "+" is a space (URL Standard §5.1). */
export function parseQuery(
  query: string,
  known: readonly string[],
  faults: FieldError[],
  isList: (name: string) => boolean = () => false,
): { single: SingleParameters; lists: ReadonlyMap<string, readonly string[]> } {
  const single = new Map<string, string>();
  const lists = new Map<string, readonly string[]>();
  if (query === '') return { single, lists };
  const seen = new Set<string>();
  for (const pair of query.split('&')) {
    if (pair === '') continue;
    const at = pair.indexOf('=');
    const name = decode(at < 0 ? pair : pair.slice(0, at));
    const raw = at < 0 ? '' : pair.slice(at + 1);
    const value = decode(raw);
    const parameter = (name ?? pair).slice(0, 100);
    const fault = (code: FieldErrorCode, detail: string): number => faults.push({ parameter, code, detail });
    if (name === undefined || !known.includes(name)) {
      const meant = faults.length < meantMax ? suggest(nameFiltered(parameter), known, synonyms) : '.';
      const end = parameter === 'fields' ? fieldsElsewhere : meant;
      fault('unknown_parameter', `There is no parameter ${JSON.stringify(parameter)} here${end}`);
    } else if (seen.has(name) && !isList(name))
      fault('repeated_parameter', `The parameter ${name} is given more than once.`);
    else if (value === undefined) fault('invalid_encoding', `The value of ${name} is not valid percent-encoded UTF-8.`);
    else if (value === '') fault('empty_value', `The parameter ${name} has no value.`);
    else if (isList(name))
      lists.set(name, [...(lists.get(name) ?? []), ...raw.split(',').map((each) => decode(each) as string)]);
    else single.set(name, value);
    if (name !== undefined) seen.add(name);
  }
  return { single, lists };
}

const fieldsElsewhere =
  ', but on lists and sync passes: a detail is the whole record, because its ETag is of the whole record.';

/** Bound of suggestions: a query string has room for thousands of unknown parameters. */
const meantMax = 20;

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
function nameFiltered(name: string): string {
  return name.replace(/^filter\[(.*)\]$/s, '$1').replace(/^fields\[.*\]$/s, 'fields');
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
}
