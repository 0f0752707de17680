import type { Key } from '../definition/row-serializer.js';
import { invalid } from '../errors.js';
import type { TextRow } from '../postgres/row.js';
import { type Chunk, rangeValues, readChunk } from './chunks.js';
import { encodeCursor, isCertainlyWithin, type PageEnd } from './page-ends.js';
import type { ListRequest } from './parse.js';
import { dataAsOf, type PageSize, type Reply } from './reply.js';
import { type PagePhase, type ReadDeps, readRows } from './routing.js';
import { firstChunkRows, type Limit, streamPage } from './stream.js';

/** The start of a page: the end of the page before, and the page's number if the client sent one. */
interface Start {
  readonly number: number | null;
  readonly after: PageEnd;
}

/** The limit of a page, whether rows follow it, and its first chunk. */
export interface Page extends Limit {
  readonly hasMore: boolean;
  readonly first: Chunk;
}

/**
 * The whole way of a checked list request: find the start of the page → read it → name the start of the next page. A page of up
 * to chunkRowsMax rows is one statement; a larger page repeats the statement, chunk after chunk.
 */
export async function readList(deps: ReadDeps, request: ListRequest): Promise<Reply> {
  const startedMs = performance.now();
  const start = await findStart(deps, request);
  const page = await readPage(deps, request, start.after.key, firstPhase(start.after.asOfMs));
  const { first, hasMore, until } = page;
  // After the first rows: a workspace may have one long statement at a time, and a page that waited behind its own count would be refused.
  const total = request.total ? countRows(deps, request, start) : null;
  total?.catch(() => {}); // awaited in `finish`; without this handler an earlier failure would end the process
  /** The end of the page whose last row has the key `last`, with the latest moment of the walk so far. */
  const endOf = (last: Key | null): PageEnd => ({
    key: (hasMore ? until : null) ?? last ?? start.after.key,
    asOfMs: laterOf(first.asOfMs, start.after.asOfMs),
  });
  const headers = { Link: links(request, hasMore ? endOf(first.last) : null), ...dataAsOf(first.asOfMs) };
  const finish = async (count: number, last: Key | null): Promise<string> => {
    const end = endOf(last);
    if (start.number !== null) deps.pageMemory.remember(request, start.number, end, hasMore);
    return envelopeEnd(request, { page: start.number, count, hasMore, end, total: await total });
  };
  const databaseMs = performance.now() - startedMs;
  return pageReply(deps, request, page, { headers, databaseMs, finish });
}

/** Reads the first chunk of the page behind a key, and finds its end. */
export function readPage(deps: ReadDeps, request: ListRequest, after: Key | null, phase: PagePhase): Promise<Page> {
  return (request.perPage > deps.chunkRowsMax ? longPage : shortPage)(deps, request, after, phase);
}

/** The reply with a page whose first chunk is read; `finish` gives the JSON behind its rows. */
export async function pageReply(
  deps: ReadDeps,
  request: ListRequest,
  { first, ...limit }: Limit & { readonly first: Chunk },
  rest: Pick<Reply, 'headers' | 'databaseMs'> & {
    readonly finish: (count: number, last: Key | null) => Promise<string>;
  },
): Promise<Reply> {
  const page: PageSize = { perPage: request.perPage, rows: null };
  const reply = { status: 200, headers: rest.headers, databaseMs: rest.databaseMs, page };
  const finish = (count: number, last: Key | null): Promise<string> => {
    page.rows = count;
    return rest.finish(count, last);
  };
  if (first.more) return { body: streamPage(deps, request, first, limit, finish), ...reply };
  first.json.text(await finish(first.count, first.last));
  return { body: first.json.view(), release: first.release, ...reply };
}

function laterOf(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : Math.max(a, b);
}

/**
 * Finds the end of the page before: from the cursor, from memory, or by an index-only skip of at most skipRowsMax rows from the
 * nearest remembered end, forward or backward. Throws invalid() for a page that needs a longer skip.
 */
async function findStart(deps: ReadDeps, request: ListRequest): Promise<Start> {
  if ('after' in request.start) return { number: null, after: request.start.after };
  const { page: number } = request.start;
  const before = number - 1;
  const { page, end } = deps.pageMemory.nearest(request, before);
  if (page === before) return { number, after: end };
  const skipped = Math.abs(before - page) * request.perPage;
  if (skipped > deps.skipRowsMax) throw tooDeep(skipped, deps.skipRowsMax);
  const { keys } = request.statements;
  const isBackward = page > before;
  const statement = isBackward ? keys.before : keys[end.key ? 'after' : 'all'];
  const values = { skip: skipped - 1, limit: 1, ...rangeValues({ after: end.key, until: end.key }) };
  const found = await readRows(deps, request, statement, values, firstPhase(end.asOfMs));
  const asOfMs = laterOf(found.asOfMs, end.asOfMs);
  const key = keyOf(found.rows[0]);
  if (key === null && !isBackward)
    return { number, after: { key: await lastKey(deps, request, firstPhase(asOfMs)), asOfMs } };
  const after = { key, asOfMs };
  if (key !== null) deps.pageMemory.remember(request, before, after, true);
  return { number, after };
}

function tooDeep(skipped: number, skipRowsMax: number): Error {
  const detail = `This page skips ${skipped} rows, and at most ${skipRowsMax} can be skipped. Follow next, or send nextCursor as cursor: a cursor costs the same everywhere.`;
  return invalid([{ parameter: 'page', code: 'out_of_range', detail }]);
}

/** The phase of a page's first statements: on a server at least as current as the page before. */
const firstPhase = (asOfMs: number | null): PagePhase => ({ kind: 'first', requirement: { asOfMs } });

