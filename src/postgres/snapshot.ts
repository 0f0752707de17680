import type pg from 'pg';
import { EventLoop } from '../base/flow/event-loop.js';
import { openClient } from './connection.js';
import type { Row, TextRow } from './row.js';
import { prepareSql, type Statement, type Values } from './statement.js';
import { makeGuardStep, runSteps, type Step } from './transaction.js';
import { bindValues } from './wire/queries.js';
import { RowCursor } from './wire/row-cursor.js';
import type { SessionSetting } from './wire/session.js';
import { getStream, Login } from './wire/wire.js';

/** The snapshot includes every commit up to the position. */
export interface SnapshotOrigin {
  readonly isReplica: boolean;
  readonly position: string;
  /** RFC 3339, by the server's clock. */
  readonly takenAt: string;
}

/** One workspace at one moment (REPEATABLE READ; PostgreSQL 13.2.2). */
export interface Snapshot {
  readonly origin: SnapshotOrigin;
  /** `onRow` returns true while no more rows can be taken. */
  readonly openCursor: (statement: Statement, values: Values, onRow: (row: Row) => boolean) => RowCursor;
}

// Runs before the transaction, so that the snapshot includes the position's commits.
const originStatement = prepareSql(
  'snapshot-origin',
  `select pg_is_in_recovery(),
    case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_insert_lsn() end,
    to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`,
);

/** A long read is no fault here: the operator waits for it. */
const begin = `begin isolation level repeatable read, read only;
  set local statement_timeout = 0; set local lock_timeout = 0; set local idle_in_transaction_session_timeout = 0`;

export async function runWithSnapshot<T>(
  url: string,
  computeMac: () => string,
  { connectTimeoutMs, session }: { readonly connectTimeoutMs: number; readonly session: readonly SessionSetting[] },
  work: (snapshot: Snapshot) => Promise<T>,
): Promise<T> {
  const loop = new EventLoop();
  const client = await openClient(url, { connectTimeoutMs, loop }, new Login(session)).finally(() => loop.close());
  try {
    const row = await readRow(client, { statement: originStatement, values: {} });
    const [isReplica, position, takenAt] = row as [string, string, string];
    await client.query(begin);
    const origin = { isReplica: isReplica === 't', position, takenAt };
    return await work({
      origin,
      openCursor: (statement, values, onRow) => {
        // Each read computes the MAC again, because it holds for an hour. After a failure the cursor fails, too.
        readRow(client, makeGuardStep(computeMac())).catch(() => undefined);
        return client.query(new RowCursor(statement.text, bindValues(statement, values), getStream(client), onRow));
      },
    });
  } finally {
    client.end().catch(() => undefined);
    if (getStream(client).isPaused()) getStream(client).destroy(); // the reader of a cursor has gone
  }
}

async function readRow(client: pg.Client, step: Step): Promise<TextRow> {
  const [result] = await runSteps(client, false, [step]);
  return result?.rows[0] ?? [];
}
