import { parseMark } from '../db/replica-mark.js';
import type { ReplicaRequirement } from '../db/replicas.js';
import type { TextRow } from '../db/row.js';
import type { WalHistory } from '../db/wal-position.js';
import { Problem } from '../errors.js';
import type { SyncPosition } from './position.js';

/** A replica whose state is older than that of the pass, or not known to follow the primary: the read is repeated on another. */
class NotCurrent extends Error {
  readonly code = 'not_current';
}

/**
 * The latest timeline of a cluster that this gateway has seen, on the primary or on a replica. A replica whose receiver has ended shows
 * the timeline of its control file again, which can be the one before.
 */
export class LatestTimeline {
  readonly #primary: () => WalHistory | undefined;
  #seen: WalHistory | undefined;

  /** `primary` is the history of the primary; undefined while it is not known. */
  constructor(primary: () => WalHistory | undefined) {
    this.#primary = primary;
  }

  /** The latest timeline of the cluster to which the mark of a replica belongs. */
  of({ systemIdentifier, timeline }: WalHistory): string {
    for (const known of [this.#primary(), this.#seen])
      if (known?.systemIdentifier === systemIdentifier && known.timeline > timeline) return known.timeline;
    this.#seen = { systemIdentifier, timeline };
    return timeline;
  }
}

/** The start of a pass: the pass so far if a cursor continues it, and the end of the pass before if there was one. */
export interface PassStart {
  readonly pass: SyncPosition | null;
  readonly since: SyncPosition | null;
}

/**
 * Judges every statement of a pass by the marks of its replica, so that the pass loses no row:
 * - each snapshot counts as finished the transactions that the first one did: their changes are in it;
 * - no statement reads an older state than the statement before;
 * - all is read in one history, because after a failover ids of lost transactions are used again.
 */
export class Pass {
  /** The pass so far; null before its first statement. */
  #now: SyncPosition | null;
  readonly #since: SyncPosition | null;
  readonly #latest: LatestTimeline;

  constructor({ pass, since }: PassStart, latest: LatestTimeline) {
    this.#now = pass;
    this.#since = since;
    this.#latest = latest;
  }

  /** The position so far. Must not be read before the first statement has ended. */
  get position(): SyncPosition {
    if (this.#now === null) throw new Error('the pass has no position before its first statement');
    return this.#now;
  }

  /** Requirement of the next statement. */
  get requirement(): ReplicaRequirement {
    const before = this.#now ?? this.#since;
    return { replicasOnly: true, ...(before && { replayed: before.lsn }) };
  }

  /** Takes the mark before or after a statement. Throws sync_expired, or NotCurrent, which repeats the statement on another replica. */
  readonly onMark = (row: TextRow): void => {
    const mark = parseMark(row);
    const before = this.#now ?? this.#since;
    if (mark === null) throw new NotCurrent('the server is no replica');
    const timeline = this.#latest.of(mark);
    if (before !== null && (before.systemIdentifier !== mark.systemIdentifier || before.timeline !== timeline))
      throw expired();
    if (mark.timeline !== timeline) throw new NotCurrent('the replica does not show that it follows the primary');
    if (before !== null && mark.lsn < before.lsn) throw new NotCurrent('the replica is behind the pass');
    if (this.#now !== null && mark.xmin < this.#now.xmin) throw new NotCurrent('the replica lacks transactions');
    const { xmin, replayedAtMs } = this.#now ?? {
      ...mark,
      replayedAtMs: mark.replayedAtMs ?? before?.replayedAtMs ?? null,
    };
    const { lsn, systemIdentifier } = mark;
    this.#now = { systemIdentifier, timeline, lsn, xmin, replayedAtMs };
  };
}

function expired(): Problem {
  const detail =
    'The data has another history than the token, after a failover or a restore: start with a pass over everything.';
  return new Problem('sync_expired', detail);
}
