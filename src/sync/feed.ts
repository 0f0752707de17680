import { arrayText } from '../definition/filter-kinds.js';
import type { Key } from '../definition/row-serializer.js';
import type { Bounds } from '../definition/statements.js';
import type { Section } from '../definition/sync-statements.js';
import { invalid } from '../errors.js';
import type { TextRow } from '../postgres/row.js';
import type { Statement, Values } from '../postgres/statement.js';
import { type Chunk, readChunk } from '../read/chunks.js';
import { pageReply, readPage } from '../read/list.js';
import type { ListRequest } from '../read/parse.js';
import { dataAsOf, type Reply } from '../read/reply.js';
import type { PagePhase, ReadDeps } from '../read/routing.js';
import { firstChunkRows, type Limit } from '../read/stream.js';
import { encodePlace, encodeToken, type LatestTimeline, Pass, type SyncPlace } from './pass.js';
import { type FeedRequest, type HashRequest, prefixesOf, type SyncCall, sectionsOf } from './request.js';
import { type RangeSizes, rangesOf, readInPass, type ScanDeps, type ScanPlace, scan } from './scan.js';

/** Dependencies and bounds of sync; made once per gateway. */
export interface SyncDeps {
  readonly reads: ReadDeps;
  readonly latestTimeline: LatestTimeline;
}

/** A page searches for changes so long, then it ends with those that it found: clients and proxies wait for the first byte. */
const scanMsMax = 5000;

/** A page of a pass whose first chunk is read. */
interface FeedPage extends Limit {
  readonly first: Chunk;
  readonly asOfMs: number | null;
  readonly list: ListRequest;
  /** The place behind the page whose last row has the key; null at the end of the pass. */
  readonly next: (last: Key | null) => ScanPlace | null;
}

/** The whole way of a page of a pass: find its rows → read them → name the next page, or the token of the next pass. */
export async function readFeed({ reads, latestTimeline }: SyncDeps, request: FeedRequest): Promise<Reply> {
  const startedMs = performance.now();
  const { place, prefix, contexts, perPage } = request;
  const pass = new Pass({ pass: place?.pass ?? null, since: request.since }, latestTimeline);
  const deps: ScanDeps = { reads, list: listOf(request, pass), requirement: () => pass.requirement };
  const since = place === null ? request.since : place.since;
  const sections = sectionsOf(request, prefix, since !== null);
  const page = await (sections === null ? pageOfAll(deps, place) : pageOfFound(deps, request, since, sections));
  const asOfMs = place === null ? page.asOfMs : place.asOfMs;
  const finish = async (count: number, last: Key | null): Promise<string> => {
    const following = page.next(last);
    const cursor = following && encodePlace(contexts.cursor, { pass: pass.position, asOfMs, since, ...following });
    const pagination = {
      perPage,
      count,
      hasMore: cursor !== null,
      nextCursor: cursor,
      next: cursor && nextUrl(request, cursor),
      since: cursor === null && prefix === null ? encodeToken(contexts.token, pass.position) : null,
      complete: true,
    };
    return `],"pagination":${JSON.stringify(pagination)}}`;
  };
  const databaseMs = performance.now() - startedMs;
  return pageReply(reads, page.list, page, { headers: dataAsOf(asOfMs), databaseMs, finish });
}

/** A page of everything, in the order of the list. */
async function pageOfAll({ reads, list, requirement }: ScanDeps, place: ScanPlace | null): Promise<FeedPage> {
  const page = await readPage(reads, list, place?.after ?? null, { kind: 'first', requirement: requirement() });
  const { first, hasMore, until } = page;
  const next = (last: Key | null): ScanPlace | null => (hasMore ? { section: 0, after: until ?? last } : null);
  return { ...page, asOfMs: first.asOfMs, list, next };
}

/** A page of the rows that a scan finds: their ids first, then the rows, which are in the order of the list. */
async function pageOfFound(
  deps: ScanDeps,
  request: FeedRequest,
  since: SyncPlace['since'],
  sections: readonly Section[],
): Promise<FeedPage> {
  const { reads, requirement } = deps;
  const values = {
    since: String(since?.xmin ?? 0),
    horizon: horizonOf(request, since),
    prefixes: arrayText(prefixesOf(request.prefix)),
  };
  const place: ScanPlace = request.place ?? { section: 0, after: null };
  const { ids, asOfMs, next } = await scan(deps, sections, place, values, { limit: request.perPage, scanMsMax });
  const rows = Math.max(1, ids.length > reads.chunkRowsMax ? firstChunkRows : ids.length);
  const statements = request.compiled.statements.list(['ids'], 'asc', request.cut);
  const list = { ...deps.list, statements, values: { ids: arrayText(ids) } };
  const pool = rows > firstChunkRows * 2 ? 'long' : 'short';
  const phase: PagePhase = { kind: 'first', requirement: requirement() };
  const first = await readChunk(reads, list, { after: null, until: null }, rows, pool, phase);
  return { first, asOfMs, until: null, foundMs: 0, list, next: () => next };
}

