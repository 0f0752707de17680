import fc from 'fast-check';
import { canary } from './canaries.js';
import type { Grant, World } from './world.js';

/** The value's characters are bytes (ISO 8859-1). */
export type HeaderField = readonly [name: string, value: string];

export interface FuzzRequest {
  readonly method: string;
  readonly target: string;
  readonly headers: readonly HeaderField[];
  /** Its length is announced unless a header does so; a header Transfer-Encoding: chunked sends it as one chunk. */
  readonly body: Buffer | null;
}

export const ownCanary = '@canary@';

/** Puts the canary in place; from here on the request is sent as it is, also when it is repeated. */
export function addressed(world: World, request: FuzzRequest): FuzzRequest {
  if (request.body === null || !request.body.includes(ownCanary)) return request;
  const grant = grantOf(world, request);
  const text = grant === null ? '' : canary(grant.workspace.number, 'installation');
  return { ...request, body: Buffer.from(request.body.toString('latin1').replaceAll(ownCanary, text), 'latin1') };
}

export function grantOf(world: World, { headers }: FuzzRequest): Grant | null {
  const values = valuesOf(headers, 'authorization');
  const token = values.length === 1 ? /wdg_[0-9A-Za-z]{49}(?![0-9A-Za-z])/.exec(values[0] as string)?.[0] : undefined;
  return (token === undefined ? undefined : world.grants.get(token)) ?? null;
}

export function valuesOf(headers: readonly HeaderField[], name: string): string[] {
  return headers.filter(([each]) => each.toLowerCase() === name).map(([, value]) => value);
}

export function bytesOf({ method, target, headers, body }: FuzzRequest): Buffer {
  const fields = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  const isChunked = valuesOf(headers, 'transfer-encoding').includes('chunked');
  const isFramed = isChunked || valuesOf(headers, 'content-length').length > 0;
  const length = body === null || isFramed ? '' : `Content-Length: ${body.length}\r\n`;
  const head = Buffer.from(`${method} ${target} HTTP/1.1\r\n${fields}${length}\r\n`, 'latin1');
  if (body === null) return isChunked ? Buffer.concat([head, Buffer.from('0\r\n\r\n')]) : head;
  if (!isChunked) return Buffer.concat([head, body]);
  const size = body.length > 0 ? `${body.length.toString(16)}\r\n` : '';
  return Buffer.concat([head, Buffer.from(size), body, Buffer.from(size === '' ? '0\r\n\r\n' : '\r\n0\r\n\r\n')]);
}

export function curlOf(origin: string, { method, target, headers, body }: FuzzRequest): string {
  const own = new Set(headers.map(([name]) => name.toLowerCase()));
  const silenced = ['Accept', 'User-Agent', 'Content-Type', 'Expect'].filter((name) => !own.has(name.toLowerCase()));
  const fields = [
    ...silenced.map((name) => `${name}:`),
    ...headers.map(([name, value]) => (value === '' ? `${name};` : `${name}: ${value}`)),
  ];
  return [
    'curl -i --http1.1 --path-as-is --globoff',
    method === 'HEAD' ? '--head' : `-X ${quoted(method)}`,
    // A target that is no path can only be said beside the address.
    target.startsWith('/') ? quoted(origin + target) : `--request-target ${quoted(target)} ${quoted(origin)}`,
    ...fields.map((field) => `-H ${quoted(field)}`),
    ...(body === null ? [] : [`--data-binary ${quoted(body.toString('latin1'))}`]),
  ].join(' ');
}

function quoted(bytes: string): string {
  if (/^[\x20-\x26\x28-\x5b\x5d-\x7e]*$/.test(bytes)) return `'${bytes}'`;
  const escaped = bytes.replace(
    /[^\x20-\x26\x28-\x5b\x5d-\x7e]/g,
    (byte) => `\\x${byte.charCodeAt(0).toString(16).padStart(2, '0')}`,
  );
  return `$'${escaped}'`;
}

export function weighted<T>(...of: readonly (readonly [weight: number, arbitrary: fc.Arbitrary<T>])[]) {
  return fc.oneof(...of.map(([weight, arbitrary]) => ({ weight, arbitrary })));
}
