import type { Observe } from '../base/events.js';
import type { ActiveKeys } from '../base/flow/gate.js';
import type { Connect, Connection } from './connection.js';
import { ConnectionPool, type PoolLimits } from './connection-pool.js';
import { getReason } from './database-errors.js';
import type { Currency, Heartbeat } from './heartbeat.js';
import type { ServerNode } from './primary.js';
import { Probe, type ProbeBounds, prepareCatalogDigest, type ServerState } from './probe.js';
import { type LockedResource, ServerHealth } from './resource-health.js';
import { isSameHistory, type Lsn, type WalPosition } from './wal-position.js';

const goodProbesToReadmit = 3;
/** While several workspaces are active, the share of each is divided by this, so that none waits for a flood of another (decision 0007). */
const activeDivisors = { short: 8, long: 4 };

/** Says what the last probes found; choice.ts decides by it which replica answers a read. */
export interface ReplicaState {
  readonly healthy: boolean;
  /** Null while the replica is healthy. */
  readonly reason: string | null;
  /** The server is the primary, which is no fault if both settings list every server. */
  readonly isPrimary: boolean;
  readonly replayed: Lsn;
  readonly asOfMs: number | null;
  /** Null without a position of the primary, or without an answer. */
  readonly lagMs: number | null;
}

export interface ReadableResource {
  readonly name: string;
  readonly view: string;
}

export interface ReplicaBounds extends ProbeBounds, Pick<PoolLimits, 'queueMax' | 'statementTimeoutMs' | 'quietMs'> {
  readonly shortConnections: number;
  readonly shortDepth: number;
  readonly shortPerWorkspace: number;
  readonly longConnections: number;
  readonly longPerWorkspace: number;
  /** The workspaces that any replica served lately. */
  readonly activeWorkspaces: ActiveKeys;
  readonly lagMaxMs: number;
}

/** A server that answers reads, with its pools and the probe that decides whether it is used. */
export class Replica {
  readonly name: string;
  readonly short: ConnectionPool;
  readonly long: ConnectionPool;
  state: ReplicaState = {
    healthy: false,
    reason: 'not probed yet',
    isPrimary: false,
    replayed: 0n,
    asOfMs: null,
    lagMs: null,
  };
  readonly #health: ServerHealth;
  readonly #probe: Probe;
  #probing: Promise<void> | null = null;
  #probedMs = Number.NEGATIVE_INFINITY;
  #probes = 0;
  readonly #catalogStatement = prepareCatalogDigest();
  #catalogDigest: string | null = null;
  #goodProbes = 0;
  #everHealthy = false;
  #systemIdentifier: string | null = null;
  /** Position of the primary that the replica was ahead of. It follows an abandoned history, so it stays out until a restart. */
  #aheadOf: WalPosition | null = null;

