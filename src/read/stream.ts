import type { Key } from '../compile/row-writer.js';
import { type Chunk, type ReadDeps, readChunk } from './chunks.js';
import type { ListRequest } from './parse.js';

/** Rows of the first chunk of a large page: few, so that the first byte is early. */
export const firstChunkRows = 100;

/** A client that takes longer than that for what it was given is not read ahead for. */
const slowMs = 100;

/**
 * A page of which the first chunk is read, up to the key `until`, as it arrives. One chunk is read ahead of a client that keeps up; for a slow one the next is read when it has
 * taken the last, and is smaller, so that it costs little memory and no connection. A chunk is forgotten when the next is
 * there, which is why the parameter is used up.
 */
export async function* streamPage(
  deps: ReadDeps,
  request: ListRequest,
  chunk: Chunk,
  until: Key | null,
  finish: (count: number, last: Key | null) => Promise<string>,
): AsyncGenerator<string | Buffer> {
  const { onward } = chunk;
  let opening = '{"data":[';
  let rows = firstChunkRows;
  let { count, last } = chunk;
  let isSlow = false;
  while (chunk.more) {
    rows = nextRows(deps, rows, chunk, isSlow ? deps.chunkBytes / 4 : deps.chunkBytes);
    const range = { after: chunk.last, until };
    const read = (): Promise<Chunk> => readChunk(deps, request, range, rows, 'long', onward);
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

/** Rows that make about so many bytes, judged by the chunk before. */
function nextRows({ chunkRowsMax }: ReadDeps, rows: number, before: Chunk, bytesWanted: number): number {
  const bytes = before.parts.reduce((sum, part) => sum + part.length, 0);
  const fitting = Math.floor((bytesWanted * before.count) / Math.max(1, bytes));
  return Math.max(10, Math.min(fitting, rows * 8, chunkRowsMax));
}
