import type pg from 'pg';
import { wallKeyAdvice } from '../../base/wall-key.js';
import { padsOf } from '../../postgres/seal.js';
import { MigrationFailed } from './sql-files.js';

/** Throws MigrationFailed without any key: the views would show no record. */
export async function requireWallKey(client: pg.Client, wallKey: string): Promise<void> {
  if (wallKey !== '') return;
  const { rows } = await client.query(`select to_regclass('gateway.wall_keys') is not null as "isThere"`);
  if (rows[0].isThere && (await client.query('select from gateway.wall_keys limit 1')).rowCount === 1) return;
  throw new MigrationFailed(`WALL_KEY is not set, the key of the tenant wall: ${wallKeyAdvice}.`);
}

/** The last key stays valid for gateways that have it; older ones go. Returns what changed. */
export async function storeWallKey(client: pg.Client, wallKey: string): Promise<string[]> {
  if (wallKey === '') return [];
  const { rowCount: stored } = await client.query(
    'insert into gateway.wall_keys (inner_pad, outer_pad) values ($1, $2) on conflict do nothing',
    [...padsOf(wallKey)],
  );
  if (stored === 0) return [];
  const { rowCount: dropped } = await client.query(
    `delete from gateway.wall_keys where inner_pad not in (select inner_pad from gateway.wall_keys order by stored_at desc limit 2)`,
  );
  return [`stored WALL_KEY${dropped === 0 ? '' : ', and dropped the key before the last'}`];
}

/** Throws MigrationFailed unless the database has this key. */
export async function retireWallKeys(client: pg.Client, wallKey: string): Promise<number> {
  const [inner] = padsOf(wallKey);
  const { rows } = await client.query('select from gateway.wall_keys where inner_pad = $1', [inner]);
  if (wallKey === '' || rows.length === 0)
    throw new MigrationFailed('The database does not have this WALL_KEY: run `migrate` with it first.');
  return (await client.query('delete from gateway.wall_keys where inner_pad <> $1', [inner])).rowCount ?? 0;
}
