import { makeInvalid } from '../../base/errors.js';
import type { OrderKey } from '../../resource/definition/resource.js';
import { encodeCursor, type PageEnd } from './cursor.js';
import { bindRange, chunkByKeys, type PageEnding, type PageStart, type Plan } from './page.js';
import type { ListRequest, Parameters } from './parse.js';
import { type ReadDeps, Reader } from './routing.js';

/** Plans a list: finds the start of the page, and describes the page by the cursor of the next one. */
export async function planList(deps: ReadDeps, request: ListRequest): Promise<Plan> {
  const reader = new Reader(deps, request);
  const { number, after } = await findStart(reader, request);
  const { serializer, perPage, context } = request;
  const describe = ({ asOfMs, last: firstLast, until, hasMore }: PageStart): PageEnding => {
    // After the first rows: a workspace has one long statement at a time.
    const total = request.wantsTotal ? countTotal(reader, request, after) : null;
    total?.catch(() => {}); // awaited below; without this handler an earlier failure would end the process
    const endOf = (last: OrderKey | null): PageEnd => ({
      key: (hasMore ? until : null) ?? last ?? after.key,
      asOfMs: chooseLater(asOfMs, after.asOfMs),
    });
    const pagination = async (count: number, last: OrderKey | null): Promise<object> => {
      const end = endOf(last);
      if (number !== null) deps.pageMemory.remember(request, number, end, hasMore);
      const endCursor = encodeCursor(context, end);
      return {
        page: number,
        perPage,
        count,
        hasMore,
        nextCursor: hasMore ? endCursor : null,
        endCursor,
        next: hasMore ? listUrl(request, { cursor: endCursor }) : null,
        ...(total !== null && { total: await total }),
      };
    };
    return { asOfMs, headers: composeLinks(request, hasMore ? endOf(firstLast) : null), pagination };
  };
  const requirement = { asOfMs: after.asOfMs };
  const chunks = chunkByKeys(request, after.key);
  return { reader, serializer, perPage, rowsMax: perPage, chunks, list: request, requirement, describe };
}

function chooseLater(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : Math.max(a, b);
}

/** Starts from the cursor, from memory, or by an index-only skip from the nearest end. Throws invalid_request for a long skip. */
async function findStart(reader: Reader, request: ListRequest): Promise<{ number: number | null; after: PageEnd }> {
  if ('after' in request.start) return { number: null, after: request.start.after };
  const { deps } = reader;
  const { page: number } = request.start;
  const before = number - 1;
  const { page, end } = deps.pageMemory.findNearest(request, before);
  if (page === before) return { number, after: end };
  const skipped = Math.abs(before - page) * request.perPage;
  const tooDeep = `This page skips ${skipped} rows, and at most ${deps.skipRowsMax} can be skipped. Follow next, or send nextCursor as cursor: a cursor costs the same everywhere.`;
  if (skipped > deps.skipRowsMax) throw makeInvalid([{ parameter: 'page', code: 'out_of_range', detail: tooDeep }]);
  const { statements, values } = request;
  const { keys } = statements;
  const isBackward = page > before;
  const statement = isBackward ? keys.before : keys[end.key ? 'after' : 'all'];
  const skipping = { ...values, skip: skipped - 1, limit: 1, ...bindRange(end.key, end.key) };
  const { rows, ...found } = await reader.readRows(statement, skipping, { asOfMs: end.asOfMs });
  const asOfMs = chooseLater(found.asOfMs, end.asOfMs);
  const [row = null] = rows as readonly OrderKey[];
  const key = row ?? (isBackward ? null : await reader.readKey(statements.last, { ...values, limit: 1 }, { asOfMs }));
  const after = { key, asOfMs };
  if (row !== null) deps.pageMemory.remember(request, before, after, true);
  return { number, after };
}

/** Retries as long as chunks are retried: a failure would break a large page. */
async function countTotal(reader: Reader, { statements, values }: ListRequest, { asOfMs }: PageEnd): Promise<number> {
  const { resumeMs } = reader.deps;
  const { rows } = await reader.readRows(statements.count, values, { asOfMs, resumeMs }, resumeMs);
  return Number(rows[0]?.[0]);
}

/** Proxies take a head of 8 KB. */
const linkBytesMax = 4096;

/** Follows RFC 8288. Leaves out a link too long for the head: the body has `next`. */
function composeLinks(request: ListRequest, end: PageEnd | null): { readonly Link?: string } {
  const first = `<${listUrl(request, {})}>; rel="first"`;
  const next = end && `<${listUrl(request, { cursor: encodeCursor(request.context, end) })}>; rel="next", `;
  const Link = `${next ?? ''}${first}`;
  return Link.length > linkBytesMax ? {} : { Link };
}

function listUrl(request: ListRequest, extra: Parameters): string {
  return composeUrl(request, request.compiled.resource.name, {
    ...request.filters,
    ...(request.order === 'desc' && { order: 'desc' }),
    perPage: String(request.perPage),
    ...(request.wantsTotal && { total: 'true' }),
    ...(request.fields !== undefined && { fields: request.fields }),
    ...extra,
  });
}

/** Encodes only the characters that need it, so that the URL is no longer than the client's; commas separate values of a list. */
export function composeUrl({ baseUrl }: { baseUrl: string }, path: string, parameters: Parameters): string {
  const pairs = Object.entries(parameters).map(
    ([name, value]) => `${name}=${[value].flat().map(encodeParameter).join(',')}`,
  );
  return `${baseUrl}/${path}?${pairs.join('&')}`;
}

/** Encodes a space as +, and keeps characters of a query (RFC 3986 §3.4) that encodeURIComponent encodes. */
function encodeParameter(value: string): string {
  return encodeURIComponent(value)
    .replace(/%(24|2F|3A|3B|3F|40)/g, decodeURIComponent)
    .replaceAll('%20', '+');
}
