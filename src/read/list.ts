import type { Key } from '../definition/row-serializer.js';
import {
  type Chunk,
  keyOf,
  type PageContinuation,
  type Range,
  type ReadDeps,
  rangeValues,
  readChunk,
  readRows,
} from './chunks.js';
import { encodeCursor } from './cursor.js';
import type { PageMemory } from './page-memory.js';
import type { ListRequest } from './parse.js';
import { dataAsOf, type Reply } from './reply.js';
import { firstChunkRows, streamPage } from './stream.js';

/** Where a page lies, and what is known of its end before its rows are read. */
interface Page {
  readonly number: number | null;
  readonly range: Range;
  readonly hasMore: boolean;
}

/**
 * The whole way of a list after its request has been checked: find where the page starts, read it, say where the next one
 * starts. A page of up to chunkRowsMax rows is one statement; a larger one is chunk after chunk of the same statement.
 */
export async function readList(deps: ReadDeps, memory: PageMemory, request: ListRequest): Promise<Reply> {
  const startedMs = performance.now();
  const total = request.total ? countRows(deps, request) : null;
  total?.catch(() => {}); // it is awaited below; until then a failure must not count as unhandled
  const start = await findStart(deps, memory, request);
  const { page, first } =
    request.perPage <= deps.chunkRowsMax ? await shortPage(deps, request, start) : await longPage(deps, request, start);
  const nextKey = (page.hasMore ? page.range.until : null) ?? first.last ?? start.after;
  const headers = { Link: links(request, page.hasMore ? nextKey : null), ...dataAsOf(first.asOfMs) };
  const finish = async (count: number, last: Key | null): Promise<string> => {
    const end = (page.hasMore ? page.range.until : null) ?? last ?? start.after;
    if (page.number !== null) memory.remember(request, page.number, end);
    return envelopeEnd(request, page, count, end, await total);
  };
  const databaseMs = performance.now() - startedMs;
  if (first.more) {
    return { status: 200, headers, body: streamPage(deps, request, first, page.range.until, finish), databaseMs };
  }
  first.json.text(await finish(first.count, first.last));
  return { status: 200, headers, body: first.json.view(), release: first.release, databaseMs };
}

/** The key the page starts behind: the cursor's, the remembered end of the page before, or found by an index-only skip. */
async function findStart(
  deps: ReadDeps,
  memory: PageMemory,
  request: ListRequest,
): Promise<{ number: number | null; after: Key | null }> {
  if ('after' in request.start) return { number: null, after: request.start.after };
  const { page } = request.start;
  if (page === 1) return { number: page, after: null };
  const remembered = memory.endBefore(request, page);
  if (remembered !== undefined) return { number: page, after: remembered };
  const skip = (page - 1) * request.perPage - 1;
  const { rows } = await readRows(deps, request, request.statements.keys.all, { skip, limit: 1 });
  const after = keyOf(rows[0]) ?? (await lastKey(deps, request));
  return { number: page, after };
}

async function shortPage(
  deps: ReadDeps,
  request: ListRequest,
  { number, after }: { number: number | null; after: Key | null },
): Promise<{ page: Page; first: Chunk }> {
  const lane = request.perPage <= firstChunkRows * 2 ? 'short' : 'long';
  const first = await readChunk(deps, request, { after, until: null }, request.perPage, lane);
  const range = { after, until: first.more ? first.last : null };
  return { page: { number, range, hasMore: first.more }, first: { ...first, more: false } };
}

/**
 * A page whose rows do not fit one chunk. Its end is looked up first, keys only, because the headers already say where
 * the next page starts; its rows are then those between two keys. Rows inserted between them meanwhile are in it too.
 */
async function longPage(
  deps: ReadDeps,
  request: ListRequest,
  { number, after }: { number: number | null; after: Key | null },
): Promise<{ page: Page; first: Chunk }> {
  const keys = request.statements.keys[after ? 'after' : 'all'];
  const values = { ...rangeValues({ after, until: null }), skip: request.perPage - 1, limit: 2 };
  const [first, ends] = await Promise.all([
    readChunk(deps, request, { after, until: null }, firstChunkRows, 'long'),
    readRows(deps, request, keys, values),
  ]);
  // A replica further behind than the one that gave the first rows may not know where the page ends.
  const isBehind = (ends.asOfMs ?? 0) < (first.asOfMs ?? 0);
  const [end, beyond] = (isBehind ? await readRows(deps, request, keys, values, first.continuation) : ends).rows;
  const until = keyOf(end) ?? (first.more ? await lastKey(deps, request, first.continuation) : null);
  return { page: { number, range: { after, until }, hasMore: beyond !== undefined }, first };
}

async function lastKey(deps: ReadDeps, request: ListRequest, need: PageContinuation = {}): Promise<Key | null> {
  const { rows } = await readRows(deps, request, request.statements.last, { limit: 1 }, need);
  return keyOf(rows[0]);
}

async function countRows(deps: ReadDeps, request: ListRequest): Promise<number> {
  const need = request.perPage > deps.chunkRowsMax ? { resumeMs: deps.resumeMs } : {}; // told at the end of a long page
  const { rows } = await readRows(deps, request, request.statements.count, {}, need);
  return Number(rows[0]?.[0]);
}

function envelopeEnd(request: ListRequest, page: Page, count: number, end: Key | null, total: number | null): string {
  const pagination = {
    page: page.number,
    perPage: request.perPage,
    count,
    hasMore: page.hasMore,
    nextCursor: encodeCursor(request.context, end),
    next: page.hasMore ? nextUrl(request, end) : null,
    ...(total !== null && { total }),
    complete: true,
  };
  return `],"pagination":${JSON.stringify(pagination)}}`;
}

/** Link header (RFC 8288): always the first page, and the next one where there is one. */
function links(request: ListRequest, next: Key | null): string {
  const first = `<${listUrl(request, {})}>; rel="first"`;
  return next === null ? first : `<${nextUrl(request, next)}>; rel="next", ${first}`;
}

function nextUrl(request: ListRequest, key: Key | null): string {
  return listUrl(request, { cursor: encodeCursor(request.context, key) });
}

function listUrl(request: ListRequest, extra: Record<string, string>): string {
  const parameters = {
    ...request.filters,
    perPage: String(request.perPage),
    ...(request.total && { total: 'true' }),
    ...extra,
  };
  return `${request.baseUrl}/${request.compiled.resource.name}?${new URLSearchParams(parameters)}`;
}
