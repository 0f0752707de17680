import type { ServerResponse } from 'node:http';
import type { Duplex, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Context } from 'koa';
import { ClientGone } from '../../base/errors.js';
import type { Observe } from '../../base/events.js';
import { getReason } from '../../postgres/database-errors.js';
import type { ChunkMemory } from '../read/chunk-memory.js';
import type { Piece, Reply } from '../reply.js';
import { chooseEncoding, compress } from './content-encodings.js';
import { getExchange } from './exchange.js';
import { commonHeaders } from './render.js';

/** Compressing a smaller body saves less than a packet. */
const compressFrom = 1000;

export interface RespondDeps {
  readonly observe: Observe;
  readonly pageTimeMaxMs: number;
  readonly reads: { readonly chunkMemory: ChunkMemory };
}

type Headers = Readonly<Record<string, string>>;

/** Sends a body in pieces with backpressure; if it fails the connection is destroyed. */
export async function respond(ctx: Context, reply: Reply, isCompressible: boolean, deps: RespondDeps): Promise<void> {
  const exchange = getExchange(ctx);
  exchange.sent = reply;
  const { status, body } = reply;
  const headers: Record<string, string> = {
    'Server-Timing': `auth;dur=${exchange.authMs.toFixed(2)}, db;dur=${reply.databaseMs.toFixed(2)}`,
    ...reply.headers,
  };
  if (isCompressible) headers.Vary = 'Accept-Encoding';
  if (body === null) return send(ctx, status, null, headers);
  headers['Content-Type'] ??= 'application/json';
  if (reply.release) ctx.res.once('close', reply.release);
  const encoding = isCompressible ? chooseEncoding(ctx.req.headers['accept-encoding']) : undefined;
  const { chunkMemory } = deps.reads;
  const isHead = ctx.method === 'HEAD'; // HEAD has the encoding that GET would have
  if (typeof body === 'string' || Buffer.isBuffer(body)) {
    if (encoding === undefined || body.length < compressFrom) return send(ctx, status, body, headers);
    headers['Content-Encoding'] = encoding.name;
    return send(ctx, status, await compress(body, encoding), headers);
  }
  const usedEncoding = encoding && (isHead || chunkMemory.mayCompress(encoding.bytes)) ? encoding : undefined;
  if (usedEncoding) headers['Content-Encoding'] = usedEncoding.name;
  if (isHead) {
    await body.return(undefined);
    return send(ctx, status, null, headers);
  }
  const bytes = usedEncoding?.bytes ?? 0;
  chunkMemory.reserve('compressors', bytes);
  try {
    sendHead(ctx, status, headers);
    await sendPieces(ctx, body, usedEncoding?.compressor() ?? null, deps);
  } finally {
    chunkMemory.release('compressors', bytes);
  }
}

/** Makes one call with all headers, and one write: both saved a tenth of a single record's processor time. */
export function send(ctx: Context, status: number, body: string | Buffer | null, headers: Headers = {}): void {
  if (body === null) return void sendHead(ctx, status, headers).end();
  const response = sendHead(ctx, status, headers, Buffer.byteLength(body));
  if (typeof body !== 'string') return void response.end(body);
  response.write(body);
  response.socket?.uncork(); // writes head and text in one piece
  response.end();
}

/** Replaces common headers by the response's headers of the same name. */
function sendHead(ctx: Context, status: number, headers: Headers, bytes?: number): ServerResponse {
  const all = [...getExchange(ctx).headers];
  for (const name in headers) {
    if (name in commonHeaders) all[all.indexOf(name) + 1] = headers[name] as string;
    else all.push(name, headers[name] as string);
  }
  if (bytes !== undefined) all.push('Content-Length', String(bytes));
  return ctx.res.writeHead(status, all);
}

async function sendPieces(
  ctx: Context,
  pieces: AsyncGenerator<Piece>,
  compressor: Duplex | null,
  { observe, pageTimeMaxMs }: RespondDeps,
): Promise<void> {
  const { res } = ctx;
  const exchange = getExchange(ctx);
  res.setMaxListeners(20); // a compressor in front of the response brings several of its own
  const overtime = setTimeout(() => breakOff(res, new Error('page time exceeded')), pageTimeMaxMs);
  try {
    const compressed = compressor === null ? null : pipeline(compressor, res);
    compressed?.catch(() => {}); // writing to the compressor rejects as well
    const body: Writable = compressor ?? res;
    for await (const piece of pieces) {
      exchange.sent = piece;
      await waitUntilTaken(res, (done) => body.write(piece.bytes, done));
    }
    await waitUntilTaken(res, (done) => body.end(done));
    await compressed;
  } catch (error) {
    breakOff(res);
    const isGone = error instanceof ClientGone;
    if (!isGone) observe({ type: 'page_broken', requestId: exchange.requestId, reason: getReason(error as Error) });
  } finally {
    clearTimeout(overtime);
  }
}

/** Resets the connection: an HTTP/1.0 body ends with its connection, so an orderly end would look complete. */
function breakOff(res: ServerResponse, reason?: Error): void {
  res.socket?.resetAndDestroy();
  res.destroy(reason);
}

const goneCodes: ReadonlySet<unknown> = new Set(['ECONNRESET', 'EPIPE', 'ECANCELED']);

/** Resolves when the bytes have left for the socket and may be overwritten. Rejects when the response is closed. */
function waitUntilTaken(res: ServerResponse, give: (done: (error?: Error | null) => void) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (error: (Error & { code?: string }) | null): void =>
      reject(error === null || goneCodes.has(error.code) ? new ClientGone() : error);
    const rejectClosed = (): void => fail(res.errored);
    if (res.closed) return rejectClosed();
    res.once('close', rejectClosed);
    give((error) => {
      res.off('close', rejectClosed);
      if (error) fail(res.closed ? res.errored : error);
      else resolve();
    });
  });
}
