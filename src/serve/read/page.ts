import { Problem } from '../../base/errors.js';
import type { Attempt, ReadTarget, Requirement } from '../../postgres/choice.js';
import { enough, type RunOptions } from '../../postgres/connection-pool.js';
import type { Row } from '../../postgres/row.js';
import type { Statement, Values } from '../../postgres/statement.js';
import { formatArray } from '../../resource/definition/filter-kinds.js';
import type { OrderKey } from '../../resource/definition/resource.js';
import type { JsonBytes } from '../../resource/projection/json-bytes.js';
import type { RowSerializer } from '../../resource/serializer/row-serializer.js';
import type { Bounds } from '../../resource/statements/conditions.js';
import type { ListStatements } from '../../resource/statements/statements.js';
import type { CopyStep, ReadContent } from '../read-register.js';
import { makeDataAsOf, type Piece, type Reply, type SentContent } from '../reply.js';
import type { ReadRequest } from './parse.js';
import { type ReadDeps, type Reader, requireContinuation } from './routing.js';

// Example: a page of 10,000 rows of 500 bytes. The first statement reads 100 rows, so that the first byte leaves early. The next one skips
// 9,899 keys after them and finds the key of the last row, and whether another follows, because the headers name the next page. Chunks of
// 800, 2,000, 2,000 … rows follow up to that key: each has at most eight times the rows of the one before, and about 1 MB. One chunk is
// read ahead of the client. A client that takes longer than 100 ms for a piece gets pieces of 16 KB, each read when it has taken the last.

/** Describes which rows a page reads, and how it ends: a list makes a plan, a sync pass makes one, and `runPlan` answers with it. */
export interface Plan {
  readonly reader: Reader;
  readonly serializer: RowSerializer;
  readonly perPage: number;
  readonly rowsMax: number;
  readonly chunks: ChunkSource;
  /** If null, the chunks end without a bound. Otherwise the headers name the next page, so its end is looked for. */
  readonly list: ListQuery | null;
  readonly requirement: Requirement;
  /** Step of a copy that a page with a sync token completes. */
  readonly copy?: CopyStep;
  /** Is called with the first rows. */
  readonly describe: (page: PageStart) => PageEnding;
}

export type ListQuery = { readonly statements: ListStatements; readonly values: Values };

export interface PageStart {
  readonly asOfMs: number | null;
  /** Key of the last of the first rows. */
  readonly last: OrderKey | null;
  readonly until: OrderKey | null;
  readonly hasMore: boolean;
}

export interface PageEnding {
  readonly asOfMs: number | null;
  readonly headers?: Reply['headers'];
  readonly pagination: (count: number, last: OrderKey | null) => Promise<object>;
}

/** Gives the statement of a chunk of so many rows, and the following chunks; null at the end. */
export type ChunkSource = (rows: number) => {
  readonly statement: Statement;
  readonly values: Values;
  /** `isMore` says that there was another row. */
  readonly following: (isMore: boolean, last: OrderKey | null) => ChunkSource | null;
};

/** Reads from after a key up to and including a key; null is no bound. */
export function chunkByKeys(listed: ListQuery, after: OrderKey | null, until: OrderKey | null = null): ChunkSource {
  const { statements, values } = listed;
  const statement = statements.rows[nameBounds(after, until)];
  const bound = { ...values, ...bindRange(after, until) };
  return (rows) => ({
    statement,
    values: { limit: rows + 1, ...bound },
    following: (isMore, last) => (isMore ? chunkByKeys(listed, last, until) : null),
  });
}

/** Each chunk looks up the next ids; the rows of some can be gone by then. */
export function chunkByIds(statement: Statement, ids: readonly string[]): ChunkSource {
  return (rows) => ({
    statement,
    values: { limit: rows + 1, ids: formatArray(ids.slice(0, rows)) },
    following: () => (ids.length > rows ? chunkByIds(statement, ids.slice(rows)) : null),
  });
}

/** Names the range from after a key up to and including a key; null is no bound. */
export function nameBounds(after: OrderKey | null, until: OrderKey | null): Bounds {
  if (after === null) return until === null ? 'all' : 'until';
  return until === null ? 'after' : 'between';
}

/** Names the values after0, after1, … until0, until1, … */
export function bindRange(after: OrderKey | null, until: OrderKey | null): Values {
  const nameValues = (end: string, key: OrderKey | null) => (key ?? []).map((value, i) => [`${end}${i}`, value]);
  return Object.fromEntries([...nameValues('after', after), ...nameValues('until', until)]);
}