async function shortPage(deps: ReadDeps, request: ListRequest, after: Key | null, phase: PagePhase): Promise<Page> {
  const pool = request.perPage <= firstChunkRows * 2 ? 'short' : 'long';
  const range = { after, until: null };
  const first = await readChunk(deps, request, range, request.perPage, pool, phase);
  return endingWith(first);
}

/** The page that ends with the rows of its first chunk. */
function endingWith(first: Chunk): Page {
  const until = first.more ? first.last : null;
  return { until, foundMs: 0, hasMore: first.more, first: { ...first, more: false } };
}

/**
 * Reads the first chunk of a page that does not fit one chunk, and the key of the page's end, because the headers name the
 * start of the next page. The page is the rows between two keys, including rows that are inserted there while it is read.
 * Each of the statements has a snapshot of its own: where a commit between them put the end in front of the first rows, or put rows
 * behind those that seemed to be the last, the page ends with its first rows.
 */
async function longPage(deps: ReadDeps, request: ListRequest, after: Key | null, phase: PagePhase): Promise<Page> {
  const range = { after, until: null };
  const keys = request.statements.keys[after ? 'after' : 'all'];
  const values = { skip: request.perPage - 1, limit: 2, ...rangeValues(range) };
  const readEnds = readRows(deps, request, keys, values, phase); // first, because the first byte waits for it
  if (request.onMark) await readEnds; // of two statements at a time the marks come in any order, as if the replica had gone back
  const [ends, first] = await Promise.all([
    readEnds,
    readChunk(deps, request, range, Math.min(request.perPage, firstChunkRows), 'long', phase),
  ]);
  // A replica that is behind the one of the first rows can lack rows, and would give a wrong end.
  const isBehind = (ends.asOfMs ?? 0) < (first.asOfMs ?? 0);
  const [end, beyond] = (isBehind ? await readRows(deps, request, keys, values, first.continuation) : ends).rows;
  const until = keyOf(end);
  if (until === null) {
    const last = first.more ? await lastKey(deps, request, first.continuation) : null;
    return { until: last, foundMs: 0, hasMore: false, first };
  }
  const hasMore = beyond !== undefined;
  const foundMs = hasMore ? Date.now() : 0; // behind a last page clients go on from the row that came last
  if (first.more && (await isWithin(deps, request, first, until))) return { until, foundMs, hasMore, first };
  return endingWith(first);
}

/** Whether the rows of a chunk, which has some, end at a key or before it. Where their types do not tell, a row between them is looked for. */
async function isWithin(
  deps: ReadDeps,
  request: ListRequest,
  { last, continuation }: Chunk,
  until: Key,
): Promise<boolean> {
  const { compiled, order, statements } = request;
  if (isCertainlyWithin(last as Key, until, compiled.resource.order, order)) return true;
  const values = { ...rangeValues({ after: last, until }), limit: 1 };
  return (await readRows(deps, request, statements.rows.between, values, continuation)).rows.length > 0;
}

async function lastKey(deps: ReadDeps, request: ListRequest, phase: PagePhase): Promise<Key | null> {
  const { rows } = await readRows(deps, request, request.statements.last, { limit: 1 }, phase);
  return keyOf(rows[0]);
}

/** The key in a row of a keys statement; null without a row. */
function keyOf(row: TextRow | undefined): Key | null {
  return row === undefined ? null : (row as Key);
}

/** Counts all rows of the list. Waits and is retried as long as chunks are, because a failure would break a large page. */
async function countRows(deps: ReadDeps, request: ListRequest, { after: { asOfMs } }: Start): Promise<number> {
  const phase: PagePhase = { kind: 'first', requirement: { asOfMs, resumeMs: deps.resumeMs } };
  const { rows } = await readRows(deps, request, request.statements.count, {}, phase, deps.resumeMs);
  return Number(rows[0]?.[0]);
}

function envelopeEnd(
  request: ListRequest,
  page: { page: number | null; count: number; hasMore: boolean; end: PageEnd; total: number | null },
): string {
  const { hasMore, end, total } = page;
  const endCursor = encodeCursor(request.context, end);
  const pagination = {
    page: page.page,
    perPage: request.perPage,
    count: page.count,
    hasMore,
    nextCursor: hasMore ? endCursor : null,
    endCursor,
    next: hasMore ? nextUrl(request, endCursor) : null,
    ...(total !== null && { total }),
    complete: true,
  };
  return `],"pagination":${JSON.stringify(pagination)}}`;
}

/** Link header (RFC 8288): the first page, and the next page if there is one. */
function links(request: ListRequest, end: PageEnd | null): string {
  const first = `<${listUrl(request, {})}>; rel="first"`;
  return end === null ? first : `<${nextUrl(request, encodeCursor(request.context, end))}>; rel="next", ${first}`;
}

function nextUrl(request: ListRequest, cursor: string): string {
  return listUrl(request, { cursor });
}

function listUrl(request: ListRequest, extra: Record<string, string>): string {
  const parameters = {
    ...request.filters,
    ...(request.order === 'desc' && { order: 'desc' }),
    perPage: String(request.perPage),
    ...(request.total && { total: 'true' }),
    ...(request.fields !== undefined && { fields: request.fields }),
    ...extra,
  };
  // Commas stay as they are (RFC 3986 §2.2), so that a list of ids does not make the URL longer than the gateway takes.
  const query = new URLSearchParams(parameters).toString().replaceAll('%2C', ',');
  return `${request.baseUrl}/${request.compiled.resource.name}?${query}`;
}
