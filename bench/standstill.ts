import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import Cursor from 'pg-cursor';
import type { Stage } from './stage.js';

/** Effect of a slow client on the replica. */
export interface Standstill {
  /** How long the replica replayed nothing although there was something to replay, in milliseconds. */
  readonly ms: number;
  /** SQLSTATE of the next read, or null when it went well. */
  readonly failure: string | null;
}

/** Time that the replica waits for readers before it cancels them; PostgreSQL's own default is 30 s. */
export const standbyDelayMs = 3000;
const pauseMs = 6000;
const text = 'select * from gateway.werkbonnen where workspace_id = $1 order by datum, id';

/**
 * Reads 1,000 work orders, by a statement of their own or as the first rows of a portal, and then nothing for 6 s, as a
 * client does whose line is slow. Meanwhile rows that the reader could still see are removed on the primary.
 */
export async function standstill(stage: Stage, mode: 'keyset' | 'portal'): Promise<Standstill> {
  const [reader, replica, primary] = await Promise.all(
    [stage.readerUrl, stage.replicaUrl, stage.primaryUrl].map(connect),
  );
  if (!reader || !replica || !primary) throw new Error('not connected');
  try {
    await replica.query(`alter system set max_standby_streaming_delay = '${standbyDelayMs}ms'`);
    await replica.query('select pg_reload_conf()');
    await primary.query('create table if not exists public.bench_churn as select generate_series(1, 1000) as n');
    await caughtUp(primary, replica);
    await reader.query("select set_config('gateway.workspace_id', $1, false)", [stage.workspace]);
    const readOn = await begin(reader, mode, stage.workspace);
    const startedMs = performance.now();
    await primary.query('delete from public.bench_churn');
    await primary.query('vacuum public.bench_churn');
    const ms = await caughtUp(primary, replica);
    await sleep(Math.max(0, pauseMs - (performance.now() - startedMs)));
    const failure = await readOn().then(
      () => null,
      (error: { code?: string }) => error.code ?? 'connection lost',
    );
    return { ms, failure };
  } finally {
    await replica.query('alter system reset max_standby_streaming_delay');
    await replica.query('select pg_reload_conf()');
    await primary.query('drop table if exists public.bench_churn');
    await Promise.all([reader, replica, primary].map((client) => client.end().catch(() => {})));
  }
}

/** Reads the first rows; the function that it returns reads the next ones. */
async function begin(reader: pg.Client, mode: 'keyset' | 'portal', workspace: string): Promise<() => Promise<unknown>> {
  if (mode === 'portal') {
    const cursor = reader.query(new Cursor(text, [workspace]));
    await cursor.read(1000);
    return () => cursor.read(1000);
  }
  const { rows } = await reader.query(`${text} limit 1000`, [workspace]);
  const { datum, id } = rows.at(-1) as { datum: Date; id: string };
  const onward = text.replace('order', 'and (datum, id) > ($2, $3) order');
  return () => reader.query(`${onward} limit 1000`, [workspace, datum, id]);
}

/** Resolves when the replica has replayed the primary's WAL up to now, with the time that took. */
export async function caughtUp(primary: pg.Client, replica: pg.Client): Promise<number> {
  const startedMs = performance.now();
  const { rows } = await primary.query<{ lsn: string }>('select pg_current_wal_lsn() as lsn');
  const reached = 'select pg_last_wal_replay_lsn() >= $1::pg_lsn as done';
  while (!(await replica.query<{ done: boolean }>(reached, [rows[0]?.lsn])).rows[0]?.done) await sleep(10);
  return performance.now() - startedMs;
}

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => {}); // the reader's backend may be ended
  await client.connect();
  return client;
}
