import type { IncomingMessage } from 'node:http';
import { isIPv6 } from 'node:net';
import type { Context } from 'koa';
import { invalid, Problem } from '../../base/errors.js';

/** Number of times a header was sent. Counts in rawHeaders, because Node drops repetitions of some headers and joins others. */
export function headerCount(request: IncomingMessage, name: string): number {
  const { rawHeaders } = request;
  let count = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const raw = rawHeaders[i] as string;
    if (raw.length === name.length && raw.toLowerCase() === name) count++;
  }
  return count;
}

/** Throws 400 when one of the headers was sent more than once. */
export function refuseRepeated(request: IncomingMessage, names: readonly string[]): void {
  const faults = names
    .filter((name) => headerCount(request, name) > 1)
    .map((header) => ({
      header,
      code: 'repeated_header' as const,
      detail: `The header ${header} is given more than once.`,
    }));
  if (faults.length > 0) throw invalid(faults);
}

/** Whether the text is a host with or without a port (RFC 3986 §3.2.2), so that links built with it lead to that host. */
function isHost(host: string): boolean {
  const match = /^(?:\[([^\]]*)\]|[A-Za-z0-9._~-]+)(?::(\d{0,5}))?$/.exec(host);
  if (match === null || host.length > 255) return false;
  const [, literal, port] = match;
  return (literal === undefined || isIPv6(literal)) && Number(port ?? 0) <= 65_535;
}

/** Throws 400 unless an HTTP/1.1 request has one valid Host header (RFC 9112 §3.2). */
export function checkHost(request: IncomingMessage): void {
  const { host } = request.headers;
  if (request.httpVersionMajor < 1) throw new Problem('invalid_request', 'This is not a valid HTTP/1.1 request.');
  if (host === undefined && request.httpVersion === '1.0') return;
  if (host === undefined || headerCount(request, 'host') > 1 || !isHost(host)) {
    throw invalid([{ header: 'host', code: 'invalid_host', detail: 'One valid Host header is required.' }]);
  }
}

/** Throws 501 for a transfer coding other than chunked (RFC 9112 §6.1): the end of the body, and so the next request, is unknown. */
export function checkTransferEncoding({ headers }: IncomingMessage): void {
  const coding = headers['transfer-encoding'];
  if (coding !== undefined && coding.toLowerCase() !== 'chunked')
    throw new Problem('not_implemented', 'The only transfer coding is chunked.', { headers: { Connection: 'close' } });
}

/** Longest query of a request, as links write it; and the longest target, which has room for what links add to that, and for the path of any id. */
const queryBytesMax = 4096;
const targetBytesMax = 8192;

/** Characters that clients send as they are, and links percent-encoded. */
const encodedInLinks = /["<>\\^`{|}]/g;

/** Forms of a request target: visible ASCII without a fragment (RFC 9112 §3.2, RFC 3986 §2). */
const targetForm = /^(?:https?:\/\/([^/?#\\]+)(?=[/?]|$)|(?=\/)|(?=\*$))([\x21\x22\x24-\x7e]*)$/i;

/**
 * Checks the request target. Removes scheme and host from the absolute form, whose host then stands in for the Host header (RFC 9112 §3.2.2).
 * Throws 414 when it is too long, 400 when it has none of the allowed forms. The next page of any list that is accepted has a target that is.
 */
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
  request.url = path.startsWith('/') || path === '*' ? path : `/${path}`;
}

/** Origin of links, without a trailing slash: `publicUrl`, else the host that the client addressed. */
export function origin(ctx: Context, publicUrl: string): string {
  if (publicUrl !== '') return publicUrl;
  const forwarded = isHost(ctx.host) ? ctx.host : ctx.headers.host; // X-Forwarded-Host passes the same check as Host
  const { localAddress = '', localPort } = ctx.socket;
  const host = forwarded || `${isIPv6(localAddress) ? `[${localAddress}]` : localAddress}:${localPort}`;
  return `${ctx.protocol === 'https' ? 'https' : 'http'}://${host}`; // X-Forwarded-Proto can hold any text
}
