import type pg from 'pg';
import { deriveKey, wallKeyAdvice } from '../../base/wall-key.js';
import { derivePads, hashFingerprint } from '../../postgres/workspace-mac.js';
import { MigrationFailed } from './sql-files.js';

/** Throws MigrationFailed if the database would have no key, because the views would show no record. */
export async function requireWallKey(client: pg.Client, wallKey: string): Promise<void> {
  if (wallKey !== '') return;
  if ((await hasKeyTable(client)) && (await client.query('select from gateway.wall_keys limit 1')).rowCount === 1)
    return;
  throw new MigrationFailed(`WALL_KEY is not set, the key of the tenant wall: ${wallKeyAdvice}.`);
}

export async function hasKeyTable(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query(`select to_regclass('gateway.wall_keys') is not null as "isThere"`);
  return rows[0].isThere;
}

/** Keeps the older keys, which gateways have: only `retireWallKeys` removes one. Returns the changes. */
export async function storeWallKey(client: pg.Client, wallKey: string): Promise<string[]> {
  if (wallKey === '') return [];
  const { rowCount: stored } = await client.query(
    'insert into gateway.wall_keys (inner_pad, outer_pad, sync_key) values ($1, $2, $3) on conflict do nothing',
    [...derivePads(wallKey), deriveKey(wallKey, 'sync')],
  );
  return stored === 0 ? [] : [`stored WALL_KEY ${hashFingerprint(wallKey)}`];
}

/** Returns a sentence for each key that the database has, the newest first. Throws MigrationFailed without the table of keys. */
export async function listWallKeys(client: pg.Client, wallKey: string): Promise<string[]> {
  const text = `select fingerprint, to_char(stored_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI') as stored,
      to_char(used_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS') as used
    from gateway.wall_keys order by stored_at desc`;
  const { rows } = await client.query<{ fingerprint: string; stored: string; used: string | null }>(text);
  return rows.map(({ fingerprint, stored, used }) => {
    const given = wallKey !== '' && fingerprint === hashFingerprint(wallKey) ? ' (this WALL_KEY)' : '';
    return `key ${fingerprint}${given}: stored ${stored} UTC, ${used ? `last used by a gateway ${used} UTC` : 'not used by a gateway yet'}`;
  });
}

/** Returns the removed fingerprints. Throws MigrationFailed without this key, or while a gateway uses another one. */
export async function retireWallKeys(client: pg.Client, wallKey: string, isForced: boolean): Promise<string[]> {
  const [inner] = derivePads(wallKey);
  const { rows } = await client.query('select from gateway.wall_keys where inner_pad = $1', [inner]);
  if (wallKey === '' || rows.length === 0)
    throw new MigrationFailed('The database does not have this WALL_KEY: run `migrate --wall-key` with it first.');
  const lastUses = await client.query<{ fingerprint: string }>(
    `select fingerprint from gateway.wall_keys where inner_pad <> $1 and used_at > clock_timestamp() - interval '2 minutes'`,
    [inner],
  );
  const inUse = lastUses.rows.map(({ fingerprint }) => fingerprint).join(', ');
  if (inUse !== '' && !isForced)
    throw new MigrationFailed(
      `A gateway has used the key ${inUse} within the last two minutes: restart it with this WALL_KEY, and wait two minutes. To retire the key nevertheless, add --force.`,
    );
  const dropped = 'delete from gateway.wall_keys where inner_pad <> $1 returning fingerprint';
  return (await client.query<{ fingerprint: string }>(dropped, [inner])).rows.map(({ fingerprint }) => fingerprint);
}