interface Chunk {
  /** Rows after the start of the page or a comma. Must not be used after `release`. */
  readonly json: JsonBytes;
  /** Gives the buffer to the next page, when the bytes were sent or copied; without the call it is garbage. */
  readonly release: () => void;
  readonly count: number;
  readonly last: OrderKey | null;
  readonly following: ChunkSource | null;
  readonly target: ReadTarget;
  /** The server's moment before it was asked, in epoch milliseconds. */
  readonly asOfMs: number | null;
  readonly failures: number;
  readonly continuation: Requirement;
}

interface Page extends PageStart {
  readonly first: Chunk;
  /** When the end was found, in epoch milliseconds; 0 if no page follows it. */
  readonly foundMs: number;
}

/** Rows of a large page's first chunk; few, so that the first byte is sent early. */
const firstChunkRows = 100;
/** Pages of up to chunkRowsMax usual rows are one chunk. */
const firstChunkBytes = 4_194_304;
/** A later chunk ends at this multiple of its intended bytes. */
const excess = 4;
/** A silent backend may be frozen: the chunk is read again, then with the statement's time limit only. */
const firstStallMsMax = 1200;
/** Rows that cost as much as a single record. */
const rowsPerCost = 12;
const pageOpening = Buffer.from('{"data":[');

/** Tells whether the page of a list is known to have more rows than its first chunk, by their number or by their weight in earlier pages. */
export function isKnownLarge({ chunkRowsMax, chunkMemory }: ReadDeps, request: ReadRequest): boolean {
  return request.perPage > Math.min(chunkRowsMax, chunkMemory.countRowsFitting(request, firstChunkBytes));
}

/** Reads the first rows, and sends them with the rest. */
export async function runPlan(plan: Plan): Promise<Reply> {
  const page = await readStart(plan);
  const { asOfMs, headers, pagination } = plan.describe(page);
  const databaseMs = performance.now() - plan.reader.startedMs;
  const reply = { status: 200, headers: { ...headers, ...makeDataAsOf(asOfMs) }, databaseMs };
  const { first } = page;
  if (first.following !== null)
    return { body: streamPage(plan, page, pagination), ...reply, ...describeSent(plan, first.count) };
  const sent = await appendEnd(plan, pagination, first);
  return { body: first.json.view(), release: first.release, ...reply, ...sent };
}

/** `end` is there once all of them are sent. */
function describeSent({ reader, serializer, perPage }: Plan, records: number, end?: { readonly copy?: CopyStep }) {
  const { name: resource } = reader.request.compiled.resource;
  const content: ReadContent = { resource, personal: serializer.personal, records, ...end };
  return { page: { perPage, rows: end ? records : null }, content };
}

/** Writes the last members of the page into its last chunk. */
async function appendEnd(
  plan: Plan,
  pagination: PageEnding['pagination'],
  { json, count, last }: Pick<Chunk, 'json' | 'count' | 'last'>,
): Promise<SentContent> {
  const members: { readonly since?: string | null } = await pagination(count, last);
  json.appendText(`],"pagination":${JSON.stringify({ ...members, complete: true })}}`);
  return describeSent(plan, count, plan.copy && typeof members.since === 'string' ? { copy: plan.copy } : {});
}

/** Reads the first rows, and the key of a large page's end, counted from the last of them: snapshots differ. */
async function readStart({ reader, list, ...plan }: Plan): Promise<Page> {
  const first = await readFirstChunk({ reader, ...plan });
  const { last, asOfMs, following, continuation } = first;
  const start = { first, last, asOfMs, until: null, foundMs: 0, hasMore: following !== null };
  if (list === null || following === null) return start;
  const { statements, values } = list;
  const left = plan.perPage - first.count;
  if (left <= 0) return { ...start, first: { ...first, following: null }, until: last };
  const toEnd = { ...values, skip: left - 1, limit: 2, ...bindRange(last, null) };
  const { rows } = await reader.readRows(statements.keys.after, toEnd, continuation);
  const [end, beyond] = rows as readonly OrderKey[];
  const hasMore = beyond !== undefined;
  const until = end ?? (await reader.readKey(statements.last, { ...values, limit: 1 }, continuation));
  const foundMs = hasMore ? Date.now() : 0; // after a last page clients continue from the row that came last
  return { ...start, first: { ...first, following: chunkByKeys(list, last, until) }, until, foundMs, hasMore };
}

function readFirstChunk(plan: Omit<Plan, 'list'>): Promise<Chunk> {
  const { reader, rowsMax, chunks, requirement } = plan;
  const { chunkRowsMax, chunkMemory } = reader.deps;
  const isLarge = rowsMax > chunkRowsMax;
  const fitting = chunkMemory.countRowsFitting(reader.request, firstChunkBytes);
  const rows = Math.max(1, Math.min(fitting, isLarge ? firstChunkRows : rowsMax));
  const pool = isLarge || rowsMax > firstChunkRows * 2 ? 'long' : 'short';
  return readChunk(plan, { chunks, rows, bytes: firstChunkBytes, rowsBefore: 0, pool, requirement });
}

