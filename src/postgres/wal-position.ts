import type { TextRow } from './row.js';
import { prepareSql } from './statement.js';

/** A position in the WAL (PostgreSQL 8.20, pg_lsn). Two positions are comparable only within one history. */
export type Lsn = bigint;

export interface WalHistory {
  readonly timeline: string;
  readonly systemIdentifier: string;
}

export interface WalPosition extends WalHistory {
  readonly lsn: Lsn;
}

/** Position of the workspace's last write, or of the version that refused one. */
export interface WritePosition extends WalPosition {
  readonly atMs: number;
}

/**
 * Asks where the next record begins: unflushed commits lie before it. At the start of a page the page's header is subtracted (24 bytes, 40
 * in a new segment; xlog_internal.h), because no replica replays it alone. A WAL file's name begins with its timeline.
 */
export const walPositionStatement = `select lsn - case
      when (lsn - pg_lsn '0/0') % pg_size_bytes(current_setting('wal_segment_size')) = 40 then 40
      when (lsn - pg_lsn '0/0') % current_setting('wal_block_size')::int = 24 then 24
      else 0
    end as lsn, substr(pg_walfile_name(lsn), 1, 8) as timeline, system_identifier::text as system
  from pg_current_wal_insert_lsn() lsn, pg_control_system()`;

/** Turns "16/B374D848" into 0x16B374D848. */
export function parseLsn(text: string): Lsn {
  const [high, low] = text.split('/') as [string, string];
  return BigInt(`0x${high}${low.padStart(8, '0')}`);
}

export function isSameHistory(a: WalHistory, b: WalHistory): boolean {
  return a.timeline === b.timeline && a.systemIdentifier === b.systemIdentifier;
}

/** Compares the positions if they are of one history, otherwise the times. */
export function isLater(a: WritePosition, b: WritePosition): boolean {
  return isSameHistory(a, b) ? a.lsn >= b.lsn : a.atMs >= b.atMs;
}

export function formatPosition({ lsn, timeline, systemIdentifier, atMs }: WritePosition): string {
  return JSON.stringify([String(lsn), timeline, systemIdentifier, atMs]);
}

export function parsePosition(text: string): WritePosition {
  const [lsn, timeline, systemIdentifier, atMs] = JSON.parse(text) as [string, string, string, number];
  return { lsn: BigInt(lsn), timeline, systemIdentifier, atMs };
}

export interface ReplicaMark extends WalPosition {
  /** The oldest running transaction, 64 bits (PostgreSQL 9.26.8): all earlier ones have ended. */
  readonly xmin: bigint;
  /** Never decreases within one history. */
  readonly xmax: bigint;
  /** Commit time of the last replayed transaction by the primary's clock, in epoch milliseconds; null before the first. */
  readonly replayedAtMs: number | null;
}

/**
 * Runs before and after a read in its transaction (wire/queries.ts). The receiver shows a new timeline at once, the control file minutes
 * later. A server without a position is no replica.
 */
export const markStatement = prepareSql(
  'replica-mark',
  `select pg_snapshot_xmin(pg_current_snapshot()),
    case when pg_is_in_recovery() then pg_last_wal_replay_lsn() end,
    lpad(upper(to_hex(greatest(c.timeline_id, r.min_recovery_end_timeline, gateway.received_timeline()))), 8, '0'), s.system_identifier,
    (extract(epoch from pg_last_xact_replay_timestamp()) * 1000)::bigint, pg_snapshot_xmax(pg_current_snapshot())
    from pg_control_checkpoint() c, pg_control_recovery() r, pg_control_system() s`,
);

/** Reads no row: what counts are the marks around it, which the reader compares with the marks of the pass. */
export const marksAloneStatement = prepareSql('wal_history', 'select 1');

/** Returns null for a server that is no replica. */
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
