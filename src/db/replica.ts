import type { Observe } from '../ops/events.js';
import type { Settings } from '../settings.js';
import { Connection } from './connection.js';
import { Lane } from './lane.js';
import { type Lsn, parseLsn } from './lsn.js';
import type { Heartbeat } from './position.js';
import type { Statement } from './statement.js';

const probeStatement: Statement = {
  name: 'probe',
  text: `select pg_is_in_recovery(), coalesce(pg_last_wal_replay_lsn(), '0/0'), system_identifier, timeline_id,
    (extract(epoch from pg_last_xact_replay_timestamp()) * 1000)::bigint
    from pg_control_system(), pg_control_checkpoint()`,
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
  readonly short: Lane;
  readonly long: Lane;
  state: ReplicaState = { healthy: false, reason: 'not probed yet', replayed: 0n, asOfMs: null, lagMs: 0 };
  readonly #connect: () => Promise<Connection>;
  readonly #heartbeat: Heartbeat;
  readonly #settings: Settings;
  readonly #observe: Observe;
  #probeConnection: Connection | null = null;
  #goodProbes = 0;
  #everHealthy = false;
  #systemIdentifier: string | null = null;
  #timer: NodeJS.Timeout | undefined;
  #probing: Promise<void> | null = null;
  #closed = false;

  constructor(name: string, url: string, heartbeat: Heartbeat, settings: Settings, observe: Observe) {
    this.name = name;
    this.#heartbeat = heartbeat;
    this.#settings = settings;
    this.#observe = observe;
    const { connectTimeoutMs, namedStatements, statementTimeoutMs, queueMax } = settings;
    this.#connect = () =>
      Connection.open({ url, applicationName: 'workspace-data-gateway', connectTimeoutMs, namedStatements });
    this.short = new Lane(
      { connections: settings.shortConnections, depth: settings.shortDepth, queueMax, statementTimeoutMs },
      this.#connect,
    );
    this.long = new Lane(
      { connections: settings.longConnections, depth: 1, queueMax, statementTimeoutMs },
      this.#connect,
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

  /** One probe; those asking while one runs share it. Never rejects: its outcome is `state`. */
  probe(): Promise<void> {
    this.#probing ??= this.#probe().finally(() => {
      this.#probing = null;
    });
    return this.#probing;
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.short.close();
    this.long.close();
    this.#probeConnection?.destroy();
  }

  async #probe(): Promise<void> {
    let deadline: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      deadline = setTimeout(() => reject(new Error('probe deadline passed')), this.#settings.probeDeadlineMs);
    });
    try {
      this.#judge(await Promise.race([this.#ask(), late]));
    } catch (error) {
      this.#probeConnection?.destroy();
      this.#probeConnection = null;
      this.#eject((error as Error).message);
    } finally {
      clearTimeout(deadline);
    }
  }

  async #ask(): Promise<readonly (string | null)[]> {
    if (!this.#probeConnection?.usable) {
      const connection = await this.#connect();
      if (this.#closed) connection.close();
      this.#probeConnection = connection;
    }
    let answer: readonly (string | null)[] = [];
    await this.#probeConnection.run({ statement: probeStatement, workspace: null, values: {} }, (row) => {
      answer = row;
    });
    return answer;
  }

  #judge([inRecovery, replayedText, systemIdentifier, , replayedAtMs]: readonly (string | null)[]): void {
    const replayed = parseLsn(replayedText as string);
    if (inRecovery !== 't') return this.#eject('it is not in recovery: it was promoted, or it is a primary');
    if (this.#systemIdentifier !== null && systemIdentifier !== this.#systemIdentifier) {
      this.#systemIdentifier = systemIdentifier as string;
      return this.#eject('it became another cluster');
    }
    this.#systemIdentifier = systemIdentifier as string;
    const known = this.#heartbeat.newest
      ? this.#heartbeat.currency(replayed)
      : { asOfMs: replayedAtMs === null ? null : Number(replayedAtMs), lagMs: 0 };
    if (known.lagMs > this.#settings.lagMaxMs) return this.#eject('it lags behind the primary', { ...known, replayed });
    this.#goodProbes++;
    const healthy = this.state.healthy || !this.#everHealthy || this.#goodProbes >= goodProbesToReadmit;
    if (healthy && !this.state.healthy) this.#observe({ type: 'replica_admitted', replica: this.name });
    this.#everHealthy ||= healthy;
    this.state = { healthy, reason: healthy ? null : 'it is back, and on probation', replayed, ...known };
  }

  #eject(reason: string, known: Partial<ReplicaState> = {}): void {
    this.#goodProbes = 0;
    if (this.state.healthy || this.state.reason !== reason)
      this.#observe({ type: 'replica_ejected', replica: this.name, reason });
    this.state = { ...this.state, ...known, healthy: false, reason };
    if (this.state.lagMs <= this.#settings.lagMaxMs) {
      this.short.reset();
      this.long.reset();
    }
  }
}
