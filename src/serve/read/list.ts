import { invalid } from '../../base/errors.js';
import type { Key } from '../../resource/definition/row-serializer.js';
import { lastKey, pageReply, rangeValues, readPage } from './page.js';
import { encodeCursor, type PageEnd } from './page-ends.js';
import type { ListRequest, Parameters } from './parse.js';
import { dataAsOf, type Reply } from './reply.js';
import { type ReadDeps, readRows } from './routing.js';

/** Find the start of the page → read it → name the start of the next page. */
export async function readList(deps: ReadDeps, request: ListRequest): Promise<Reply> {
  const startedMs = performance.now();
  const start = await findStart(deps, request);
  const page = await readPage(deps, request, start.after.key, { asOfMs: start.after.asOfMs });
  const { first, hasMore, until } = page;
  // After the first rows: a workspace has one long statement at a time.
  const total = request.total ? countRows(deps, request, start.after) : null;
  total?.catch(() => {}); // awaited in `finish`; without this handler an earlier failure would end the process
  const endOf = (last: Key | null): PageEnd => ({
    key: (hasMore ? until : null) ?? last ?? start.after.key,
    asOfMs: laterOf(first.asOfMs, start.after.asOfMs),
  });
  const headers = { ...links(request, hasMore ? endOf(first.last) : null), ...dataAsOf(first.asOfMs) };
  const databaseMs = performance.now() - startedMs;
  return pageReply(deps, request, page, { headers, databaseMs }, async (count, last) => {
    const end = endOf(last);
    if (start.number !== null) deps.pageMemory.remember(request, start.number, end, hasMore);
    const endCursor = encodeCursor(request.context, end);
    return {
      page: start.number,
      perPage: request.perPage,
      count,
      hasMore,
      nextCursor: hasMore ? endCursor : null,
      endCursor,
      next: hasMore ? listUrl(request, { cursor: endCursor }) : null,
      ...(total !== null && { total: await total }),
    };
  });
}

function laterOf(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : Math.max(a, b);
}

/** From the cursor, from memory, or by an index-only skip from the nearest end. Throws invalid() for a long one. */
async function findStart(deps: ReadDeps, request: ListRequest): Promise<{ number: number | null; after: PageEnd }> {
  if ('after' in request.start) return { number: null, after: request.start.after };
  const { page: number } = request.start;
  const before = number - 1;
  const { page, end } = deps.pageMemory.nearest(request, before);
  if (page === before) return { number, after: end };
  const skipped = Math.abs(before - page) * request.perPage;
  const tooDeep = `This page skips ${skipped} rows, and at most ${deps.skipRowsMax} can be skipped. Follow next, or send nextCursor as cursor: a cursor costs the same everywhere.`;
  if (skipped > deps.skipRowsMax) throw invalid([{ parameter: 'page', code: 'out_of_range', detail: tooDeep }]);
  const { keys } = request.statements;
  const isBackward = page > before;
  const statement = isBackward ? keys.before : keys[end.key ? 'after' : 'all'];
  const values = { skip: skipped - 1, limit: 1, ...rangeValues({ after: end.key, until: end.key }) };
  const { rows, ...found } = await readRows(deps, request, statement, values, { asOfMs: end.asOfMs });
  const asOfMs = laterOf(found.asOfMs, end.asOfMs);
  const key = (rows[0] as Key | undefined) ?? null;
  if (key === null && !isBackward) return { number, after: { key: await lastKey(deps, request, { asOfMs }), asOfMs } };
  const after = { key, asOfMs };
  if (key !== null) deps.pageMemory.remember(request, before, after, true);
  return { number, after };
}

/** Retried as long as chunks are: a failure would break a large page. */
async function countRows(deps: ReadDeps, request: ListRequest, { asOfMs }: PageEnd): Promise<number> {
  const { resumeMs } = deps;
  const { rows } = await readRows(deps, request, request.statements.count, {}, { asOfMs, resumeMs }, resumeMs);
  return Number(rows[0]?.[0]);
}

/** Proxies take a head of 8 KB. */
const linkBytesMax = 4096;

/** RFC 8288. Left out where it is too long for the head: the body has `next`. */
function links(request: ListRequest, end: PageEnd | null): { readonly Link?: string } {
  const first = `<${listUrl(request, {})}>; rel="first"`;
  const next = end && `<${listUrl(request, { cursor: encodeCursor(request.context, end) })}>; rel="next", `;
  const Link = `${next ?? ''}${first}`;
  return Link.length > linkBytesMax ? {} : { Link };
}

function listUrl(request: ListRequest, extra: Parameters): string {
  return urlOf(request, request.compiled.resource.name, {
    ...request.filters,
    ...(request.order === 'desc' && { order: 'desc' }),
    perPage: String(request.perPage),
    ...(request.total && { total: 'true' }),
    ...(request.fields !== undefined && { fields: request.fields }),
    ...extra,
  });
}

/** Encodes only what must be, so that it is no longer than the client's; commas separate values of a list. */
export function urlOf({ baseUrl }: { baseUrl: string }, path: string, parameters: Parameters): string {
  const pairs = Object.entries(parameters).map(([name, value]) => `${name}=${[value].flat().map(encoded).join(',')}`);
  return `${baseUrl}/${path}?${pairs.join('&')}`;
}

/** + is a space; a query can have the other characters (RFC 3986 §3.4) that encodeURIComponent encodes. */
function encoded(value: string): string {
  return encodeURIComponent(value)
    .replace(/%(24|2F|3A|3B|3F|40)/g, decodeURIComponent)
    .replaceAll('%20', '+');
}
