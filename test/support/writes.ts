import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { ApiClient, ApiReply, RequestOptions } from './client.js';
import { shared, type TestDatabase } from './workspace.js';

/** An installation as the API gives it. */
export interface Installation {
  readonly id: string;
  readonly customerId: string;
  readonly naam: string;
  readonly version: number;
  readonly [member: string]: unknown;
}

export const newKey = (): string => randomUUID();

/** What a write is sent with beside its body: a new key unless one is given. */
export interface WriteOptions extends RequestOptions {
  readonly key?: string;
}

function withHeaders({ key, ...options }: WriteOptions, more: Record<string, string>): RequestOptions {
  return { ...options, headers: { 'idempotency-key': key ?? newKey(), ...more, ...options.headers } };
}

export function post(client: ApiClient, body: unknown, options: WriteOptions = {}): Promise<ApiReply> {
  return client.request('POST', '/installaties', { ...withHeaders(options, {}), body });
}

export function patch(
  client: ApiClient,
  id: string,
  ifMatch: string,
  body: unknown,
  options: WriteOptions = {},
): Promise<ApiReply> {
  return client.request('PATCH', `/installaties/${id}`, { ...withHeaders(options, { 'if-match': ifMatch }), body });
}

/** A new installation; rejects unless it is a 201. */
export async function created(client: ApiClient, body: object, options: WriteOptions = {}): Promise<Installation> {
  const reply = await post(client, body, options);
  if (reply.status !== 201) throw new Error(`${reply.status} ${reply.text}`);
  return reply.json<Installation>();
}

export const etagOf = ({ version }: { version: number }): string => `"v${version}"`;

/** Some customer of a workspace. */
export async function customerOf(database: TestDatabase, workspace = 0): Promise<string> {
  const { rows } = await database.primary.query<{ id: string }>(
    'select id from app.klanten where workspace_id = $1 order by id limit 1',
    [database.workspaces[workspace]?.id],
  );
  return (rows[0] as { id: string }).id;
}

/** Has the primary log every statement in the test's database, for connections opened from now on. */
export async function logStatements(database: TestDatabase): Promise<void> {
  await database.primary.query(`alter database ${database.name} set log_statement = 'all'`);
}

/** Statements that the gateway has run on the primary in the test's database and that match; its probes are left out. */
export async function statementsOn(database: TestDatabase, matching = /./): Promise<string[]> {
  const lines = (await readFile(shared.logs.primary, 'utf8')).split('\n');
  const own = lines.filter(
    (line) => line.includes(` ${database.name}|workspace-data-gateway|`) && / (execute|statement)\b/.test(line),
  );
  return own.filter((line) => !line.includes('pg_current_wal_flush_lsn') && matching.test(line));
}
