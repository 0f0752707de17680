import type { TextRow } from './row.js';
import { prepared } from './statement.js';

/** A write-ahead log sequence number (PostgreSQL 8.20, pg_lsn). Comparable within one history only. */
export type Lsn = bigint;

/** A timeline of a cluster: only positions of the same history can be compared. */
export interface WalHistory {
  readonly timeline: string;
  readonly systemIdentifier: string;
}

/** A position in the write-ahead log of one history. */
export interface WalPosition extends WalHistory {
  readonly lsn: Lsn;
}

/** The position that a replica must have replayed for a read: of the workspace's last write, or of the version that refused one. */
export interface WritePosition extends WalPosition {
  /** When the write was answered, epoch milliseconds. */
  readonly atMs: number;
}

/**
 * Reads the position at which the next record will begin, so that commits that are not flushed yet (synchronous_commit off in
 * the app) lie before it too. At the start of a page PostgreSQL gives the end of the page's header, which no replica replays
 * before the next record; the statement subtracts the header: 24 bytes, or 40 at the start of a segment (PostgreSQL,
 * xlog_internal.h). The first eight digits of a WAL file's name are its timeline.
 */
export const walPositionStatement = `select lsn - case
      when (lsn - pg_lsn '0/0') % pg_size_bytes(current_setting('wal_segment_size')) = 40 then 40
      when (lsn - pg_lsn '0/0') % current_setting('wal_block_size')::int = 24 then 24
      else 0
    end as lsn, substr(pg_walfile_name(lsn), 1, 8) as timeline, system_identifier::text as system
  from pg_current_wal_insert_lsn() lsn, pg_control_system()`;

/** "16/B374D848" → 0x16B374D848. */
export function parseLsn(text: string): Lsn {
  const [high, low] = text.split('/') as [string, string];
  return BigInt(`0x${high}${low.padStart(8, '0')}`);
}

/** Whether the positions of both histories can be compared. */
export function sameHistory(a: WalHistory, b: WalHistory): boolean {
  return a.timeline === b.timeline && a.systemIdentifier === b.systemIdentifier;
}

/** Whether `a` is at least as late as `b`: by position within one history, else by the clock. */
export function isLater(a: WritePosition, b: WritePosition): boolean {
  return sameHistory(a, b) ? a.lsn >= b.lsn : a.atMs >= b.atMs;
}

/** Formats a position for other gateways. */
export function formatPosition({ lsn, timeline, systemIdentifier, atMs }: WritePosition): string {
  return JSON.stringify([String(lsn), timeline, systemIdentifier, atMs]);
}

export function parsePosition(text: string): WritePosition {
  const [lsn, timeline, systemIdentifier, atMs] = JSON.parse(text) as [string, string, string, number];
  return { lsn: BigInt(lsn), timeline, systemIdentifier, atMs };
}

/** The state of a replica at a snapshot. */
export interface ReplicaMark extends WalPosition {
  /** The oldest transaction that the snapshot counts as running, 64 bits (PostgreSQL 9.26.8): all before it are over, and visible if they were committed. */
  readonly xmin: bigint;
  /** The first transaction that had not ended; it never goes back in one history. */
  readonly xmax: bigint;
  /** Commit time of the last replayed transaction by the primary's clock, epoch milliseconds; null before the first. */
  readonly replayedAtMs: number | null;
}

/**
 * Marks the state of a replica. Runs in the transaction of a read, before and after its statement (wire/guarded-query.ts): the
 * read sees at least what the first mark saw, and the position of the second covers all that the read saw. No position is given by
 * a server that is no replica. The control file shows a new timeline once a page or a restart point was written in it, which can take
 * minutes; the receiver shows it with the first record of it.
 */
export const markStatement = prepared(
  'replica-mark',
  `select pg_snapshot_xmin(pg_current_snapshot()),
    case when pg_is_in_recovery() then pg_last_wal_replay_lsn() end,
    lpad(upper(to_hex(greatest(c.timeline_id, r.min_recovery_end_timeline, gateway.received_timeline()))), 8, '0'), s.system_identifier,
    (extract(epoch from pg_last_xact_replay_timestamp()) * 1000)::bigint, pg_snapshot_xmax(pg_current_snapshot())
    from pg_control_checkpoint() c, pg_control_recovery() r, pg_control_system() s`,
);

/** For its marks alone. */
export const lookStatement = prepared('history', 'select 1');

/** The mark in a row of the statement; null from a server that is no replica. */
export function parseMark([xmin, lsn, timeline, systemIdentifier, replayedAtMs, xmax]: TextRow): ReplicaMark | null {
  if (lsn == null) return null;
  return {
    xmin: BigInt(xmin as string),
    xmax: BigInt(xmax as string),
    lsn: parseLsn(lsn),
    timeline: timeline as string,
    systemIdentifier: systemIdentifier as string,
    replayedAtMs: replayedAtMs == null ? null : Number(replayedAtMs),
  };
}
