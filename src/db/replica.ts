import type { Observe } from '../events.js';
import type { Settings } from '../settings.js';
import type { ActiveWorkspaces } from './active-workspaces.js';
import { Connection } from './connection.js';
import { ConnectionPool } from './connection-pool.js';
import type { Currency, Heartbeat } from './heartbeat.js';
import { Probe } from './probe.js';
import type { TextRow } from './row.js';
import type { Statement } from './statement.js';
import { type Lsn, parseLsn } from './wal-position.js';

const probeStatement: Statement = {
  name: 'probe',
  text: `select pg_is_in_recovery(), coalesce(pg_last_wal_replay_lsn(), '0/0'), system_identifier,
    (extract(epoch from pg_last_xact_replay_timestamp()) * 1000)::bigint
    from pg_control_system()`,
  parameters: [],
};
const goodProbesToReadmit = 3;

/** What the last probes said of a replica. */
export interface ReplicaState {
  readonly healthy: boolean;
  /** Why it is out; null while it is in. */
  readonly reason: string | null;
  readonly replayed: Lsn;
  readonly asOfMs: number | null;
  readonly lagMs: number;
}

/** One read replica: its connections, and a probe that says whether it may be used. */
export class Replica {
  readonly name: string;
  readonly short: ConnectionPool;
  readonly long: ConnectionPool;
  state: ReplicaState = { healthy: false, reason: 'not probed yet', replayed: 0n, asOfMs: null, lagMs: 0 };
  readonly #heartbeat: Heartbeat;
  readonly #settings: Settings;
  readonly #observe: Observe;
  readonly #question: Probe;
  #probing: Promise<void> | null = null;
  #probedMs = Number.NEGATIVE_INFINITY;
  #goodProbes = 0;
  #everHealthy = false;
  #systemIdentifier: string | null = null;
  /** Where it was seen ahead of its primary. */
  #strayedAt: Lsn | null = null;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(
    name: string,
    url: string,
    heartbeat: Heartbeat,
    activeWorkspaces: ActiveWorkspaces,
    settings: Settings,
    observe: Observe,
  ) {
    this.name = name;
    this.#heartbeat = heartbeat;
    this.#settings = settings;
    this.#observe = observe;
    const { connectTimeoutMs, namedStatements, statementTimeoutMs, queueMax } = settings;
    const connect = (): Promise<Connection> =>
      Connection.open({ url, applicationName: 'workspace-data-gateway', connectTimeoutMs, namedStatements });
    this.#question = new Probe(connect, probeStatement, settings.probeDeadlineMs);
    const both = { queueMax, statementTimeoutMs, activeWorkspaces };
    const { shortConnections, shortDepth, shortPerWorkspace, longConnections, longPerWorkspace } = settings;
    this.short = new ConnectionPool(
      { ...both, connections: shortConnections, depth: shortDepth, perWorkspace: shortPerWorkspace },
      connect,
    );
    this.long = new ConnectionPool(
      { ...both, connections: longConnections, depth: 1, perWorkspace: longPerWorkspace },
      connect,
    );
  }

  get inFlight(): number {
    return this.short.inFlight + this.long.inFlight;
  }

  /** Probes now, and again every interval until closed. */
  async start(): Promise<void> {
    await this.probe();
    const again = (): void => {
      if (this.#closed) return;
      this.#timer = setTimeout(() => void this.probe().then(again), this.#settings.probeIntervalMs).unref();
    };
    again();
  }

  /**
   * One probe, unless the last is younger than `ageMsMax`; those asking while one runs share it. Never rejects: its
   * outcome is `state`.
   */
  probe(ageMsMax = 0): Promise<void> {
    if (performance.now() - this.#probedMs < ageMsMax) return Promise.resolve();
    this.#probing ??= this.#probe().finally(() => {
      this.#probing = null;
    });
    return this.#probing;
  }

  /** Puts new connections in the place of all, as their prepared statements no longer fit the schema. */
  renew(): void {
    this.short.renew();
    this.long.renew();
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.short.close();
    this.long.close();
    this.#question.close();
  }

  async #probe(): Promise<void> {
    try {
      const answer = await this.#question.ask();
      if (!this.#closed) this.#judge(answer);
    } catch (error) {
      if (!this.#closed) this.#eject((error as Error).message);
    }
    this.#probedMs = performance.now();
  }

  #judge([inRecovery, replayedText, systemIdentifier, replayedAtMs]: TextRow): void {
    if (inRecovery !== 't') return this.#eject('it is not in recovery: it was promoted, or it is a primary');
    this.#systemIdentifier ??= systemIdentifier as string;
    const cluster = this.#heartbeat.newest?.systemIdentifier ?? this.#systemIdentifier;
    if (systemIdentifier !== cluster) return this.#eject('it belongs to another cluster');
    const replayed = parseLsn(replayedText as string);
    if (this.#hasStrayed(replayed)) return this.#eject('it is ahead of the primary: it follows another timeline');
    const known = this.#currency(replayed, replayedAtMs == null ? null : Number(replayedAtMs));
    if (known.lagMs > this.#settings.lagMaxMs) return this.#eject('it lags behind the primary', { ...known, replayed });
    this.#goodProbes++;
    const healthy = this.state.healthy || !this.#everHealthy || this.#goodProbes >= goodProbesToReadmit;
    if (healthy && !this.state.healthy) this.#observe({ type: 'replica_admitted', replica: this.name });
    this.#everHealthy ||= healthy;
    this.state = { healthy, reason: healthy ? null : 'it is back, and on probation', replayed, ...known };
  }

  /** By the heartbeat; where that knows no position so old, as at its start, by when what was replayed last was committed. */
  #currency(replayed: Lsn, replayedAtMs: number | null): Currency {
    const { newest } = this.#heartbeat;
    if (!newest) return { asOfMs: replayedAtMs, lagMs: 0 };
    const known = this.#heartbeat.currency(replayed);
    if (known.asOfMs !== null || replayedAtMs === null) return known;
    return { asOfMs: replayedAtMs, lagMs: Math.max(0, newest.atMs - replayedAtMs) };
  }

  /**
   * No replica can have replayed what its primary had not written at a later moment. One that has, belongs to a history
   * that a failover left behind, and its positions prove nothing; it stays out until it moves.
   */
  #hasStrayed(replayed: Lsn): boolean {
    const { newest } = this.#heartbeat;
    const before = this.state.replayed;
    if (newest !== undefined && newest.tickMs > this.#probedMs && before > newest.lsn) this.#strayedAt = before;
    if (this.#strayedAt !== replayed) this.#strayedAt = null;
    return this.#strayedAt !== null;
  }

  /** `lagging` is what is known of a replica that is alive: what it is answering, it may finish. */
  #eject(reason: string, lagging?: Partial<ReplicaState>): void {
    this.#goodProbes = 0;
    if (this.state.healthy || this.state.reason !== reason)
      this.#observe({ type: 'replica_ejected', replica: this.name, reason });
    this.state = { ...this.state, ...lagging, healthy: false, reason };
    if (lagging !== undefined) return;
    this.short.reset();
    this.long.reset();
  }
}
