import type { IncomingMessage } from 'node:http';
import { isIPv6 } from 'node:net';
import type { Context } from 'koa';
import { type FieldError, makeInvalid, Problem } from '../../base/errors.js';

/** Counts in rawHeaders, because Node drops or joins repeated headers. */
export function countHeaders(request: IncomingMessage, name: string): number {
  const { rawHeaders } = request;
  let count = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const raw = rawHeaders[i] as string;
    if (raw.length === name.length && raw.toLowerCase() === name) count++;
  }
  return count;
}

export function refuseRepeated(request: IncomingMessage, names: readonly string[]): void {
  const code = 'repeated_header';
  const faults = names
    .filter((name) => countHeaders(request, name) > 1)
    .map((header): FieldError => ({ header, code, detail: `The header ${header} is given more than once.` }));
  if (faults.length > 0) throw makeInvalid(faults);
}

/** Accepts a host with or without a port (RFC 3986 §3.2.2), so that links built with it lead to that host. */
function isHost(host: string): boolean {
  const match = /^(?:\[([^\]]*)\]|[A-Za-z0-9._~-]+)(?::(\d{0,5}))?$/.exec(host);
  if (match === null || host.length > 255) return false;
  const [, literal, port] = match;
  return (literal === undefined || isIPv6(literal)) && Number(port ?? 0) <= 65_535;
}

/** Throws 400 unless there is one valid Host header (RFC 9112 §3.2). */
export function checkHost(request: IncomingMessage): void {
  const { host } = request.headers;
  if (request.httpVersionMajor < 1) throw new Problem('invalid_request', 'This is not a valid HTTP/1.1 request.');
  if (host === undefined && request.httpVersion === '1.0') return;
  if (host === undefined || countHeaders(request, 'host') > 1 || !isHost(host))
    throw makeInvalid([{ header: 'host', code: 'invalid_host', detail: 'One valid Host header is required.' }]);
}

/** Throws 501 unless the coding is chunked (RFC 9112 §6.1): the start of the next request would be unknown. */
export function checkTransferEncoding({ headers }: IncomingMessage): void {
  const coding = headers['transfer-encoding'];
  if (coding !== undefined && coding.toLowerCase() !== 'chunked')
    throw new Problem('not_implemented', 'The only transfer coding is chunked.', { headers: { Connection: 'close' } });
}

/** Bounds for a hundred UUIDs, each as a parameter; the target also has room for what links to the next page add to a query. */
const queryBytesMax = 5120;
const targetBytesMax = 9216;
/** Characters that clients send plain and links percent-encode. */
const encodedInLinks = /["<>\\^`{|}]/g;
/** Visible ASCII without a fragment (RFC 9112 §3.2, RFC 3986 §2). */
const targetForm = /^(?:https?:\/\/([^/?#\\]+)(?=[/?]|$)|(?=\/)|(?=\*$))([\x21\x22\x24-\x7e]*)$/i;

/** Decodes an unreserved character, which may be percent-encoded (RFC 3986 §6.2.2.2). */
function decodeUnreserved(pair: string): string {
  const character = String.fromCharCode(Number.parseInt(pair.slice(1), 16));
  return /[\w.~-]/.test(character) ? character : pair;
}

/** Replaces the Host header by the host of an absolute target (RFC 9112 §3.2.2). Throws 414 or 400. */
export function checkTarget(request: IncomingMessage): void {
  const url = request.url as string;
  const isContinued = !url.includes('?') || /[?&]cursor=/.test(url);
  const bytesMax = isContinued ? targetBytesMax : queryBytesMax;
  if (url.length + 2 * (url.match(encodedInLinks)?.length ?? 0) > bytesMax)
    throw new Problem('uri_too_long', `The request target is longer than ${bytesMax} bytes.`);
  const [, host, path] = targetForm.exec(url) ?? [];
  if (path === undefined || (host !== undefined && !isHost(host)))
    throw new Problem('invalid_request', 'This is not a valid request target.');
  if (host !== undefined) request.headers.host = host;
  const target = path.startsWith('/') || path === '*' ? path : `/${path}`;
  request.url = target.replace(/^[^?]*%[^?]*/, (segments) => segments.replace(/%[2-7][\dA-F]/gi, decodeUnreserved));
}

/** Returns `publicUrl`, otherwise the host that the client addressed, without a trailing slash. */
export function getOrigin(ctx: Context, publicUrl: string): string {
  if (publicUrl !== '') return publicUrl;
  const forwarded = isHost(ctx.host) ? ctx.host : ctx.headers.host; // X-Forwarded-Host must pass the same check as Host
  const { localAddress = '', localPort } = ctx.socket;
  const host = forwarded || `${isIPv6(localAddress) ? `[${localAddress}]` : localAddress}:${localPort}`;
  return `${ctx.protocol === 'https' ? 'https' : 'http'}://${host}`; // X-Forwarded-Proto can hold any text
}