/** A chunk to read: at most `rows`, and no more once they fill `bytes`. */
interface ChunkRequest extends Pick<Plan, 'chunks' | 'requirement'> {
  readonly rows: number;
  readonly bytes: number;
  /** Rows of the page before this chunk: none if all ids of the chunks before are gone. */
  readonly rowsBefore: number;
  readonly pool: 'short' | 'long';
}

type ChunkContext = Pick<Plan, 'reader' | 'serializer'>;

/** Runs one statement on one server, and another replica can repeat it. If the rows exceed `bytes`, those that fit are read again. */
async function readChunk(context: ChunkContext, wanted: ChunkRequest): Promise<Chunk> {
  const { reader } = context;
  const { deps, request, checkMarks } = reader;
  const { following, ...statement } = wanted.chunks(wanted.rows);
  const run = { ...statement, workspace: request.caller.workspace, checkMarks };
  const outcome = await reader.runOnTarget(wanted.requirement, async (attempt): Promise<Chunk | number> => {
    const { target, asOfMs, failures } = attempt;
    const chunkRows = new ChunkRows(context, wanted);
    const options = chooseRunOptions(reader, wanted, attempt);
    const isWhole = await target[wanted.pool].run(run, options, (row) => chunkRows.add(row));
    const { json, count, isMore, last } = chunkRows;
    deps.chunkMemory.learn(request, json.length, count);
    if (!isWhole) return count; // so many rows fit
    request.signal.throwIfAborted(); // the short pool leaves out the rows of a client that is gone
    const continuation = requireContinuation(deps, attempt);
    const lent = deps.chunkMemory.lend(json, wanted.pool);
    return { target, asOfMs, failures, count, last, continuation, following: following(isMore, last), ...lent };
  });
  if (typeof outcome !== 'number') return outcome;
  return readChunk(context, { ...wanted, rows: outcome, bytes: Number.POSITIVE_INFINITY });
}

/** Lets a begun page wait for as long as a statement may run, because its refusal would break the response. */
function chooseRunOptions({ deps, request }: Reader, wanted: ChunkRequest, { replica, failures }: Attempt): RunOptions {
  const isContinuation = isOfBegunPage(wanted);
  return {
    stallMsMax: replica === null || failures > 0 ? undefined : firstStallMsMax,
    waitMs: isContinuation ? deps.statementTimeoutMs : deps.queueWaitMs,
    isContinuation,
    isChunk: true,
    cost: wanted.pool === 'long' ? 1 : Math.ceil(wanted.rows / rowsPerCost),
    signal: request.signal,
  };
}

const isOfBegunPage = ({ requirement }: ChunkRequest): boolean => requirement.pageServer !== undefined;

/** Rows of one attempt as JSON. A request that waits, and may be refused, holds no buffer: the first row borrows it. */
class ChunkRows {
  count = 0;
  /** The statement had another row, which belongs to the next chunk. */
  isMore = false;
  #json: JsonBytes | null = null;
  /** Keeps each byte of the last key as a character: decoding the key of each row would take a fifth of a list's processor time. */
  readonly #last: string[] = [];

  constructor(
    private readonly context: ChunkContext,
    private readonly wanted: ChunkRequest,
  ) {}

