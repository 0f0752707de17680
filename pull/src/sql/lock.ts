import type pg from 'pg';
import { UnusableDestination } from '../destination.js';

/** Serializes the processes that pull into a schema: two would overwrite newer records with older ones. */
const lockKey = 7_205_759;
/** A pooler without a second session lets the first wait. */
const secondSessionMsMax = 20_000;

/** A lock on a schema, for as long as its connection lives. */
export interface SchemaLock {
  readonly isLost: boolean;
  release(): Promise<void>;
}

/**
 * Takes the lock in a transaction that stays open on another connection: behind PgBouncer in transaction mode a lock of a session would
 * outlive the run, and stay with a session of the pool. The transaction has no snapshot, so it keeps no row from VACUUM. Throws Unusable.
 */
export async function lockSchema(
  connect: () => Promise<pg.Client>,
  schema: string,
  main: pg.Client,
): Promise<SchemaLock> {
  const holder = await connect();
  let isLost = false;
  holder.on('end', () => {
    isLost = true;
  });
  try {
    await holder.query('begin');
    // The names differ by version: transaction_timeout came with PostgreSQL 17.
    await holder.query(
      `select set_config(name, '0', true) from pg_settings where name in ('idle_in_transaction_session_timeout', 'transaction_timeout')`,
    );
    const { rows } = await holder.query('select pg_try_advisory_xact_lock($1, hashtext($2)) as mine', [
      lockKey,
      schema,
    ]);
    if (!rows[0].mine) throw new UnusableDestination('Another process pulls into this destination.', true);
    await checkAnswer(main);
  } catch (error) {
    await holder.end().catch(() => undefined);
    throw error;
  }
  return {
    get isLost() {
      return isLost;
    },
    release: () => holder.end(),
  };
}

/** Throws Unusable if the other connection gets no session any more. */
async function checkAnswer(main: pg.Client): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const refusal = new UnusableDestination(
      'The pooler gives pull one session at a time, and it needs two: raise the size of its pool.',
    );
    timer = setTimeout(() => reject(refusal), secondSessionMsMax);
  });
  await Promise.race([main.query('select 1'), late]).finally(() => clearTimeout(timer));
}
