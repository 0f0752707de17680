import type { ServerResponse } from 'node:http';
import type { Duplex, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Context } from 'koa';
import { reasonOf } from '../errors.js';
import type { Observe } from '../events.js';
import type { ChunkMemory } from '../read/chunk-memory.js';
import type { Reply } from '../read/reply.js';
import { chooseEncoding, compressed, type Encoding } from './encodings.js';
import { ClientGone, exchangeOf } from './exchange.js';

/** Bodies below this many characters are sent as they are: compressing them saves less than a packet. */
const compressFrom = 1000;

/** Dependencies and bounds of sending. */
export interface RespondDeps {
  readonly observe: Observe;
  /** A page that takes longer is broken off. */
  readonly pageTimeMaxMs: number;
  /** Those that lists can have, best first. */
  readonly encodings: readonly Encoding[];
  /** Has the budget of compressors: beyond it large pages are sent as they are. */
  readonly reads: { readonly chunkMemory: ChunkMemory };
}

/** Sends a reply. A body in pieces is sent as it comes, with backpressure; if it cannot be finished the connection is destroyed. */
export async function respond(ctx: Context, reply: Reply, compressible: boolean, deps: RespondDeps): Promise<void> {
  const exchange = exchangeOf(ctx);
  exchange.page = reply.page ?? null;
  ctx.status = reply.status;
  for (const [name, value] of Object.entries(reply.headers)) ctx.res.setHeader(name, value);
  ctx.res.setHeader('Server-Timing', `auth;dur=${exchange.authMs.toFixed(2)}, db;dur=${reply.databaseMs.toFixed(2)}`);
  if (compressible) ctx.res.setHeader('Vary', 'Accept-Encoding');
  if (reply.body === null) return;
  ctx.res.setHeader('Content-Type', 'application/json');
  const encoding = compressible ? chooseEncoding(ctx.headers['accept-encoding'], deps.encodings) : undefined;
  if (reply.release) ctx.res.once('close', reply.release);
  if (typeof reply.body === 'string' || Buffer.isBuffer(reply.body)) {
    if (encoding === undefined || reply.body.length < compressFrom) {
      ctx.body = reply.body;
    } else {
      ctx.res.setHeader('Content-Encoding', encoding.name);
      ctx.body = await compressed(reply.body, encoding);
    }
    return;
  }
  if (ctx.method === 'HEAD') {
    if (encoding !== undefined) ctx.res.setHeader('Content-Encoding', encoding.name);
    await reply.body.return(undefined);
    ctx.respond = false;
    ctx.res.end();
    return;
  }
  const { chunkMemory } = deps.reads;
  if (encoding === undefined || !chunkMemory.beginCompressor(encoding.bytes))
    return sendPieces(ctx, reply.body, null, deps);
  ctx.res.setHeader('Content-Encoding', encoding.name);
  try {
    await sendPieces(ctx, reply.body, encoding.compressor(), deps);
  } finally {
    chunkMemory.endCompressor(encoding.bytes);
  }
}

/** Sends the pieces, through a compressor if there is one. A failure breaks the connection. */
async function sendPieces(
  ctx: Context,
  pieces: AsyncGenerator<Buffer>,
  compressor: Duplex | null,
  { observe, pageTimeMaxMs }: RespondDeps,
): Promise<void> {
  ctx.respond = false; // from here on the response is ours: Koa would end it cleanly
  const { res } = ctx;
  res.setMaxListeners(20); // a compressor in front of it brings several of its own
  const overtime = setTimeout(() => res.destroy(new Error('page time exceeded')), pageTimeMaxMs);
  try {
    const compressed = compressor === null ? null : pipeline(compressor, res);
    compressed?.catch(() => {}); // writing to the compressor rejects as well
    const body: Writable = compressor ?? res;
    for await (const piece of pieces) await taken(res, (done) => body.write(piece, done));
    await taken(res, (done) => body.end(done));
    await compressed;
  } catch (error) {
    // To an HTTP/1.0 client, whose body ends with the connection, an orderly end would look like a whole page.
    res.socket?.resetAndDestroy();
    res.destroy();
    const gone = error instanceof ClientGone;
    if (!gone) observe({ type: 'page_broken', requestId: exchangeOf(ctx).requestId, reason: reasonOf(error as Error) });
  } finally {
    clearTimeout(overtime);
  }
}

/** Resolves when what was given has left for the socket, so that its bytes may be overwritten. Rejects when the response is closed. */
function taken(res: ServerResponse, give: (done: (error?: Error | null) => void) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const closed = (): void => reject(res.errored ?? new ClientGone());
    if (res.closed) return closed();
    res.once('close', closed);
    give((error) => {
      res.off('close', closed);
      if (error) reject(res.closed ? (res.errored ?? new ClientGone()) : error);
      else resolve();
    });
  });
}
