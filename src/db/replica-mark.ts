import type { TextRow } from './row.js';
import type { Statement } from './statement.js';
import { parseLsn, type WalPosition } from './wal-position.js';

/** The state of a replica at a snapshot. */
export interface ReplicaMark extends WalPosition {
  /** The oldest transaction that the snapshot counts as running, 64 bits (PostgreSQL 9.26.8): all before it are over, and visible if they were committed. */
  readonly xmin: bigint;
  /** Commit time of the last replayed transaction by the primary's clock, epoch milliseconds; null before the first. */
  readonly replayedAtMs: number | null;
}

/**
 * Marks the state of a replica. Runs in the transaction of a read, before and after its statement (wire/guarded-query.ts): the
 * read sees at least what the first mark saw, and the position of the second covers all that the read saw. No position is given by
 * a server that is no replica. The control file shows a new timeline once a page or a restart point was written in it, which can take
 * minutes; the receiver shows it with the first record of it.
 */
export const markStatement: Statement = {
  name: 'replica-mark',
  text: `select pg_snapshot_xmin(pg_current_snapshot()),
    case when pg_is_in_recovery() then pg_last_wal_replay_lsn() end,
    lpad(upper(to_hex(greatest(c.timeline_id, r.min_recovery_end_timeline, gateway.received_timeline()))), 8, '0'), s.system_identifier,
    (extract(epoch from pg_last_xact_replay_timestamp()) * 1000)::bigint
    from pg_control_checkpoint() c, pg_control_recovery() r, pg_control_system() s`,
  parameters: [],
};

/** The mark in a row of the statement; null from a server that is no replica. */
export function parseMark([xmin, lsn, timeline, systemIdentifier, replayedAtMs]: TextRow): ReplicaMark | null {
  if (lsn == null) return null;
  return {
    xmin: BigInt(xmin as string),
    lsn: parseLsn(lsn),
    timeline: timeline as string,
    systemIdentifier: systemIdentifier as string,
    replayedAtMs: replayedAtMs == null ? null : Number(replayedAtMs),
  };
}
