import { type FieldError, makeInvalid } from '../../base/errors.js';
import type { CompiledSelection } from '../../resource/compiled.js';
import { syncParameters } from '../../resource/definition/filter-kinds.js';
import type { Section, SyncStatements } from '../../resource/statements/sync-statements.js';
import { makeCursorContext } from '../read/cursor.js';
import {
  type ListLimits,
  type ParsedQuery,
  parseFields,
  parseFilters,
  parseQuery,
  parseSize,
  type RawRequest,
  type ReadRequest,
} from '../read/parse.js';
import { decodePlace, decodeToken, type SyncPlace, type SyncPosition } from './pass.js';
import type { TokenSeal } from './token-seal.js';

export interface SyncCall extends RawRequest {
  readonly sync: SyncStatements;
  readonly seal: TokenSeal;
}

export interface FeedRequest extends SyncCall, ReadRequest {
  readonly since: SyncPosition | null;
  /** Null at the beginning of a pass. */
  readonly place: SyncPlace | null;
  /** Prefix as the client gave it, for links; null: all rows. */
  readonly prefix: string | null;
  /** Fields as the client gave them, for links; `selection` is null for whole records. */
  readonly fields: readonly string[] | undefined;
  readonly selection: CompiledSelection | null;
  /** Contexts that bind tokens and cursors to the request. */
  readonly contexts: { readonly token: string; readonly cursor: string };
}

export interface HashRequest extends SyncCall, ReadRequest {
  readonly since: SyncPosition | null;
  readonly prefixes: readonly string[];
}

export interface DigestRequest extends HashRequest {
  readonly depth: number;
  /** Null for all records. */
  readonly periods: readonly Period[] | null;
}

/** A span of days, both included; a row of a digest shows its days only when it is one of several months. */
export interface Period {
  readonly from: string;
  readonly to: string;
  readonly isMonth: boolean;
}

const depthMax = 4;
const prefixesMax = 100;
const prefixForm = /^[0-9a-f]{1,64}(,[0-9a-f]{1,64})*$/;

/** Throws invalid_request with every fault. */
export function parseFeed(call: SyncCall, limits: ListLimits): FeedRequest {
  const parsed = parseQuery(call.query, syncParameters.feed, (name) => name === 'fields');
  const { single, lists, faults } = parsed;
  const perPage = parseSize(parsed, limits);
  const selection = parseFields(call.compiled, parsed);
  const prefix = single.get('prefix') ?? null;
  listPrefixes(prefix, faults);
  const contexts = makeContexts(call, prefix);
  const since = parseSince(call, parsed, contexts.token);
  const cursor = single.get('cursor');
  if (cursor !== undefined && single.has('since')) {
    const detail = 'since and cursor cannot be given together: the cursor continues the pass that since began.';
    faults.push({ parameter: 'cursor', code: 'conflicting_parameters', detail });
  }
  const start =
    cursor === undefined
      ? null
      : decodePlace(call.seal, contexts.cursor, cursor, (isChanges) => listOrders(call, prefix, isChanges));
  if (start === undefined) {
    const detail =
      'The cursor is damaged, or belongs to another pass: use it with the resource and the prefix of the page it came from.';
    faults.push({ parameter: 'cursor', code: 'invalid_cursor', detail });
  }
  if (faults.length > 0) throw makeInvalid(faults);
  const reading = planReading(call, perPage, selection);
  const place = start as SyncPlace | null;
  return { ...call, ...reading, since, place, prefix, contexts, fields: lists.get('fields'), selection };
}

function planReading({ compiled }: SyncCall, perPage: number, selection: CompiledSelection | null) {
  return {
    perPage,
    statements: compiled.statements.list([], 'asc', selection),
    serializer: (selection ?? compiled).serializer,
    values: {},
  };
}

export function listSections({ sync }: SyncCall, prefix: string | null): readonly Section[] {
  return prefix === null ? sync.changed : [sync.hashed];
}

/** Lists the order of each section. A pass over everything has the order of the list. */
function listOrders(call: SyncCall, prefix: string | null, isChanges: boolean) {
  if (prefix === null && !isChanges) return [call.compiled.resource.order];
  return listSections(call, prefix).map(({ order }) => order);
}

/** Throws invalid_request with every fault. */
export function parseIds(call: SyncCall): HashRequest {
  const parsed = parseQuery(call.query, syncParameters.ids);
  const prefixes = listPrefixes(parsed.single.get('prefix') ?? null, parsed.faults);
  return { ...parseHashRequest(call, parsed), prefixes };
}

