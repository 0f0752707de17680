import type { Key } from '../compile/row-writer.js';
import type { Replica } from '../db/replica.js';
import { type Need, onReplica, replicaUnavailable } from '../db/replicas.js';
import type { Source } from '../db/source.js';
import type { Statement, Values } from '../db/statement.js';
import type { CompiledResource } from '../compile/compiled.js';
import { databaseFault, Problem } from '../errors.js';
import type { Observe } from '../ops/events.js';
import type { FreshnessRouter } from './freshness.js';
import type { ListRequest, Reader } from './parse.js';

/** What reading needs of the gateway. */
export interface ReadDeps {
  readonly replicas: readonly Replica[];
  /** Where reads of a written resource go, so that a workspace sees its own writes. */
  readonly routeWritten: FreshnessRouter;
  readonly observe: Observe;
  readonly queueWaitMs: number;
  readonly chunkRowsMax: number;
  readonly chunkBytes: number;
  readonly chunkWaitMs: number;
  /** Origin and path prefix of links, such as https://example.com/api/v1. */
  readonly baseUrl: string;
  /** Aborts when the client is gone. */
  readonly signal: AbortSignal;
}

/** Rows of a page in order, as JSON joined by commas. */
export interface Chunk {
  readonly json: string;
  readonly count: number;
  /** Key of the last row; null when there is none. */
  readonly last: Key | null;
  /** Whether there was a row beyond `count`. */
  readonly more: boolean;
  readonly replica: Source;
}

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
  need: Need = {},
): Promise<Chunk> {
  const { writer } = request.compiled;
  const { workspace } = request.reader;
  const bounds = range.after ? (range.until ? 'between' : 'after') : range.until ? 'until' : 'all';
  const statement = request.statements.rows[bounds];
  const values = { ...request.values, ...rangeValues(range), limit: rows + 1 };
  const waitMs = need.asOfMs === undefined ? deps.queueWaitMs : deps.chunkWaitMs;
  return onSource(deps, request, need, async (replica) => {
    let json = '';
    let count = 0;
    let more = false;
    let last: Key | null = null;
    await replica[lane].run({ statement, workspace, values }, { waitMs, signal: deps.signal }, (row) => {
      if (count === rows) {
        more = true;
        return;
      }
      json += count === 0 ? writer.write(row, workspace) : `,${writer.write(row, workspace)}`;
      count++;
      last = writer.key(row);
    });
    return { json, count, last, more, replica };
  });
}

/** Does a piece of reading where it may be done: on a replica, or for a written resource perhaps on the primary. */
export async function onSource<T>(
  deps: ReadDeps,
  { compiled, reader }: { compiled: CompiledResource; reader: Reader },
  need: Need,
  work: (source: Source) => Promise<T>,
): Promise<T> {
  const route = compiled.write === null ? { need: {} } : await deps.routeWritten(reader.workspace);
  if ('need' in route) return onReplica(deps.replicas, { ...need, ...route.need }, deps.observe, work);
  return work(route.primary).catch((error) => {
    throw error instanceof Problem || databaseFault(error) === 'bug' ? error : replicaUnavailable();
  });
}

/** Rows of one of the small statements of a list: keys, or a count. */
export async function readRows(
  deps: ReadDeps,
  request: ListRequest,
  statement: Statement,
  extra: Values,
): Promise<(string | null)[][]> {
  const run = { statement, workspace: request.reader.workspace, values: { ...request.values, ...extra } };
  return onSource(deps, request, {}, async (replica) => {
    const rows: (string | null)[][] = [];
    await replica.long.run(run, { waitMs: deps.queueWaitMs, signal: deps.signal }, (row) => rows.push([...row]));
    return rows;
  });
}

/** A key that the key statements read. */
export function keyOf(row: (string | null)[] | undefined): Key | null {
  return row === undefined ? null : (row as unknown as Key);
}

export function rangeValues({ after, until }: Range): Values {
  return {
    ...(after && { after0: after[0], after1: after[1] }),
    ...(until && { until0: until[0], until1: until[1] }),
  };
}