/** A list whose statements are judged by the pass. */
function listOf(call: SyncCall & Partial<Pick<FeedRequest, 'perPage' | 'cut'>>, { onMark }: Pass): ListRequest {
  const { compiled, caller, baseUrl, signal, perPage = 1, cut = null } = call;
  const statements = compiled.statements.list([], 'asc', cut);
  const { serializer } = cut ?? compiled;
  const start = { page: 1 };
  return {
    compiled,
    caller,
    baseUrl,
    signal,
    perPage,
    statements,
    serializer,
    fields: undefined,
    start,
    onMark,
    filters: {},
    values: {},
    context: '',
    order: 'asc',
    total: false,
  };
}

/** The moment of the oldest records that the pass before can have missed, as a timestamptz. */
function horizonOf({ compiled }: SyncCall, since: { readonly replayedAtMs: number | null } | null): string {
  const { horizonHours } = compiled.resource.sync?.appendOnly ?? {};
  if (horizonHours === undefined || since?.replayedAtMs == null) return '-infinity';
  return new Date(since.replayedAtMs - horizonHours * 3_600_000).toISOString();
}

function nextUrl({ baseUrl, compiled, perPage, prefix, fields }: FeedRequest, cursor: string): string {
  const kept = { ...(prefix !== null && { prefix }), ...(fields !== undefined && { fields }) };
  const parameters = { perPage: String(perPage), ...kept, cursor };
  const query = new URLSearchParams(parameters).toString().replaceAll('%2C', ',');
  return `${baseUrl}/sync/${compiled.resource.name}?${query}`;
}

/** Ids in an answer at most. */
const idsMax = 100_000;
/** Hashing is most of the work of these statements. */
const sizes: RangeSizes = { first: 100_000, growth: 1, max: 100_000 };

/** Rows grouped by the first hexadecimal digits of the SHA-256 of their ids: number, and XOR of the first 8 bytes of SHA-256(id, newline, version). */
export async function readDigest(deps: SyncDeps, request: HashRequest): Promise<Reply> {
  const groups = new Map<string, { count: number; hash: bigint }>();
  const { digest } = request.sync;
  const values = { depth: request.depth };
  return reply(
    deps,
    request,
    digest,
    values,
    ([prefix, count, bits]) => {
      const group = groups.get(prefix as string) ?? { count: 0, hash: 0n };
      groups.set(prefix as string, { count: group.count + Number(count), hash: group.hash ^ BigInt(`0b${bits}`) });
    },
    () =>
      [...groups]
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([prefix, { count, hash }]) => ({
          prefix,
          count,
          hash: hash.toString(16).padStart(16, '0'),
        })),
  );
}

/** Ids and versions of the records whose ids' SHA-256 begins with one of the prefixes. Throws invalid() when there are too many for an answer. */
export async function readIds(deps: SyncDeps, request: HashRequest): Promise<Reply> {
  const found: { id: string; syncVersion: string }[] = [];
  const values = { prefixes: arrayText(request.prefixes), limit: idsMax + 1 };
  return reply(
    deps,
    request,
    request.sync.versions,
    values,
    ([id, syncVersion]) => {
      found.push({ id: id as string, syncVersion: syncVersion as string });
      if (found.length > idsMax) throw tooMany();
    },
    () => found,
  );
}

/** Runs a statement over every range, and replies with the data that they make together. */
async function reply(
  { reads, latestTimeline }: SyncDeps,
  request: HashRequest,
  statements: Readonly<Record<Bounds, Statement>>,
  values: Values,
  add: (row: TextRow) => void,
  data: () => readonly unknown[],
): Promise<Reply> {
  const startedMs = performance.now();
  const pass = new Pass({ pass: null, since: request.since }, latestTimeline);
  const deps: ScanDeps = { reads, list: listOf(request, pass), requirement: () => pass.requirement };
  let asOfMs: number | null | undefined;
  for await (const range of rangesOf(deps, request.sync.hashed, null, values, sizes)) {
    const read = await readInPass(deps, statements[range.bounds], range.values);
    asOfMs ??= read.asOfMs;
    for (const row of read.rows) add(row);
  }
  const rows = data();
  const body = JSON.stringify({ data: rows, pagination: { count: rows.length, complete: true } });
  return { status: 200, headers: dataAsOf(asOfMs ?? null), body, databaseMs: performance.now() - startedMs };
}

function tooMany(): Error {
  const detail = `More than ${idsMax} ids have these prefixes: use longer ones.`;
  return invalid([{ parameter: 'prefix', code: 'out_of_range', detail }]);
}
