import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { MigrationFailed } from './sql-files.js';

/** How to wait for the end of another migration. */
export interface LockOptions {
  /** Longest wait; default a minute. */
  readonly waitMs?: number | undefined;
  /** Takes a sentence when the wait begins. */
  readonly onWait?: ((sentence: string) => void) | undefined;
}

const waitMsDefault = 60_000;
const pollMs = 200;

/** The session that holds the advisory lock; its key is a bigint, of which pg_locks shows the two halves (PostgreSQL 54.12). */
const holderStatement = `select format('process %s (%s, user %s, since %s)', l.pid, coalesce(nullif(a.application_name, ''), 'no name'),
      a.usename, to_char(a.backend_start, 'YYYY-MM-DD HH24:MI:SS')) as holder
    from pg_locks l join pg_stat_activity a using (pid)
    where l.locktype = 'advisory' and l.granted and l.objsubid = 1
      and l.database = (select oid from pg_database where datname = current_database())
      and ((l.classid::bigint << 32) | l.objid::bigint) = hashtext('gateway.migrations')::bigint`;

/**
 * Lets one migration at a time run per database. Polls for the lock: a waiting statement would hold a snapshot, and CREATE
 * INDEX CONCURRENTLY in the session that has the lock would wait for that snapshot for ever. Throws MigrationFailed, which names
 * the holder, after the wait.
 */
export async function lock(client: pg.Client, { waitMs = waitMsDefault, onWait }: LockOptions): Promise<void> {
  const text = `select pg_try_advisory_lock(hashtext('gateway.migrations')) as locked`;
  const startedMs = performance.now();
  for (let attempt = 1; !(await client.query(text)).rows[0].locked; attempt++) {
    const [row] = (await client.query<{ holder: string }>(holderStatement)).rows;
    const holder = row?.holder ?? 'a process that has just ended';
    if (attempt === 1) onWait?.(`Waiting up to ${waitMs / 1000} s for another migration: ${holder}.`);
    if (performance.now() - startedMs >= waitMs)
      throw new MigrationFailed(
        `Another migration has run for more than ${waitMs / 1000} s: ${holder}. Nothing was changed. Wait for it, or end it with pg_terminate_backend.`,
      );
    await sleep(pollMs);
  }
}
