import type { ReadTarget } from '../db/read-target.js';
import type { Replica } from '../db/replica.js';
import { type ReplicaRequirement, replicaUnavailable, withReplica } from '../db/replicas.js';
import type { TextRow } from '../db/row.js';
import type { Caller, Statement, Values } from '../db/statement.js';
import type { CompiledResource } from '../definition/compiled.js';
import type { Key } from '../definition/row-serializer.js';
import { databaseErrorKind, Problem } from '../errors.js';
import type { Observe } from '../events.js';
import { JsonBytes } from '../projection/json-bytes.js';
import type { FreshnessRouter } from './freshness.js';
import { LastRowKey } from './last-row-key.js';
import type { ListRequest } from './parse.js';

/** Dependencies and bounds of reads; made once per gateway. */
export interface ReadDeps {
  readonly replicas: readonly Replica[];
  /** Where reads of a written resource go, so that a workspace sees its own writes. */
  readonly routeWritten: FreshnessRouter;
  readonly observe: Observe;
  readonly queueWaitMs: number;
  readonly chunkRowsMax: number;
  readonly chunkBytes: number;
  readonly chunkWaitMs: number;
  readonly resumeMs: number;
}

/** Rows of a page in order. */
export interface Chunk {
  /** JSON joined by commas, with what stands before it: the start of the page, or a comma. Not to be used after `release`. */
  readonly json: JsonBytes;
  /** Gives its memory back, once its bytes are with the client or elsewhere. */
  readonly release: () => void;
  readonly count: number;
  /** Key of the last row; null when there is none. */
  readonly last: Key | null;
  /** Whether there was a row beyond `count`. */
  readonly more: boolean;
  readonly replica: ReadTarget;
  /** The moment up to which the replica was known to be current before it was asked, epoch milliseconds. */
  readonly asOfMs: number | null;
  /** How often the chunk was begun in vain before. */
  readonly failures: number;
  /** What reading on from here asks of its source. */
  readonly continuation: PageContinuation;
}

/** What a part of a page asks of its source. */
export interface PageContinuation extends ReplicaRequirement {
  /** The page began on the primary, as no replica had replayed the workspace's last write. */
  readonly onPrimary?: boolean;
}

/** Rows of a small statement, and how current they are. */
export interface Rows {
  readonly rows: readonly TextRow[];
  readonly asOfMs: number | null;
}

/** Rows that cost as much as one detail. */
const rowsPerCost = 12;

/** A range of a list: behind a key, up to and including a key; null is open. */
export interface Range {
  readonly after: Key | null;
  readonly until: Key | null;
}

/**
 * Reads the first `rows` rows of a range, by one statement, on one replica: the one primitive of every list. It is
 * repeatable, so it survives the loss of its replica, and it holds no portal, so a slow client holds nothing.
 */
export async function readChunk(
  deps: ReadDeps,
  request: ListRequest,
  range: Range,
  rows: number,
  lane: 'short' | 'long',
  need: PageContinuation = {},
): Promise<Chunk> {
  const { serializer } = request.compiled;
  const { workspace } = request.caller;
  const bounds = range.after ? (range.until ? 'between' : 'after') : range.until ? 'until' : 'all';
  const statement = request.statements.rows[bounds];
  const values = { ...request.values, ...rangeValues(range), limit: rows + 1 };
  const begun = need.resumeMs !== undefined;
  const waitMs = begun ? deps.chunkWaitMs : deps.queueWaitMs;
  const cost = lane === 'long' ? 1 : Math.ceil(rows / rowsPerCost);
  const options = { waitMs, isContinuation: begun, cost, signal: request.signal };
  return withReadTarget(deps, request, need, async (replica, used, failures) => {
    const { asOfMs } = replica.state;
    const json = borrowed();
    const end = new LastRowKey(serializer.keyAt);
    let count = 0;
    let more = false;
    if (!begun) json.raw(pageOpening);
    await replica[lane].run({ statement, workspace, values }, options, (row) => {
      if (count === rows) {
        more = true;
        return;
      }
      if (begun || count > 0) json.comma();
      serializer.write(row, workspace, json);
      count++;
      end.set(row);
    });
    const continuation = { ...used, asOfMs: used.onPrimary ? null : (need.asOfMs ?? asOfMs), resumeMs: deps.resumeMs };
    return { ...lent(json), count, last: end.key, more, replica, asOfMs, failures, continuation };
  });
}

const pageOpening = Buffer.from('{"data":[');

/**
 * Where chunks are put together, used again and again: chunks live long enough to be taken for old by the garbage
 * collector, which then collected everything twenty times in a page of 100,000 rows.
 */
const spare: JsonBytes[] = [];
const spareBytesMax = 4_194_304;
let spareBytes = 0;
const bytesAtFirst = 65_536;

function borrowed(): JsonBytes {
  const json = spare.pop();
  if (json === undefined) return new JsonBytes(bytesAtFirst);
  spareBytes -= json.capacity;
  return json;
}

/**
 * What was put together, for as long as it is needed; a small part of a large buffer is copied, as a slow client may keep
 * it for long. A chunk that failed leaves no spare behind: rows may still be written to it.
 */
function lent(json: JsonBytes): Pick<Chunk, 'json' | 'release'> {
  const giveBack = (): void => {
    json.clear();
    if (spareBytes + json.capacity > spareBytesMax) return;
    spareBytes += json.capacity;
    spare.push(json);
  };
  if (json.length * 4 > json.capacity) return { json, release: giveBack };
  const copy = json.copy();
  giveBack();
  return { json: copy, release: () => {} };
}

/**
 * Does a piece of reading where it may be done: on a replica, or for a written resource perhaps on the primary. `work` is
 * told what was asked of its source. A page that has begun asks what its first rows asked, not what was written since.
 */
export async function withReadTarget<T>(
  deps: ReadDeps,
  { compiled, caller }: { compiled: CompiledResource; caller: Caller },
  need: PageContinuation,
  work: (source: ReadTarget, used: PageContinuation, failures: number) => Promise<T>,
): Promise<T> {
  const isSettled = compiled.write === null || (need.resumeMs !== undefined && !need.onPrimary);
  const route = isSettled ? { need: {} } : await deps.routeWritten(caller.workspace, need.resumeMs);
  if ('need' in route) {
    const used = { ...need, ...route.need, onPrimary: false };
    return withReplica(deps.replicas, used, deps.observe, (replica, failures) => work(replica, used, failures));
  }
  return work(route.primary, { ...need, onPrimary: true }, 0).catch((error) => {
    throw error instanceof Problem || databaseErrorKind(error) === 'bug' ? error : replicaUnavailable();
  });
}

/** Rows of one of the small statements of a list: keys, or a count. */
export async function readRows(
  deps: ReadDeps,
  request: ListRequest,
  statement: Statement,
  extra: Values,
  need: PageContinuation = {},
): Promise<Rows> {
  const run = { statement, workspace: request.caller.workspace, values: { ...request.values, ...extra } };
  return withReadTarget(deps, request, need, async (replica) => {
    const { asOfMs } = replica.state;
    const rows: TextRow[] = [];
    await replica.long.run(run, { waitMs: deps.queueWaitMs, signal: request.signal }, (row) => rows.push(row.texts()));
    return { rows, asOfMs };
  });
}

/** A key that the key statements read. */
export function keyOf(row: TextRow | undefined): Key | null {
  return row === undefined ? null : (row as unknown as Key);
}

export function rangeValues({ after, until }: Range): Values {
  return {
    ...(after && { after0: after[0], after1: after[1] }),
    ...(until && { until0: until[0], until1: until[1] }),
  };
}
