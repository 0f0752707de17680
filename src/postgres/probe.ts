import type { EventLoop } from '../base/flow/event-loop.js';
import { readProject } from '../base/paths.js';
import type { Connect, Connection } from './connection.js';
import type { TextRow } from './row.js';
import { prepareSql, type Statement } from './statement.js';
import { type Lsn, parseLsn, walPositionStatement } from './wal-position.js';

export interface ProbeBounds {
  readonly probeIntervalMs: number;
  readonly probeDeadlineMs: number;
  readonly loop: EventLoop;
}

export interface ServerState {
  readonly inRecovery: boolean;
  readonly systemIdentifier: string;
  /** The replayed position in recovery, otherwise the flushed one. */
  readonly lsn: Lsn;
  /** Position of the next record if the server is out of recovery. */
  readonly insertLsn: Lsn;
  readonly timeline: string;
  /** Commit time of the last replayed transaction by the primary's clock, in epoch milliseconds; null before the first. */
  readonly replayedAtMs: number | null;
  /** The server streams WAL from another one. */
  readonly receivesWal: boolean;
}

/** The functions of the sub-select fail in recovery. PostgreSQL evaluates its condition first, so they are not called there. */
const stateStatement = prepareSql(
  'probe',
  `select pg_is_in_recovery(), system_identifier, coalesce(flushed, pg_last_wal_replay_lsn(), '0/0'), coalesce(lsn, '0/0'),
      coalesce(timeline, ''), (extract(epoch from pg_last_xact_replay_timestamp()) * 1000)::bigint,
      exists (select from pg_stat_wal_receiver)
    from pg_control_system() left join lateral (
      select pg_current_wal_flush_lsn() as flushed, lsn, timeline from (${walPositionStatement}) position
      where (select not pg_is_in_recovery())) primary_side on true`,
);

export function prepareCatalogDigest(): Statement {
  return prepareSql('catalog-digest', readProject('sql/catalog/catalog-digest.sql'));
}

function parseState(row: TextRow): ServerState {
  const [inRecovery, systemIdentifier, lsn, insertLsn, timeline, replayedAtMs, receivesWal] = row;
  return {
    inRecovery: inRecovery === 't',
    systemIdentifier: systemIdentifier as string,
    lsn: parseLsn(lsn as string),
    insertLsn: parseLsn(insertLsn as string),
    timeline: timeline as string,
    replayedAtMs: replayedAtMs == null ? null : Number(replayedAtMs),
    receivesWal: receivesWal === 't',
  };
}

/** Asks a server for its state on a connection of its own, within a deadline. */
export class Probe {
  #connection: Promise<Connection> | null = null;
  #timer: NodeJS.Timeout | undefined;
  isClosed = false;

  constructor(
    private readonly connect: Connect,
    private readonly bounds: ProbeBounds,
  ) {}

  /** Pauses for an interval after each run, until closed. Resolves after the first run. */
  async repeat(work: () => Promise<void>): Promise<void> {
    await work();
    if (this.isClosed) return;
    this.#timer = setTimeout(() => void this.repeat(work), this.bounds.probeIntervalMs).unref();
  }

  /** `also` gets the connection with the state, within the deadline. */
  async ask(also?: (connection: Connection) => Promise<unknown>): Promise<ServerState> {
    const { loop, probeDeadlineMs } = this.bounds;
    let cancel = (): void => undefined; // Node.js 20 has no Promise.withResolvers
    const late = new Promise<never>((_, reject) => {
      cancel = loop.callAfter(probeDeadlineMs, () => reject(new Error('probe deadline passed')));
    });
    try {
      return parseState(await Promise.race([this.#answer(also), late]));
    } catch (error) {
      this.#drop();
      throw error;
    } finally {
      cancel();
    }
  }

  close(): void {
    this.isClosed = true;
    clearTimeout(this.#timer);
    this.#drop();
  }

  /** Asks again on a new connection if the kept one fails: a server is down only when it refuses a new one. */
  async #answer(also?: (connection: Connection) => Promise<unknown>): Promise<TextRow> {
    const askOn = async (connection: Connection): Promise<TextRow> => {
      const [row = []] = await connection.readRows(stateStatement);
      await also?.(connection);
      return row;
    };
    const previous = this.#connection;
    try {
      if (previous !== null) return await askOn(await previous);
    } catch (error) {
      if (this.#connection !== previous) throw error; // the deadline has passed
    }
    if (this.isClosed) throw new Error('the probe was closed');
    this.#connection = this.connect();
    return askOn(await this.#connection);
  }

  #drop(): void {
    this.#connection?.then((connection) => connection.destroy()).catch(() => undefined);
    this.#connection = null;
  }
}

export interface CheckResult {
  readonly refusal: string | null;
  /** Views that a lock, for example, left unchecked: they must not be read on the server. */
  readonly uncheckedViews: ReadonlySet<string>;
}

const pauseMs = 5000;

/** The check of a server that the start could not make, repeated until it passes. */
export class LateCheck {
  #running: Promise<void> | null = null;
  #checkedMs = Number.NEGATIVE_INFINITY;

  constructor(
    public result: CheckResult,
    private readonly check: () => Promise<CheckResult>,
  ) {}

  get isComplete(): boolean {
    return this.result.refusal === null && this.result.uncheckedViews.size === 0;
  }

  /** Checks at most once in five seconds. Waits for the result only if the server itself is refused, not if views are unchecked. */
  async repeat(): Promise<void> {
    if (!this.isComplete && performance.now() - this.#checkedMs >= pauseMs) this.#running ??= this.#run();
    if (this.result.refusal !== null) await this.#running;
  }

  async #run(): Promise<void> {
    this.result = await this.check().catch(() => this.result); // a failed check is made again
    this.#checkedMs = performance.now();
    this.#running = null;
  }
}
