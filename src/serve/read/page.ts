import { Problem } from '../../base/errors.js';
import type { ReadTarget, Requirement } from '../../postgres/choice.js';
import { enough } from '../../postgres/connection-pool.js';
import type { Values } from '../../postgres/statement.js';
import type { Key } from '../../resource/definition/row-serializer.js';
import type { JsonBytes } from '../../resource/projection/json-bytes.js';
import type { Reading } from './parse.js';
import type { PageSize, Reply } from './reply.js';
import { continuationOf, type ReadDeps, readRows, withReadTarget } from './routing.js';

export interface Chunk {
  /** After the start of the page or a comma. Must not be used after `release`. */
  readonly json: JsonBytes;
  /** To be called when the bytes were sent or copied. */
  readonly release: () => void;
  readonly count: number;
  readonly last: Key | null;
  readonly more: boolean;
  readonly target: ReadTarget;
  /** Of the server before it was asked, epoch milliseconds. */
  readonly asOfMs: number | null;
  readonly failures: number;
  readonly continuation: Requirement;
}

export interface Page {
  readonly first: Chunk;
  readonly until: Key | null;
  /** When the end was found, epoch milliseconds; 0 if the next page does not begin there. */
  readonly foundMs: number;
}

/** After a key, up to and including a key; null is no bound. */
export interface Range {
  readonly after: Key | null;
  readonly until: Key | null;
}

/** Few, so that the first byte is sent early. */
const firstChunkRows = 100;
/** Pages of up to chunkRowsMax usual rows are one chunk. */
const firstChunkBytes = 4_194_304;
/** A later chunk ends at so many times the bytes that it aims at. */
const excess = 4;
/** A silent backend may be frozen: the chunk is read again, then with the statement's time limit only. */
const firstStallMsMax = 1200;
/** So many rows cost as much as one detail. */
const rowsPerCost = 12;
const pageOpening = Buffer.from('{"data":[');

/** Reads the first rows, and the key of a large page's end, counted from the last of them: snapshots differ. */
export async function readPage(
  deps: ReadDeps,
  request: Reading,
  after: Key | null,
  requirement: Requirement,
): Promise<Page & { readonly hasMore: boolean }> {
  const { perPage, statements } = request;
  const first = await readFirstChunk(deps, request, after, perPage, requirement);
  const left = perPage - first.count;
  if (!first.more || left <= 0)
    return { first: { ...first, more: false }, until: first.more ? first.last : null, foundMs: 0, hasMore: first.more };
  const values = { skip: left - 1, limit: 2, ...rangeValues({ after: first.last, until: null }) };
  const { rows } = await readRows(deps, request, statements.keys.after, values, first.continuation);
  const [end, beyond] = rows as readonly Key[];
  const hasMore = beyond !== undefined;
  const until = end ?? (await lastKey(deps, request, first.continuation));
  return { first, until, foundMs: hasMore ? Date.now() : 0, hasMore }; // behind a last page clients go on from the row that came last
}

export function readFirstChunk(
  deps: ReadDeps,
  request: Reading,
  after: Key | null,
  pageRows: number,
  requirement: Requirement,
): Promise<Chunk> {
  const isLarge = pageRows > deps.chunkRowsMax;
  const fitting = deps.chunkMemory.rowsFitting(request, firstChunkBytes);
  const rows = Math.min(fitting, isLarge ? firstChunkRows : pageRows);
  const pool = isLarge || pageRows > firstChunkRows * 2 ? 'long' : 'short';
  const size = { rows: Math.max(1, rows), bytes: firstChunkBytes };
  return readChunk(deps, request, { after, until: null }, size, pool, requirement);
}

export async function lastKey(deps: ReadDeps, request: Reading, requirement: Requirement): Promise<Key | null> {
  const { rows } = await readRows(deps, request, request.statements.last, { limit: 1 }, requirement);
  return (rows[0] as Key | undefined) ?? null;
}

/** One statement on one server; a second one if the rows exceed `bytes`. Another replica can repeat it. */
async function readChunk(
  deps: ReadDeps,
  request: Reading,
  range: Range,
  { rows, bytes }: { readonly rows: number; readonly bytes: number },
  pool: 'short' | 'long',
  requirement: Requirement,
): Promise<Chunk> {
  const { serializer, signal, caller } = request;
  const { keyAt } = serializer;
  const bounds = range.after ? (range.until ? 'between' : 'after') : range.until ? 'until' : 'all';
  const statement = request.statements.rows[bounds];
  const values = { limit: rows + 1, ...request.values, ...rangeValues(range) };
  const isContinuation = requirement.ofPage !== undefined;
  const waitMs = isContinuation ? deps.statementTimeoutMs : deps.queueWaitMs;
  const cost = pool === 'long' ? 1 : Math.ceil(rows / rowsPerCost);
  const chunk = await withReadTarget(deps, request, requirement, async (attempt) => {
    let borrowed: JsonBytes | null = null; // until the first row: requests that wait, and may be refused, hold no buffer
    const begin = (): JsonBytes => {
      borrowed = deps.chunkMemory.borrow(pool);
      if (!isContinuation) borrowed.raw(pageOpening);
      return borrowed;
    };
    /** Each byte a character: decoding each row's texts would take a fifth of a list's processor time. */
    const last: string[] = [];
    let count = 0;
    let more = false;
    const { target, asOfMs, failures, replica } = attempt;
    const judged = request.attempt?.();
    const stallMsMax = replica === null || failures > 0 ? undefined : firstStallMsMax;
    const isWhole = await target[pool].run(
      { statement, workspace: caller.workspace, values, onMark: judged?.onMark },
      { stallMsMax, waitMs, isContinuation, isChunk: true, cost, signal },
      (row) => {
        more = count === rows;
        if (more || (borrowed?.length ?? 0) >= bytes) return more || enough;
        const json = borrowed ?? begin();
        if (isContinuation || count > 0) json.comma();
        serializer.write(row, caller.workspace, json);
        count++;
        for (let i = 0; i < keyAt.length; i++) {
          const at = keyAt[i] as number;
          last[i] = row.bytes.toString('latin1', row.starts[at], row.ends[at]);
        }
        return undefined;
      },
    );
    deps.chunkMemory.learn(request, (borrowed ?? begin()).length, count);
    if (!isWhole) return count;
    judged?.succeed();
    signal.throwIfAborted(); // the short pool leaves out the rows of a client that is gone
    return {
      ...{ target, asOfMs, failures, count, more, continuation: continuationOf(deps, attempt) },
      ...deps.chunkMemory.lend(borrowed ?? begin(), pool),
      last: count === 0 ? null : last.map((bytes) => Buffer.from(bytes, 'latin1').toString()),
    };
  });
  if (typeof chunk !== 'number') return chunk;
  return readChunk(deps, request, range, { rows: chunk, bytes: Number.POSITIVE_INFINITY }, pool, requirement);
}