  get json(): JsonBytes {
    if (this.#json !== null) return this.#json;
    this.#json = this.context.reader.deps.chunkMemory.borrow(this.wanted.pool);
    if (!isOfBegunPage(this.wanted)) this.#json.appendRaw(pageOpening);
    return this.#json;
  }

  get last(): OrderKey | null {
    return this.count === 0 ? null : this.#last.map((bytes) => Buffer.from(bytes, 'latin1').toString());
  }

  /** Returns `enough` once the rows fill the bytes. */
  add(row: Row): typeof enough | undefined {
    this.isMore = this.count === this.wanted.rows;
    if (this.isMore) return undefined;
    if ((this.#json?.length ?? 0) >= this.wanted.bytes) return enough;
    const { json } = this;
    const { serializer, reader } = this.context;
    if (this.wanted.rowsBefore + this.count > 0) json.appendComma();
    serializer.append(row, reader.request.caller.workspace, json);
    this.count++;
    const { keyAt } = serializer;
    for (let i = 0; i < keyAt.length; i++) {
      const at = keyAt[i] as number;
      this.#last[i] = row.bytes.toString('latin1', row.starts[at], row.ends[at]);
    }
    return undefined;
  }
}

/** A client that takes longer for a piece gets chunks of `bytesIfSlow`. */
const slowMs = 100;
const bytesIfSlow = 16_384;

type PageProgress = ReturnType<typeof startProgress>;

function startProgress({ first, foundMs }: Page) {
  const { count, last, continuation } = first;
  const sent = { count, last, continuation };
  return { chunk: first, ...sent, rowsWanted: count, bytesHeld: 0, isSlow: false, isComplete: foundMs === 0 };
}

/** Reads one chunk ahead. */
async function* streamPage(plan: Plan, page: Page, pagination: PageEnding['pagination']): AsyncGenerator<Piece> {
  const progress = startProgress(page);
  try {
    while (progress.chunk.following !== null) {
      const { chunk, count } = progress;
      const takeNext = readAhead(plan, progress);
      const handedMs = performance.now();
      if (chunk.json.length > 0) yield { bytes: chunk.json.view(), ...describeSent(plan, count) };
      chunk.release();
      progress.isSlow = performance.now() - handedMs > slowMs;
      addChunk(plan, page, progress, await takeNext());
    }
    const { chunk, count, last } = progress;
    const sent = await appendEnd(plan, pagination, { json: chunk.json, count, last });
    yield { bytes: chunk.json.view(), ...sent };
    chunk.release();
  } finally {
    holdBytes(plan, progress, 0);
  }
}

/** Reads the next chunk at once; for a slow client, and again after a failure, when the returned function is called. */
function readAhead(plan: Plan, progress: PageProgress): () => Promise<Chunk> {
  const { deps } = plan.reader;
  const { chunk, count, continuation, isSlow } = progress;
  holdBytes(plan, progress, 0);
  const bytes = isSlow ? bytesIfSlow : Math.max(bytesIfSlow, Math.min(deps.chunkBytes, deps.chunkMemory.bytesPerPage));
  holdBytes(plan, progress, chunk.json.length + bytes);
  progress.rowsWanted = chooseRows(deps, progress, bytes, plan.rowsMax - count);
  const { rowsWanted } = progress;
  const wanted = {
    chunks: chunk.following as ChunkSource,
    requirement: continuation,
    rows: rowsWanted,
    bytes: bytes * excess,
    rowsBefore: count,
  };
  const read = (): Promise<Chunk> => readChunk(plan, { ...wanted, pool: 'long' });
  let ahead = isSlow ? null : read();
  ahead?.catch((error) => {
    const isLate = error instanceof Problem && error.code === 'query_timeout';
    if (!isLate) ahead = null; // it is tried again when the client has taken the piece before
  });
  return () => ahead ?? read();
}

/** If the row of the end did not arrive, the rest is read again on a replica as current as the end. */
function addChunk({ reader, list }: Plan, { until, foundMs }: Page, progress: PageProgress, chunk: Chunk): void {
  const { deps, request } = reader;
  const { target } = progress.chunk;
  if (chunk.failures > 0 || !target.state.healthy)
    deps.observe({ type: 'page_resumed', resource: request.compiled.resource.name, replica: chunk.target.name });
  const last = chunk.last ?? progress.last;
  progress.chunk = chunk;
  progress.last = last;
  progress.count += chunk.count;
  if (chunk.following !== null || progress.isComplete || until?.every((value, i) => value === last?.[i])) return;
  progress.isComplete = true;
  progress.chunk = { ...chunk, following: list && chunkByKeys(list, last, until) };
  if (!deps.primaryReachable()) return; // without its samples no replica can be shown to be as current
  const asOfMs = Math.max(progress.continuation.asOfMs ?? 0, foundMs);
  progress.continuation = { ...progress.continuation, asOfMs };
}

/** Counts the chunk at hand and the next against the memory of all large pages. */
function holdBytes({ reader }: Plan, progress: PageProgress, bytes: number): void {
  reader.deps.chunkMemory.release('chunks', progress.bytesHeld);
  reader.deps.chunkMemory.reserve('chunks', bytes);
  progress.bytesHeld = bytes;
}

/** Judges by the chunk before, whose rows may be lighter: at most eightfold. Takes about as many as are left at the end of a page. */
function chooseRows({ chunkRowsMax }: ReadDeps, progress: PageProgress, bytes: number, left: number): number {
  const { chunk, rowsWanted } = progress;
  const fitting = Math.floor((bytes * chunk.count) / Math.max(1, chunk.json.length));
  const most = Math.max(1, Math.min(fitting, rowsWanted * 8, chunkRowsMax * 2)); // the start of a statement costs as much as 400 light rows
  return Math.min(most, Math.max(firstChunkRows, left));
}
