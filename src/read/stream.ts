import type { Key } from '../definition/row-serializer.js';
import { type Chunk, readChunk } from './chunks.js';
import type { ListRequest } from './parse.js';
import type { PagePhase, ReadDeps } from './routing.js';

/** Rows of the first chunk of a large page: few, so that the first byte is sent early. */
export const firstChunkRows = 100;

/** A client that takes longer than this for a piece is slow. */
const slowMs = 100;

/** Bytes that a chunk aims at: the first after `firstChunkRows`, growing for a fast client, and for a slow client. */
const bytesAtFirst = 65_536;
const growth = 2;
const bytesIfSlow = 16_384;
/** A chunk may have so many times chunkRowsMax rows: each begins with a statement, whose start costs as much as 400 light rows. */
const rowsFactor = 2;

/** Where a page ends. */
export interface Limit {
  /** The key up to which it has rows; null is no bound. */
  readonly until: Key | null;
  /** When the key had been found, epoch milliseconds; 0 where the next page does not begin behind it. */
  readonly foundMs: number;
}

/**
 * Streams a page whose first chunk is read, up to its limit. Prefetches one chunk for a fast client and doubles its size
 * each time, because each is a statement. A slow client gets small chunks, each read when it has taken the last, so that it
 * costs little memory and no connection. The bytes of a piece are overwritten once the next is asked for.
 *
 * Where the row of the limit does not come it is deleted, or the replica lacks it that was found on another one: the rest is read once more, on
 * a replica that is as current as that one was. The next page begins behind the limit, and would leave out what this one lacks.
 */
export async function* streamPage(
  deps: ReadDeps,
  request: ListRequest,
  chunk: Chunk,
  { until, foundMs }: Limit,
  finish: (count: number, last: Key | null) => Promise<string>,
): AsyncGenerator<Buffer> {
  let { count, last, continuation } = chunk;
  let isComplete = foundMs === 0;
  let rows = count;
  let bytesWanted = Math.min(Math.max(bytesAtFirst, chunk.json.length * growth), deps.chunkBytes);
  let isSlow = false;
  const { chunkMemory } = deps;
  let [bytesBefore, bytesHeld] = [chunk.json.length, 0];
  try {
    while (chunk.more) {
      chunkMemory.useForChunks(-bytesHeld);
      bytesWanted = Math.max(bytesIfSlow, Math.min(bytesWanted, chunkMemory.chunkBytesMax));
      bytesHeld = bytesBefore + bytesWanted; // the chunk at hand and the next
      bytesBefore = bytesWanted;
      chunkMemory.useForChunks(bytesHeld);
      rows = Math.min(nextRows(deps, rows, chunk, bytesWanted), Math.max(firstChunkRows, request.perPage - count));
      const range = { after: last, until };
      const read = (): Promise<Chunk> => readChunk(deps, request, range, rows, 'long', continuation);
      let ahead = isSlow ? null : read();
      ahead?.catch(() => {
        ahead = null; // it is tried again when the client has taken the piece before
      });
      const handedMs = performance.now();
      if (chunk.count > 0) yield chunk.json.view();
      chunk.release();
      isSlow = performance.now() - handedMs > slowMs;
      bytesWanted = isSlow ? bytesIfSlow : Math.min(bytesWanted * growth, deps.chunkBytes);
      const { target } = chunk;
      chunk = await (ahead ?? read());
      if (chunk.failures > 0 || !target.state.healthy)
        deps.observe({ type: 'page_resumed', resource: request.compiled.resource.name, replica: chunk.target.name });
      count += chunk.count;
      last = chunk.last ?? last;
      if (chunk.more || isComplete || until?.every((value, i) => value === last?.[i])) continue;
      isComplete = true;
      continuation = asCurrentAs(deps, continuation, foundMs);
      chunk = { ...chunk, more: true };
    }
    const ending = await finish(count, last);
    chunk.json.text(ending);
    yield chunk.json.view();
    chunk.release();
  } finally {
    chunkMemory.useForChunks(-bytesHeld);
  }
}

/** The phase on a server that is known to be current up to the moment; the same phase while there are no samples of the primary. */
function asCurrentAs({ primaryReachable }: ReadDeps, phase: PagePhase, ms: number): PagePhase {
  const { requirement } = phase;
  const asOfMs = primaryReachable() ? Math.max(requirement.asOfMs ?? 0, ms) : requirement.asOfMs;
  return { ...phase, requirement: { ...requirement, ...(asOfMs !== undefined && { asOfMs }) } };
}

/** The number of rows that make about `bytesWanted`, judged by the chunk before. */
function nextRows({ chunkRowsMax }: ReadDeps, rows: number, before: Chunk, bytesWanted: number): number {
  const fitting = Math.floor((bytesWanted * before.count) / Math.max(1, before.json.length));
  return Math.max(10, Math.min(fitting, rows * 8, rowsFactor * chunkRowsMax));
}
