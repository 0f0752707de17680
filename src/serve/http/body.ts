import type { Context } from 'koa';
import type { KoaBodyMiddlewareOptions } from 'koa-body';
import { Problem } from '../../base/errors.js';
import { countHeaders } from './request-head.js';

/** Reads a body. Throws 415 unless the media type is JSON in UTF-8, 413 when the body is too large. */
export type BodyReader = (ctx: Context, mediaTypes: readonly string[]) => Promise<Buffer>;

/** Reads as latin1, so that parseStrictJson can refuse invalid UTF-8. Without writes koa-body is not loaded: 12 MB. */
export async function makeBodyReader(bytesMax: number): Promise<BodyReader> {
  const options: Partial<KoaBodyMiddlewareOptions> = {
    text: true,
    json: false,
    urlencoded: false,
    multipart: false,
    textTypes: ['*/*'],
    textLimit: bytesMax,
    encoding: 'binary',
    onError: (error) => {
      if ((error as { status?: number }).status === 413) throw makeTooLarge(bytesMax);
      throw new Problem('invalid_request', 'The body did not arrive whole.');
    },
  };
  const { koaBody } = await import('koa-body');
  const read = koaBody(options);
  return async (ctx, mediaTypes) => {
    checkMediaType(ctx, mediaTypes);
    if (Number(ctx.headers['content-length'] ?? 0) > bytesMax) throw makeTooLarge(bytesMax);
    if (ctx.headers.expect !== undefined) ctx.res.writeContinue();
    await read(ctx as never, async () => {});
    const { body } = ctx.request as unknown as { body?: unknown };
    return Buffer.from(typeof body === 'string' ? body : '', 'latin1');
  };
}

/** Matches type and parameters (RFC 9110 §8.3.1). */
const mediaType = /^\s*([^\s;]+)\s*((?:;\s*(?:[^\s;=]+=(?:"(?:[^"\\]|\\.)*"|[^\s;"]+)\s*)?)*)$/;
const charsetParameter = /;\s*charset=(?:"([^"]*)"|([^\s;]+))/g;

/** Throws 415. Ignores other parameters than charset (RFC 2045 §1). */
function checkMediaType(ctx: Context, mediaTypes: readonly string[]): void {
  const { 'content-type': plain = '', 'content-encoding': coding } = ctx.req.headers;
  // The usual header first: headersDistinct copies all of them.
  if (mediaTypes.includes(plain) && coding === undefined && countHeaders(ctx.req, 'content-type') === 1) return;
  const { 'content-type': sent = [], 'content-encoding': codings = [] } = ctx.req.headersDistinct;
  const [, type = '', parameters = ''] =
    mediaType.exec(sent.length === 1 ? (sent[0] as string).toLowerCase() : '') ?? [];
  const charsets = [...parameters.matchAll(charsetParameter)].map(([, quoted, bare]) => quoted ?? bare);
  const isUtf8 = charsets.every((charset) => charset === 'utf-8' || charset === 'utf8');
  const isPlain = codings.every((coding) => coding.toLowerCase() === 'identity');
  if (mediaTypes.includes(type) && isUtf8 && isPlain) return;
  const detail = `The body must be ${mediaTypes.join(' or ')} in UTF-8, without a content coding.`;
  const accepted = ctx.method === 'PATCH' && { 'Accept-Patch': mediaTypes.join(', ') };
  throw new Problem('unsupported_media_type', detail, { headers: { 'Accept-Encoding': 'identity', ...accepted } });
}

function makeTooLarge(bytesMax: number): Problem {
  return new Problem('payload_too_large', `The body is larger than ${bytesMax} bytes.`);
}
