import type { Key } from '../definition/row-serializer.js';
import { type Chunk, type ReadDeps, readChunk } from './chunks.js';
import type { ListRequest } from './parse.js';

/** Rows of the first chunk of a large page: few, so that the first byte is early. */
export const firstChunkRows = 100;

/** A client that takes longer than that for what it was given is not read ahead for. */
const slowMs = 100;

/** What a chunk aims at: at first, and again and again as much more; and for a slow client. */
const bytesAtFirst = 65_536;
const growth = 2;

/** What the chunks of all pages under way may aim at together: with many clients each gets smaller ones. */
const bytesTogether = 16_777_216;
let underWay = 0;
const bytesIfSlow = 16_384;

/**
 * A page of which the first chunk is read, up to the key `until`, as it arrives. One chunk is read ahead of a client that
 * keeps up, and the more it takes the larger they become, as each is a statement. For a slow one the next is read when it
 * has taken the last, and is small, so that it costs little memory and no connection. The bytes of a piece are overwritten
 * once the next is asked for.
 */
export async function* streamPage(
  deps: ReadDeps,
  request: ListRequest,
  chunk: Chunk,
  until: Key | null,
  finish: (count: number, last: Key | null) => Promise<string>,
): AsyncGenerator<Buffer> {
  const { continuation } = chunk;
  let rows = firstChunkRows;
  let { count, last } = chunk;
  let bytesWanted = Math.min(bytesAtFirst, deps.chunkBytes);
  let isSlow = false;
  underWay++;
  try {
    while (chunk.more) {
      rows = nextRows(deps, rows, chunk, bytesWanted);
      const range = { after: chunk.last, until };
      const read = (): Promise<Chunk> => readChunk(deps, request, range, rows, 'long', continuation);
      let ahead = isSlow ? null : read();
      ahead?.catch(() => {
        ahead = null; // what fails while the client takes its time may be possible again
      });
      const handedMs = performance.now();
      yield chunk.json.view();
      chunk.release();
      isSlow = performance.now() - handedMs > slowMs;
      bytesWanted = isSlow ? bytesIfSlow : Math.min(bytesWanted * growth, deps.chunkBytes, bytesTogether / underWay);
      const { replica } = chunk;
      chunk = await (ahead ?? read());
      if (chunk.failures > 0 || !replica.state.healthy)
        deps.observe({ type: 'page_resumed', resource: request.compiled.resource.name, replica: chunk.replica.name });
      count += chunk.count;
      last = chunk.last ?? last;
    }
    const ending = await finish(count, last);
    chunk.json.text(ending);
    yield chunk.json.view();
    chunk.release();
  } finally {
    underWay--;
  }
}

/** Rows that make about so many bytes, judged by the chunk before. */
function nextRows({ chunkRowsMax }: ReadDeps, rows: number, before: Chunk, bytesWanted: number): number {
  const fitting = Math.floor((bytesWanted * before.count) / Math.max(1, before.json.length));
  return Math.max(10, Math.min(fitting, rows * 8, chunkRowsMax));
}
