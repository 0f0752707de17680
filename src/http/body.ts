import type { IncomingMessage } from 'node:http';
import type { Context } from 'koa';
import { Problem } from '../errors.js';
import { headerCount } from './request-head.js';

/** Reads a request's body. Throws 415 unless its media type is JSON in UTF-8, 413 when it is too large. */
export async function readBody(ctx: Context, mediaTypes: readonly string[], bytesMax: number): Promise<Buffer> {
  checkMediaType(ctx, mediaTypes);
  const isTooLarge = Number(ctx.req.headers['content-length'] ?? 0) > bytesMax;
  const body = isTooLarge ? null : await boundedBody(ctx.req, bytesMax);
  if (body === null) throw new Problem('payload_too_large', `The body is larger than ${bytesMax} bytes.`);
  return body;
}

/** The bytes of the body; null as soon as they are too many. */
function boundedBody(request: IncomingMessage, bytesMax: number): Promise<Buffer | null> {
  return new Promise((resolve, reject) => {
    const pieces: Buffer[] = [];
    let bytes = 0;
    request.on('data', (piece: Buffer) => {
      bytes += piece.length;
      if (bytes > bytesMax) resolve(null);
      else pieces.push(piece);
    });
    request.on('end', () => resolve(Buffer.concat(pieces)));
    request.on('error', () => reject(new Problem('invalid_request', 'The body did not arrive whole.')));
  });
}

/** type/subtype and its parameters (RFC 9110 §8.3.1): a token or a quoted string each. */
const mediaType = /^\s*([^\s;]+)\s*((?:;\s*(?:[^\s;=]+=(?:"(?:[^"\\]|\\.)*"|[^\s;"]+)\s*)?)*)$/;
const charsetParameter = /;\s*charset=(?:"([^"]*)"|([^\s;]+))/g;

/** Throws 415. Ignores parameters other than charset, as RFC 2045 §1 asks: JSON defines none. */
function checkMediaType(ctx: Context, mediaTypes: readonly string[]): void {
  const { 'content-type': plain = '', 'content-encoding': coding } = ctx.req.headers;
  // The usual header first: headersDistinct goes through all of them again.
  if (mediaTypes.includes(plain) && coding === undefined && headerCount(ctx.req, 'content-type') === 1) return;
  const { 'content-type': sent = [], 'content-encoding': codings = [] } = ctx.req.headersDistinct;
  const [, type = '', parameters = ''] =
    mediaType.exec(sent.length === 1 ? (sent[0] as string).toLowerCase() : '') ?? [];
  const charsets = [...parameters.matchAll(charsetParameter)].map(([, quoted, bare]) => quoted ?? bare);
  const isUtf8 = charsets.every((charset) => charset === 'utf-8' || charset === 'utf8');
  const isPlain = codings.every((coding) => coding.toLowerCase() === 'identity');
  if (mediaTypes.includes(type) && isUtf8 && isPlain) return;
  throw new Problem(
    'unsupported_media_type',
    `The body must be ${mediaTypes.join(' or ')} in UTF-8, without a content coding.`,
    {
      headers: {
        'Accept-Encoding': 'identity',
        ...(ctx.method === 'PATCH' && { 'Accept-Patch': mediaTypes.join(', ') }),
      },
    },
  );
}
