import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import pg from 'pg';
import { shared } from '../shared.js';
import { duckdbCopy, type PulledCopy, type PullRun, postgresCopy, pullInProcess } from './copy.js';
import { record, type SyncServer, syncServer } from './sync-server.js';

// For tests of copies on both destinations, before a server with any document and records.

export const folder = mkdtempSync(join(tmpdir(), 'pull-cases-'));
const tokenFile = join(folder, 'token');
test.before(() => writeFileSync(tokenFile, 'a-token-of-a-test'));
test.after.always(() => rmSync(folder, { recursive: true }));

export const text = { type: 'string' };
export const schemaOf = (properties: object): object => ({
  type: 'object',
  required: ['id'],
  properties: { id: text, ...properties },
});
export const numbered = (count: number, members = '"naam":"x"', prefix = 'r'): Map<string, string> =>
  new Map(Array.from({ length: count }, (_, i) => [`${prefix}${i}`, record(`${prefix}${i}`, members)]));

export async function serve(t: ExecutionContext, resources: Parameters<typeof syncServer>[0]): Promise<SyncServer> {
  const server = await syncServer(resources);
  t.teardown(() => server.close());
  return server;
}

let made = 0;
export async function newDatabase(t: ExecutionContext, options = ''): Promise<string> {
  const name = `cases_${process.pid}_${++made}`;
  const admin = new pg.Client(shared.primary);
  await admin.connect();
  await admin.query(`create database ${name} ${options}`);
  t.teardown(async () => {
    await admin.query(`drop database if exists ${name} with (force)`);
    await admin.end();
  });
  return Object.assign(new URL(shared.primary), { pathname: `/${name}` }).href;
}

export async function destinations(t: ExecutionContext): Promise<PulledCopy[]> {
  return [duckdbCopy(join(folder, `${++made}.duckdb`)), postgresCopy(await newDatabase(t))];
}

export const usual = (server: { readonly base: string }, to: string): string[] => [
  ...['--base', server.base, '--token-file', tokenFile, '--to', to],
];
export const pull = (server: SyncServer, copy: PulledCopy, ...more: string[]): Promise<PullRun> =>
  pullInProcess([...usual(server, copy.to), ...more]);
export async function pullWell(
  t: ExecutionContext,
  ...[server, copy, ...more]: Parameters<typeof pull>
): Promise<PullRun> {
  const run = await pull(server, copy, ...more);
  t.is(run.code, 0, run.stderr);
  return run;
}

export const countIn = async (copy: PulledCopy, table: string): Promise<number> => {
  const [row] = await copy.sql(`select cast(count(*) as integer) as count from ${table}`);
  return Number(row?.count);
};

export const isPostgres = ({ to }: PulledCopy): boolean => to.startsWith('postgres');
export const statusOf = async ({ to }: PulledCopy): Promise<Record<string, unknown>[]> =>
  JSON.parse((await pullInProcess(['--status', '--to', to])).stdout).resources;
