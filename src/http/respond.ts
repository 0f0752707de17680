import type { ServerResponse } from 'node:http';
import type { Duplex, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { brotliCompress, constants, createBrotliCompress, createGzip, gzip } from 'node:zlib';
import type { Context } from 'koa';
import { reasonOf } from '../errors.js';
import type { Observe } from '../events.js';
import type { ChunkMemory } from '../read/chunk-memory.js';
import type { Reply } from '../read/reply.js';
import { ClientGone, exchangeOf } from './exchange.js';

const gzipOptions = { level: 4 };
const brotliOptions = { params: { [constants.BROTLI_PARAM_QUALITY]: 3 } };
/**
 * Small windows for pages in pieces: each slow client holds a compressor for minutes. 75 of them with 4 MB of page each
 * take 340 MB with brotli's default window of 4 MB and 68 MB with one of 64 KB (gzip: 55 MB and 45 MB).
 */
const gzipStreamOptions = { level: 4, windowBits: 13, memLevel: 6 };
const brotliStreamOptions = {
  params: { [constants.BROTLI_PARAM_QUALITY]: 3, [constants.BROTLI_PARAM_LGWIN]: 16 },
};

/**
 * The encodings a list can have, best first; detail responses are always identity, as their ETag is strong. `streamBytes` is the
 * memory of a compressor of a page in pieces: the growth by 175 of them, divided.
 */
const encodings = {
  br: {
    whole: promisify(brotliCompress) as (body: string | Buffer, options: object) => Promise<Buffer>,
    stream: () => createBrotliCompress(brotliStreamOptions),
    streamBytes: 655_360,
    options: brotliOptions,
  },
  gzip: {
    whole: promisify(gzip) as (body: string | Buffer, options: object) => Promise<Buffer>,
    stream: () => createGzip(gzipStreamOptions),
    streamBytes: 262_144,
    options: gzipOptions,
  },
} as const;
type Encoding = keyof typeof encodings;

/** Bodies below this many characters are sent as they are: compressing them saves less than a packet. */
const compressFrom = 1000;

/** Dependencies and bounds of sending. */
export interface RespondDeps {
  readonly observe: Observe;
  /** A page that takes longer is broken off. */
  readonly pageTimeMaxMs: number;
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
  const encoding = compressible ? chooseEncoding(ctx) : null;
  if (reply.release) ctx.res.once('close', reply.release);
  if (typeof reply.body === 'string' || Buffer.isBuffer(reply.body)) {
    if (encoding === null || reply.body.length < compressFrom) {
      ctx.body = reply.body;
    } else {
      ctx.res.setHeader('Content-Encoding', encoding);
      ctx.body = await encodings[encoding].whole(reply.body, encodings[encoding].options);
    }
    return;
  }
  if (ctx.method === 'HEAD') {
    if (encoding !== null) ctx.res.setHeader('Content-Encoding', encoding);
    await reply.body.return(undefined);
    ctx.respond = false;
    ctx.res.end();
    return;
  }
  const { chunkMemory } = deps.reads;
  const bytes = encoding === null ? 0 : encodings[encoding].streamBytes;
  if (encoding === null || !chunkMemory.beginCompressor(bytes)) return sendPieces(ctx, reply.body, null, deps);
  ctx.res.setHeader('Content-Encoding', encoding);
  try {
    await sendPieces(ctx, reply.body, encodings[encoding].stream(), deps);
  } finally {
    chunkMemory.endCompressor(bytes);
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

/** The content coding that the client prefers; null for none. */
export function chooseEncoding(ctx: Context): Encoding | null {
  if (ctx.headers['accept-encoding'] === undefined) return null;
  const chosen = ctx.acceptsEncodings('br', 'gzip', 'identity');
  return chosen === 'br' || chosen === 'gzip' ? chosen : null;
}