/** Throws invalid_request with every fault. */
export function parseDigest(call: SyncCall, limits: ListLimits): DigestRequest {
  const { first, last } = call.sync.period ?? {};
  const ofPeriod = first === undefined || last === undefined ? [] : [first, last, ...syncParameters.period];
  const parsed = parseQuery(call.query, [...syncParameters.digest, ...ofPeriod]);
  const { single, faults } = parsed;
  const depth = single.get('depth') ?? '0';
  if (!/^\d$/.test(depth) || Number(depth) > depthMax) {
    const detail = `depth must be a whole number from 0 to ${depthMax}.`;
    faults.push({ parameter: 'depth', code: /^\d+$/.test(depth) ? 'out_of_range' : 'invalid_integer', detail });
  }
  const periods = ofPeriod.some((name) => single.has(name)) ? parsePeriods(call, parsed, limits.timeZone) : null;
  if (periods !== null && Number(depth) > 0) {
    const detail = 'The digest of a period has no prefixes: leave depth out.';
    faults.push({ parameter: 'depth', code: 'conflicting_parameters', detail });
  }
  const values = { timeZone: limits.timeZone };
  return { ...parseHashRequest(call, parsed), values, prefixes: [], depth: Number(depth), periods };
}

function parseHashRequest(call: SyncCall, parsed: ParsedQuery) {
  const since = parseSince(call, parsed, makeContexts(call, null).token);
  if (parsed.faults.length > 0) throw makeInvalid(parsed.faults);
  return { ...call, ...planReading(call, 1, null), since };
}

const monthsMax = 120;
/** First and last day of the API: a record outside them has none. */
const days = { first: '0001-01-01', last: '9999-12-31' };

/** Lists the months that the period meets, cut at its ends; without `by` the period itself. */
function parsePeriods({ compiled, sync }: SyncCall, parsed: ParsedQuery, timeZone: string): Period[] {
  const { faults } = parsed;
  const { first, last } = sync.period as NonNullable<SyncStatements['period']>;
  const { values } = parseFilters(compiled, parsed, timeZone);
  const by = parsed.single.get('by');
  const refuseBy = (code: 'invalid' | 'out_of_range', detail: string) => faults.push({ parameter: 'by', code, detail });
  if (by !== undefined && by !== 'month') refuseBy('invalid', 'by must be month.');
  const [from, to] = [values[first] ?? days.first, values[last] ?? days.last];
  if (by === undefined || faults.length > 0) return [{ from, to, isMonth: false }];
  const countMonths = (day: string): number => Number(day.slice(0, 4)) * 12 + Number(day.slice(5, 7)) - 1;
  const [start, count] = [countMonths(from), countMonths(to) - countMonths(from) + 1];
  const areBoth = values[first] !== undefined && values[last] !== undefined;
  if (!areBoth) refuseBy('invalid', `by needs ${first} and ${last}.`);
  else if (count > monthsMax)
    refuseBy('out_of_range', `The period has ${count} months, and at most ${monthsMax} are answered.`);
  if (faults.length > 0) return [];
  return Array.from({ length: count }, (_, i) => {
    const month = formatMonth(start + i);
    const [begin, end] = [`${month}-01`, `${month}-${countDays(start + i)}`];
    return { from: begin < from ? from : begin, to: end > to ? to : end, isMonth: true };
  });
}

/** Turns the months since the year 0 into "2026-02". */
function formatMonth(number: number): string {
  const [year, month] = [Math.floor(number / 12), (number % 12) + 1];
  return `${String(year).padStart(4, '0')}-${String(month).padStart(2, '0')}`;
}

/** Counts in a year with the same calendar: it repeats after 400 years, and JavaScript adds 1900 to a year below 100. */
function countDays(number: number): number {
  return new Date(Date.UTC(2000 + (Math.floor(number / 12) % 400), (number % 12) + 1, 0)).getUTCDate();
}

/** Reads a prefix; null is the empty one, which every hash has. */
export function listPrefixes(prefix: string | null, faults: FieldError[] = []): readonly string[] {
  if (prefix === null) return [''];
  const prefixes = prefix.split(',');
  if (!prefixForm.test(prefix) || prefixes.length > prefixesMax) {
    const detail = `prefix must be 1 to ${prefixesMax} prefixes of a SHA-256 in lower-case hexadecimal, separated by commas.`;
    faults.push({ parameter: 'prefix', code: 'invalid_prefix', detail });
  }
  return prefixes;
}

function makeContexts({ caller, compiled }: SyncCall, prefix: string | null): FeedRequest['contexts'] {
  const makeContext = (kind: string, extra: Record<string, string>): string =>
    makeCursorContext(caller.workspace, `${kind} ${compiled.resource.name}`, extra);
  return { token: makeContext('sync token', {}), cursor: makeContext('sync', prefix === null ? {} : { prefix }) };
}

function parseSince({ seal }: SyncCall, { single, faults }: ParsedQuery, context: string): SyncPosition | null {
  const token = single.get('since');
  if (token === undefined) return null;
  const position = decodeToken(seal, context, token);
  if (position !== undefined) return position;
  const detail = 'The sync token is damaged, or belongs to another workspace or resource.';
  faults.push({ parameter: 'since', code: 'invalid_since', detail });
  return null;
}
