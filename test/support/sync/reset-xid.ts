import { execFile } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { PgNode } from '../../../demo/cluster/node.js';
import { runAsAdmin } from '../../../src/postgres/admin.js';

const installed = '/usr/lib/postgresql';

/** Finds programs of PostgreSQL with pg_resetwal, in PG_BIN or installed ones; npm's programs lack it. Null: there are none. */
export function resetwalFolder(): string | null {
  const versions = existsSync(installed) ? readdirSync(installed) : [];
  const fitting = versions.filter((version) => Number(version) >= 15).map((version) => join(installed, version, 'bin'));
  const folders = [process.env.PG_BIN ?? [], fitting].flat();
  return folders.find((folder) => ['pg_resetwal', 'initdb'].every((name) => existsSync(join(folder, name)))) ?? null;
}

/** Ids between two freezes: PostgreSQL compares ids modulo 2^32, so an id must not be older than half of that. */
const step = 1_500_000_000;
/** A page of the commit log begins with this id, and PostgreSQL then makes it itself. */
const pageIds = 8192 * 4;

/** Advances the next transaction id to 2^32 - 32,768, freezing every table before each step. */
export async function advanceXidToWrapAround(primary: PgNode, folder: string): Promise<void> {
  const { uid, gid } = statSync(primary.dir);
  const account = process.getuid?.() === 0 ? { uid, gid } : {};
  for (const xid of [step, 2 * step, 2 ** 32 - pageIds]) {
    await freezeAll(primary);
    await primary.stop();
    const args = ['--next-transaction-id', String(xid - (xid % pageIds)), primary.dir];
    await promisify(execFile)(join(folder, 'pg_resetwal'), args, { ...account, cwd: primary.dir });
    await primary.start();
  }
  await freezeAll(primary);
}

async function freezeAll(primary: PgNode): Promise<void> {
  await primary.query('update pg_database set datallowconn = true');
  const databases = await primary.query<{ datname: string }>('select datname from pg_database');
  for (const { datname } of databases)
    await runAsAdmin(primary.url(datname), async (client) => void (await client.query('vacuum (freeze)')));
}

export async function useXids(primary: PgNode, count: number): Promise<void> {
  await primary.query(`do $$ begin for i in 1..${count} loop perform pg_current_xact_id(); commit; end loop; end $$`);
}

export async function nextXid(primary: PgNode): Promise<number> {
  const [row] = await primary.query<{ id: string }>('select pg_snapshot_xmax(pg_current_snapshot())::text as id');
  return Number(row?.id);
}
