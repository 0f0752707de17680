import { type FieldError, invalid } from '../../base/errors.js';
import type { CompiledSelection } from '../../resource/definition/compiled.js';
import type { Section, SyncStatements } from '../../resource/statements/sync-statements.js';
import { cursorContext } from '../read/page-ends.js';
import { type ListLimits, parseFields, parseQuery, type RawRequest, type Reading, sizeOf } from '../read/parse.js';
import { decodePlace, decodeToken, type SyncPlace, type SyncPosition } from './pass.js';
import type { SealedParts } from './sealed-parts.js';

export interface SyncCall extends RawRequest {
  readonly sync: SyncStatements;
  readonly seal: SealedParts;
}

export interface FeedRequest extends SyncCall, Reading {
  readonly since: SyncPosition | null;
  /** Null at the beginning of a pass. */
  readonly place: SyncPlace | null;
  /** As given, for links; null: all rows. */
  readonly prefix: string | null;
  /** As given, for links; `selection` is null for whole records. */
  readonly fields: readonly string[] | undefined;
  readonly selection: CompiledSelection | null;
  /** Tokens and cursors are bound to them. */
  readonly contexts: { readonly token: string; readonly cursor: string };
}

export interface HashRequest extends SyncCall, Reading {
  readonly since: SyncPosition | null;
  readonly depth: number;
  readonly prefixes: readonly string[];
}

const depthMax = 4;
const prefixesMax = 100;
const prefixForm = /^[0-9a-f]{1,64}(,[0-9a-f]{1,64})*$/;

/** Throws invalid() with every fault. */
export function parseFeed(call: SyncCall, limits: ListLimits): FeedRequest {
  const faults: FieldError[] = [];
  const known = ['perPage', 'since', 'cursor', 'prefix', 'fields'];
  const { given, lists } = parseQuery(call.query, known, faults, (name) => name === 'fields');
  const perPage = sizeOf(given, limits, faults);
  const fields = lists.get('fields');
  const selection = parseFields(call.compiled, fields, faults);
  const prefix = given.get('prefix') ?? null;
  prefixesOf(prefix, faults);
  const contexts = contextsOf(call, prefix);
  const since = sinceOf(call.seal, contexts.token, given.get('since'), faults);
  const cursor = given.get('cursor');
  if (cursor !== undefined && given.has('since')) {
    const detail = 'since and cursor cannot be given together: the cursor continues the pass that since began.';
    faults.push({ parameter: 'cursor', code: 'conflicting_parameters', detail });
  }
  const place =
    cursor === undefined
      ? null
      : decodePlace(call.seal, contexts.cursor, cursor, (isChanges) => ordersOf(call, prefix, isChanges));
  if (place === undefined) {
    const detail =
      'The cursor is damaged, or belongs to another pass: use it with the resource and the prefix of the page it came from.';
    faults.push({ parameter: 'cursor', code: 'invalid_cursor', detail });
  }
  if (faults.length > 0) throw invalid(faults);
  const reading = readingOf(call, perPage, selection);
  return { ...call, ...reading, since, place: place as SyncPlace | null, prefix, contexts, fields, selection };
}

function readingOf({ compiled }: SyncCall, perPage: number, selection: CompiledSelection | null) {
  return {
    perPage,
    statements: compiled.statements.list([], 'asc', selection),
    serializer: (selection ?? compiled).serializer,
    values: {},
  };
}

export function sectionsOf({ sync }: SyncCall, prefix: string | null): readonly Section[] {
  return prefix === null ? sync.changed : [sync.hashed];
}

/** A pass over everything has the order of the list. */
function ordersOf(call: SyncCall, prefix: string | null, isChanges: boolean) {
  if (prefix === null && !isChanges) return [call.compiled.resource.order];
  return sectionsOf(call, prefix).map(({ order }) => order);
}

/** Throws invalid() with every fault. */
export function parseHashes(call: SyncCall, parameter: 'depth' | 'prefix'): HashRequest {
  const faults: FieldError[] = [];
  const { given } = parseQuery(call.query, [parameter, 'since'], faults);
  const depth = given.get('depth') ?? '0';
  if (!/^[0-4]$/.test(depth)) {
    const detail = `depth must be a whole number from 0 to ${depthMax}.`;
    faults.push({ parameter, code: /^\d+$/.test(depth) ? 'out_of_range' : 'invalid_integer', detail });
  }
  const prefixes = prefixesOf(given.get('prefix') ?? null, faults);
  const since = sinceOf(call.seal, contextsOf(call, null).token, given.get('since'), faults);
  if (faults.length > 0) throw invalid(faults);
  return { ...call, ...readingOf(call, 1, null), since, depth: Number(depth), prefixes };
}

/** Null is the empty prefix, which every hash has. */
export function prefixesOf(prefix: string | null, faults: FieldError[] = []): readonly string[] {
  if (prefix === null) return [''];
  const prefixes = prefix.split(',');
  if (!prefixForm.test(prefix) || prefixes.length > prefixesMax) {
    const detail = `prefix must be 1 to ${prefixesMax} prefixes of a SHA-256 in lower-case hexadecimal, separated by commas.`;
    faults.push({ parameter: 'prefix', code: 'invalid_prefix', detail });
  }
  return prefixes;
}

function contextsOf({ caller, compiled }: SyncCall, prefix: string | null): FeedRequest['contexts'] {
  const of = (kind: string, extra: Record<string, string>): string =>
    cursorContext(caller.workspace, `${kind} ${compiled.resource.name}`, extra);
  return { token: of('sync token', {}), cursor: of('sync', prefix === null ? {} : { prefix }) };
}

function sinceOf(seal: SealedParts, context: string, token: string | undefined, faults: FieldError[]) {
  if (token === undefined) return null;
  const position = decodeToken(seal, context, token);
  if (position !== undefined) return position;
  const detail = 'The sync token is damaged, or belongs to another workspace or resource.';
  faults.push({ parameter: 'since', code: 'invalid_since', detail });
  return null;
}