  constructor(
    private readonly server: Pick<ServerNode, 'name' | 'check'> & { readonly connect: Connect },
    private readonly bounds: ReplicaBounds,
    private readonly heartbeat: Heartbeat,
    private readonly observe: Observe,
  ) {
    const { name, connect } = server;
    this.name = name;
    this.#probe = new Probe(connect, bounds);
    this.#health = new ServerHealth(name, bounds.loop, observe);
    const { activeWorkspaces } = bounds;
    const short = {
      connections: bounds.shortConnections,
      depth: bounds.shortDepth,
      perWorkspace: bounds.shortPerWorkspace,
      sharing: { activeWorkspaces, divisor: activeDivisors.short },
    };
    const long = {
      connections: bounds.longConnections,
      depth: 1,
      perWorkspace: bounds.longPerWorkspace,
      sharing: { activeWorkspaces, divisor: activeDivisors.long },
    };
    this.short = new ConnectionPool({ ...bounds, ...short }, connect, this.#health);
    this.long = new ConnectionPool({ ...bounds, ...long }, connect, this.#health, this.short);
  }

  /** The view of the resource was checked on this replica, and no lock holds it. */
  mayRead({ name, view }: ReadableResource): boolean {
    return !this.#health.locks.has(name) && !this.server.check?.result.uncheckedViews.has(view);
  }

  get locked(): readonly LockedResource[] {
    return this.#health.locked;
  }

  get inFlight(): number {
    return this.short.inFlight + this.long.inFlight;
  }

  start(): Promise<void> {
    return this.#probe.repeat(() => this.probe());
  }

  /** Probes the replica, unless the last probe is younger than `ageMsMax`; callers share a probe. Never rejects. */
  probe(ageMsMax = 0): Promise<void> {
    if (performance.now() - this.#probedMs < ageMsMax) return Promise.resolve();
    this.#probing ??= this.#probeOnce().finally(() => {
      this.#probing = null;
    });
    return this.#probing;
  }

  renew(): void {
    this.short.renew();
    this.long.renew();
  }

  close(): void {
    this.#probe.close();
    this.short.close();
    this.long.close();
  }

  async #probeOnce(): Promise<void> {
    try {
      const answer = await this.#probe.ask((connection) => this.#compareCatalog(connection));
      if (!this.#probe.isClosed) await this.#update(answer);
    } catch (error) {
      this.#aheadOf = null;
      if (!this.#probe.isClosed) this.#takeOut(getReason(error as Error), { replayed: 0n });
    }
    this.#probedMs = performance.now();
  }

  /** Compares the catalog with the one before, at every second probe. Its failure does not fail the probe. */
  async #compareCatalog(connection: Connection): Promise<void> {
    if (this.#probes++ % 2 === 1) return;
    const [[digest] = []] = await connection.readRows(this.#catalogStatement).catch(() => []);
    if (digest && this.#catalogDigest && digest !== this.#catalogDigest)
      this.observe({ type: 'catalog_changed', replica: this.name });
    this.#catalogDigest = digest ?? this.#catalogDigest;
  }

  async #update(answer: ServerState): Promise<void> {
    const { inRecovery, systemIdentifier, lsn: replayed, replayedAtMs, timeline, receivesWal } = answer;
    const { newest } = this.heartbeat;
    if (!inRecovery) {
      // Each promotion begins a timeline: a server out of recovery on another one is a fault.
      const isPrimary = newest?.systemIdentifier === systemIdentifier && newest?.timeline === timeline;
      const reason = isPrimary ? 'it is the primary' : 'it was promoted, or it is a primary';
      return this.#takeOut(`it is not in recovery: ${reason}`, { isPrimary });
    }
    this.#systemIdentifier ??= systemIdentifier;
    if (systemIdentifier !== (newest?.systemIdentifier ?? this.#systemIdentifier))
      return this.#takeOut('it belongs to another cluster');
    if (this.#hasDiverged()) return this.#takeOut('it is ahead of the primary: it follows another timeline');
    const known = this.#estimateCurrency(replayed, replayedAtMs);
    if (known.lagMs !== null && known.lagMs > this.bounds.lagMaxMs)
      return this.#takeOut(receivesWal ? 'it lags behind the primary' : 'it receives no WAL', { ...known, replayed });
    await this.server.check?.repeat();
    if (this.server.check?.result.refusal) return this.#takeOut(this.server.check.result.refusal);
    this.#goodProbes++;
    const healthy = this.state.healthy || !this.#everHealthy || this.#goodProbes >= goodProbesToReadmit;
    if (healthy && !this.state.healthy) {
      this.observe({ type: 'replica_admitted', replica: this.name });
      for (const pool of [this.short, this.long]) pool.warm();
    }
    this.#everHealthy ||= healthy;
    const reason = healthy ? null : 'it is back, and on probation';
    this.state = { healthy, reason, isPrimary: false, replayed, ...known };
  }

  /** Uses the heartbeat; before its first sample, the commit time of the last replayed transaction. */
  #estimateCurrency(replayed: Lsn, replayedAtMs: number | null): Currency {
    const known = this.heartbeat.estimateCurrency(replayed);
    if (replayedAtMs === null) return known;
    const measureReplayLagMs = (): number => Math.max(0, (this.heartbeat.newest?.atMs ?? 0) - replayedAtMs);
    return {
      asOfMs: known.asOfMs ?? replayedAtMs,
      lagMs: known.lagMs === Number.POSITIVE_INFINITY ? measureReplayLagMs() : known.lagMs,
    };
  }

  /** The replica had replayed a position that the primary had not yet reached. */
  #hasDiverged(): boolean {
    const { newest } = this.heartbeat;
    if (newest === undefined) return false;
    if (newest.tickMs > this.#probedMs && this.state.replayed > newest.lsn) this.#aheadOf = newest;
    return this.#aheadOf !== null && isSameHistory(this.#aheadOf, newest);
  }

  /** Ejects the replica. Its running statements fail at once, unless it only lags: then they may end. */
  #takeOut(reason: string, change: Partial<ReplicaState> = {}): void {
    if (this.state.healthy || this.state.reason !== reason)
      this.observe(
        change.isPrimary
          ? { type: 'primary_among_replicas', replica: this.name }
          : { type: 'replica_ejected', replica: this.name, reason },
      );
    this.#goodProbes = 0;
    this.state = { ...this.state, lagMs: null, isPrimary: false, ...change, healthy: false, reason };
    if (change.lagMs !== undefined) return;
    this.short.reset();
    this.long.reset();
  }
}
