import type { Context } from 'koa';
import type { KoaBodyMiddlewareOptions } from 'koa-body';
import { Problem } from '../../base/errors.js';
import { headerCount } from './request-head.js';

/** Reads a request's body. Throws 415 unless its media type is JSON in UTF-8, 413 when it is too large. */
export type BodyReader = (ctx: Context, mediaTypes: readonly string[]) => Promise<Buffer>;

/**
 * koa-body reads the bytes and bounds them. It decodes them as latin1, which loses no byte, so that parseStrictJson can refuse
 * invalid UTF-8. A gateway without writes does not load it, because it costs a start 0.1 s of processor time and 12 MB; one with writes loads it
 * before its first request, because Node keeps an import that failed.
 */
export async function bodyReader(bytesMax: number): Promise<BodyReader> {
  const options: Partial<KoaBodyMiddlewareOptions> = {
    text: true,
    json: false,
    urlencoded: false,
    multipart: false,
    textTypes: ['*/*'],
    textLimit: bytesMax,
    encoding: 'binary',
    onError: (error) => {
      if ((error as { status?: number }).status === 413) throw tooLarge(bytesMax);
      throw new Problem('invalid_request', 'The body did not arrive whole.');
    },
  };
  const { koaBody } = await import('koa-body');
  const read = koaBody(options);
  return async (ctx, mediaTypes) => {
    checkMediaType(ctx, mediaTypes);
    if (Number(ctx.headers['content-length'] ?? 0) > bytesMax) throw tooLarge(bytesMax);
    await read(ctx as never, async () => {});
    const { body } = ctx.request as unknown as { body?: unknown };
    return Buffer.from(typeof body === 'string' ? body : '', 'latin1');
  };
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

function tooLarge(bytesMax: number): Problem {
  return new Problem('payload_too_large', `The body is larger than ${bytesMax} bytes.`);
}
