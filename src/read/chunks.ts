import type { Key } from '../definition/row-serializer.js';
import type { Row } from '../postgres/row.js';
import type { Values } from '../postgres/statement.js';
import { JsonBytes } from '../projection/json-bytes.js';
import type { ListRequest } from './parse.js';
import type { ReadTarget } from './routing.js';
import { continuationOf, type PagePhase, type ReadDeps, withReadTarget } from './routing.js';

/** Rows of a page in order. */
export interface Chunk {
  /** JSON of the rows, joined by commas, after the start of the page or a comma. Must not be used after `release`. */
  readonly json: JsonBytes;
  /** Gives the buffer back; to be called when its bytes were sent or copied. */
  readonly release: () => void;
  readonly count: number;
  /** Key of the last row; null when there is none. */
  readonly last: Key | null;
  /** Whether the range has a row after these. */
  readonly more: boolean;
  readonly target: ReadTarget;
  /** The moment up to which the server was known to be current before it was asked, epoch milliseconds. */
  readonly asOfMs: number | null;
  /** Failed attempts before this one. */
  readonly failures: number;
  /** The phase of the chunks that continue the page. */
  readonly continuation: PagePhase;
}

/** A backend that sends nothing for so long may be frozen: the chunk is read again, this time with the statement's time limit only. */
const firstStallMsMax = 1200;

/** A range of a list: after a key, up to and including a key; null is no bound. */
export interface Range {
  readonly after: Key | null;
  readonly until: Key | null;
}

/** A statement of so many rows costs as much as one detail. */
const rowsPerCost = 12;
const pageOpening = Buffer.from('{"data":[');

/**
 * Reads the first `rows` rows of a range, by one statement on one server. Every list is made of such chunks: a chunk can be
 * repeated on another replica when its own is lost, and it leaves no portal open for a slow client.
 */
export async function readChunk(
  deps: ReadDeps,
  request: ListRequest,
  range: Range,
  rows: number,
  pool: 'short' | 'long',
  phase: PagePhase,
): Promise<Chunk> {
  const { serializer } = request.compiled;
  const { workspace } = request.caller;
  const bounds = range.after ? (range.until ? 'between' : 'after') : range.until ? 'until' : 'all';
  const statement = request.statements.rows[bounds];
  const values = { limit: rows + 1, ...request.values, ...rangeValues(range) };
  const isContinuation = phase.kind === 'continuation';
  const waitMs = isContinuation ? deps.chunkWaitMs : deps.queueWaitMs;
  const cost = pool === 'long' ? 1 : Math.ceil(rows / rowsPerCost);
  const gatheredRows = isContinuation ? rows : undefined; // the first byte waits for the other rows
  const options = { waitMs, isContinuation, takesTurns: true, cost, gatheredRows, signal: request.signal };
  return withReadTarget(deps, request, phase, async (attempt) => {
    let borrowed: JsonBytes | null = null; // until the first row: requests that wait, and may be refused, hold no buffer
    const begin = (): JsonBytes => {
      borrowed = deps.chunkMemory.borrow(pool);
      if (!isContinuation) borrowed.raw(pageOpening);
      return borrowed;
    };
    const last = new LastRowKey(serializer.keyAt);
    let count = 0;
    let more = false;
    const { target, asOfMs, failures, onPrimary } = attempt;
    const stallMsMax = onPrimary || failures > 0 ? undefined : firstStallMsMax;
    await target[pool].run(
      { statement, workspace, values, onMark: request.onMark },
      { stallMsMax, ...options },
      (row) => {
        if (count === rows) {
          more = true;
          return;
        }
        const json = borrowed ?? begin();
        if (isContinuation || count > 0) json.comma();
        serializer.write(row, workspace, json);
        count++;
        last.set(row);
      },
    );
    request.signal.throwIfAborted(); // the short pool leaves out the rows of a client that is gone
    const continuation = continuationOf(deps, attempt);
    return {
      asOfMs,
      failures,
      continuation,
      ...deps.chunkMemory.lend(borrowed ?? begin()),
      target,
      count,
      last: last.key,
      more,
    };
  });
}

export function rangeValues({ after, until }: Range): Values {
  return { ...keyValues('after', after), ...keyValues('until', until) };
}

/** Names the values of a key as the statements' parameters: after0, after1, … */
function keyValues(end: 'after' | 'until', key: Key | null): Values {
  return Object.fromEntries((key ?? []).map((value, i) => [`${end}${i}`, value]));
}

/** Copies the bytes of the last row's key, so that texts are made for the last row only. */
export class LastRowKey {
  readonly #at: readonly number[];
  readonly #bytes = new JsonBytes(64);
  /** Where the value of each column of the key ends; empty before the first row. */
  readonly #ends: number[] = [];

  constructor(at: readonly number[]) {
    this.#at = at;
  }

  set(row: Row): void {
    this.#bytes.clear();
    for (let i = 0; i < this.#at.length; i++) {
      const column = this.#at[i] as number;
      this.#bytes.part(row, row.starts[column] as number, row.ends[column] as number);
      this.#ends[i] = this.#bytes.length;
    }
  }

  /** Null before the first row. */
  get key(): Key | null {
    const bytes = this.#bytes.view();
    return this.#ends.length === 0
      ? null
      : this.#ends.map((end, i) => bytes.toString('utf8', this.#ends[i - 1] ?? 0, end));
  }
}