/** after0, after1, … until0, until1, … */
export function rangeValues(range: Range): Values {
  const named = (end: keyof Range) => (range[end] ?? []).map((value, i) => [`${end}${i}`, value]);
  return Object.fromEntries([...named('after'), ...named('until')]);
}

export async function pageReply(
  deps: ReadDeps,
  request: Reading,
  page: Page,
  rest: Pick<Reply, 'headers' | 'databaseMs'>,
  finish: (count: number, last: Key | null) => Promise<object>,
): Promise<Reply> {
  const { first } = page;
  const size: PageSize = { perPage: request.perPage, rows: null };
  const ending = async (count: number, last: Key | null): Promise<string> => {
    size.rows = count;
    return `],"pagination":${JSON.stringify({ ...(await finish(count, last)), complete: true })}}`;
  };
  const reply = { status: 200, page: size, ...rest };
  if (first.more) return { body: streamPage(deps, request, page, ending), ...reply };
  first.json.text(await ending(first.count, first.last));
  return { body: first.json.view(), release: first.release, ...reply };
}

/** A client that takes longer for a piece gets chunks of so many bytes. */
const slowMs = 100;
const bytesIfSlow = 16_384;

/** Reads one chunk ahead. If the end row never arrives, the rest is read again on a replica as current as the end. */
async function* streamPage(
  deps: ReadDeps,
  request: Reading,
  { first, until, foundMs }: Page,
  ending: (count: number, last: Key | null) => Promise<string>,
): AsyncGenerator<Buffer> {
  const { chunkMemory } = deps;
  let chunk = first;
  let { count, last, continuation } = chunk;
  let rows = count;
  let isComplete = foundMs === 0;
  let isSlow = false;
  let bytesHeld = 0; // the chunk at hand and the next
  try {
    while (chunk.more) {
      chunkMemory.release('chunks', bytesHeld);
      const bytesWanted = isSlow ? bytesIfSlow : Math.max(bytesIfSlow, Math.min(deps.chunkBytes, chunkMemory.share));
      bytesHeld = chunk.json.length + bytesWanted;
      chunkMemory.reserve('chunks', bytesHeld);
      rows = nextRows(deps, rows, chunk, bytesWanted, request.perPage - count);
      const range = { after: last, until };
      const size = { rows, bytes: bytesWanted * excess };
      const read = (): Promise<Chunk> => readChunk(deps, request, range, size, 'long', continuation);
      let ahead = isSlow ? null : read();
      ahead?.catch((error) => {
        const isLate = error instanceof Problem && error.code === 'query_timeout';
        if (!isLate) ahead = null; // it is tried again when the client has taken the piece before
      });
      const handedMs = performance.now();
      if (chunk.count > 0) yield chunk.json.view();
      chunk.release();
      isSlow = performance.now() - handedMs > slowMs;
      const { target } = chunk;
      chunk = await (ahead ?? read());
      if (chunk.failures > 0 || !target.state.healthy)
        deps.observe({ type: 'page_resumed', resource: request.compiled.resource.name, replica: chunk.target.name });
      count += chunk.count;
      last = chunk.last ?? last;
      if (chunk.more || isComplete || until?.every((value, i) => value === last?.[i])) continue;
      isComplete = true;
      if (deps.primaryReachable())
        // Without samples of the primary no replica can be shown to be as current.
        continuation = { ...continuation, asOfMs: Math.max(continuation.asOfMs ?? 0, foundMs) };
      chunk = { ...chunk, more: true };
    }
    chunk.json.text(await ending(count, last));
    yield chunk.json.view();
    chunk.release();
  } finally {
    chunkMemory.release('chunks', bytesHeld);
  }
}

/** Judged by the chunk before; about as many as are left of a page at its end. */
function nextRows({ chunkRowsMax }: ReadDeps, rows: number, before: Chunk, bytesWanted: number, left: number): number {
  const fitting = Math.floor((bytesWanted * before.count) / Math.max(1, before.json.length));
  const most = Math.max(1, Math.min(fitting, rows * 8, chunkRowsMax * 2)); // the start of a statement costs as much as 400 light rows
  return Math.min(most, Math.max(firstChunkRows, left));
}
