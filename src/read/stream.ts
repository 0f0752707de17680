import type { Key } from '../compile/row-writer.js';
import { type Chunk, type Range, type ReadDeps, readChunk } from './chunks.js';
import type { ListRequest } from './parse.js';

/** Rows of the first chunk of a large page: few, so that the first byte is early. */
export const firstChunkRows = 100;

/** Where a page lies, and what is known of its end before its rows are read. */
export interface Page {
  readonly number: number | null;
  readonly range: Range;
  readonly hasMore: boolean;
  readonly first: Chunk;
}

/** A client that takes longer than that for what it was given is not read ahead for. */
const slowMs = 100;

/**
 * The page as it arrives. One chunk is read ahead of a client that keeps up; for a slow one the next is read when it has
 * taken the last, so that it costs one chunk of memory and no connection.
 */
export async function* streamPage(
  deps: ReadDeps,
  request: ListRequest,
  page: Page,
  finish: (count: number, last: Key | null) => Promise<string>,
): AsyncGenerator<string | Buffer> {
  let chunk = page.first;
  let opening = '{"data":[';
  let rows = firstChunkRows;
  let { count, last } = chunk;
  let isSlow = false;
  while (chunk.more) {
    rows = nextRows(deps, rows, chunk);
    const range = { after: chunk.last, until: page.range.until };
    const read = (): Promise<Chunk> => readChunk(deps, request, range, rows, 'long', page.first.onward);
    let ahead = isSlow ? null : read();
    ahead?.catch(() => {
      ahead = null; // what fails while the client takes its time may be possible again
    });
    const handedMs = performance.now();
    if (opening !== '') yield opening;
    yield* chunk.parts;
    isSlow = performance.now() - handedMs > slowMs;
    const { replica } = chunk;
    chunk = await (ahead ?? read());
    opening = chunk.count > 0 ? ',' : '';
    if (chunk.failures > 0 || !replica.state.healthy)
      deps.observe({ type: 'page_resumed', resource: request.compiled.resource.name, replica: chunk.replica.name });
    count += chunk.count;
    last = chunk.last ?? last;
  }
  if (opening !== '') yield opening;
  yield* chunk.parts;
  yield await finish(count, last);
}

/** Rows that make about chunkBytes, judged by the chunk before. */
function nextRows(deps: ReadDeps, rows: number, before: Chunk): number {
  const bytes = before.parts.reduce((sum, part) => sum + part.length, 0);
  const fitting = Math.floor((deps.chunkBytes * before.count) / Math.max(1, bytes));
  return Math.max(10, Math.min(fitting, rows * 8, deps.chunkRowsMax));
}
