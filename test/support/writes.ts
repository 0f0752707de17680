import { randomUUID } from 'node:crypto';
import type { ApiClient, ApiReply, RequestOptions } from './client.js';

export interface Installation {
  readonly id: string;
  readonly customerId: string;
  readonly naam: string;
  readonly version: number;
  readonly [member: string]: unknown;
}

export const newKey = (): string => randomUUID();

export interface WriteOptions extends RequestOptions {
  readonly key?: string;
  /** It follows the path, such as ?dryRun=true. */
  readonly query?: string;
}

function withHeaders({ key, ...options }: WriteOptions, more: Record<string, string>): RequestOptions {
  return { ...options, headers: { 'idempotency-key': key ?? newKey(), ...more, ...options.headers } };
}

export function post(client: ApiClient, body: unknown, options: WriteOptions = {}): Promise<ApiReply> {
  return client.request('POST', `/installaties${options.query ?? ''}`, { ...withHeaders(options, {}), body });
}

export function patch(
  client: ApiClient,
  id: string,
  ifMatch: string,
  body: unknown,
  options: WriteOptions = {},
): Promise<ApiReply> {
  const path = `/installaties/${id}${options.query ?? ''}`;
  return client.request('PATCH', path, { ...withHeaders(options, { 'if-match': ifMatch }), body });
}

export async function created(client: ApiClient, body: object, options: WriteOptions = {}): Promise<Installation> {
  const reply = await post(client, body, options);
  if (reply.status !== 201) throw new Error(`${reply.status} ${reply.text}`);
  return reply.json<Installation>();
}

export const etagOf = ({ version }: { readonly version: number }, changes = 0): string => `"v${version + changes}"`;
