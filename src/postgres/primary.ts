import { Problem, Shortage } from '../base/errors.js';
import type { Help, Observe } from '../base/events.js';
import {
  type Connect,
  type Connection,
  type ConnectionOptions,
  getErrorCode,
  isOfOlderConnection,
  makeConnect,
} from './connection.js';
import { ConnectionPool, type Lease, type PoolLimits } from './connection-pool.js';
import { getDatabaseErrorKind, getHelp, getReason } from './database-errors.js';
import type { Heartbeat, PositionSample } from './heartbeat.js';
import { type LateCheck, Probe, type ProbeBounds } from './probe.js';
import { ServerHealth } from './resource-health.js';
import type { TextRow } from './row.js';
import type { Statement, Values, WorkspaceId } from './statement.js';
import {
  type Commands,
  committing,
  OpenTransaction,
  runSteps,
  type TransactionResult,
  type Work,
} from './transaction.js';
import { getWriteWaits, prepareWaitsStatement, type WriteWaits } from './write-waits.js';

/** Times are in milliseconds. */
export interface PrimaryBounds
  extends Pick<PoolLimits, 'queueMax' | 'quietMs'>,
    Pick<ConnectionOptions, 'loop' | 'names' | 'computeMac'> {
  readonly primaryConnections: number;
  /** Longest wait of a write for a connection. */
  readonly writeWaitMs: number;
  /** Time limit of a write, repetitions included. */
  readonly writeTimeoutMs: number;
}

/** A repetition mostly succeeds after a serialization failure, a deadlock or a lost connection. */
const attemptsMax = 3;

const nothingWaits: WriteWaits = { pids: null };
/** The status reports a refused login for this long. */
const refusedLoginMs = 60_000;

/** Number of connections for the few reads that no replica can answer (`primaryReadsPerSecond`). */
export const primaryReadConnections = 2;

/** The server that takes writes, with a small pool and a deadline for each transaction. Decides which failures are repeated. */
export class Primary {
  readonly #pool: ConnectionPool;
  /** Number of times that another server became the primary. */
  #moves = 0;
  readonly #waitsStatement = prepareWaitsStatement();
  #waits: WriteWaits = nothingWaits;
  #refusedLogin: { readonly reason: string; readonly atMs: number } | null = null;

  /** `connect` leads to the current primary. `lookNow` probes it at once, and the probe calls `look`. */
  constructor(
    connect: Connect,
    private readonly bounds: PrimaryBounds,
    private readonly observe: Observe,
    lookNow: () => void,
  ) {
    const { primaryConnections: connections, queueMax, quietMs, writeTimeoutMs: statementTimeoutMs } = bounds;
    const shares = { depth: 1, perWorkspace: Number.POSITIVE_INFINITY };
    const limits = { ...shares, connections, queueMax, quietMs, statementTimeoutMs, onOrphan: lookNow };
    const connectNoting = async (): Promise<Connection> => {
      try {
        const connection = await connect();
        this.#refusedLogin = null;
        return connection;
      } catch (error) {
        this.#refusedLogin = { reason: getReason(error as Error), atMs: performance.now() };
        throw error;
      }
    };
    this.#pool = new ConnectionPool(limits, connectNoting, new ServerHealth('primary', bounds.loop, observe));
  }

  /** Says why writes wait, or why they get no connection; undefined if neither is known. */
  get obstacle(): string | undefined {
    const { reason = '', atMs = Number.NEGATIVE_INFINITY } = this.#refusedLogin ?? {};
    return this.#waits.sentence ?? (performance.now() - atMs < refusedLoginMs ? `no login: ${reason}` : undefined);
  }

  /** Asks the primary, on the connection of its probe, why a write waits. */
  async look(connection: Connection): Promise<void> {
    const rows = this.#pool.hasPending ? await connection.readRows(this.#waitsStatement).catch(() => null) : null;
    this.#waits = rows === null ? nothingWaits : getWriteWaits(rows, connection.pid);
    if (rows !== null) this.#pool.settle(this.#waits.pids);
  }

  /**
   * Runs `work`, which must be safe to repeat: after a lost COMMIT it meets its own changes. A Problem rolls back and is the outcome.
   * Throws primary_unavailable after `writeTimeoutMs`. A repetition prepares nothing by name: a plan from before a DDL could fail again.
   */
  async runTransaction<T>(
    workspace: WorkspaceId,
    resource: string,
    work: Work<T>,
    commands: Commands = committing,
  ): Promise<TransactionResult<T>> {
    const { loop } = this.bounds;
    const beganMs = loop.ranMs;
    const lease = { workspace, resource, waitMs: this.bounds.writeWaitMs, atMs: beganMs };
    let [failures, failedMs] = [0, 0]; // time of the first failure
    for (;;) {
      const isNamed = this.bounds.names.areUsed && failedMs === 0;
      try {
        return await this.#lease(lease, async (connection) => {
          const open = new OpenTransaction(connection, this.bounds.computeMac(workspace), isNamed, commands);
          const result = await open.runWork(work);
          if (open.hasFailed) connection.close();
          return result;
        });
      } catch (error) {
        const helps = this.#reportFailure(error);
        const isOver = loop.ranMs - beganMs >= this.bounds.writeTimeoutMs;
        if (!isOfOlderConnection(error, failedMs)) failures++;
        failedMs ||= performance.now();
        if (failures >= attemptsMax || isOver || !(helps === 'repeat' || (isNamed && helps === 'new connection')))
          throw new Shortage('no primary');
      }
    }
  }

  /** Runs a statement outside any workspace, and only while no write waits. Throws primary_unavailable. */
  async execute(statement: Statement, values: Values = {}): Promise<readonly TextRow[]> {
    if (this.#pool.waiting > 0) throw new Shortage('no primary');
    const lease = { workspace: '', resource: '', waitMs: this.bounds.writeWaitMs, atMs: this.bounds.loop.ranMs };
    const [result] = await this.#lease(lease, (connection) => runSteps(connection, false, [{ statement, values }]));
    return result?.rows ?? [];
  }

  /** Drops the connections, so that the new primary runs the transactions again. */
  moveToNewPrimary(): void {
    this.#moves++;
    this.#pool.reset();
  }

  close(): void {
    this.#pool.close();
  }

  /** Leases a connection. A login that fails is tried once more, at each new primary. Throws primary_unavailable. */
  async #lease<T>(lease: Lease, work: (connection: Connection) => Promise<T>, hasRetry = true): Promise<T> {
    const moves = this.#moves;
    let isHeld = false;
    try {
      return await this.#pool.lease(lease, (connection) => {
        isHeld = true;
        return work(connection);
      });
    } catch (error) {
      if (isHeld) throw error;
      const isMoved = moves !== this.#moves;
      const isEarly = this.bounds.loop.ranMs - lease.atMs < lease.waitMs / 2;
      if (isMoved || (hasRetry && isEarly && !(error instanceof Problem))) return this.#lease(lease, work, isMoved);
      this.#reportCode(error instanceof Problem ? 'overloaded' : getErrorCode(error));
      throw new Shortage('no primary');
    }
  }

  /** Returns what helps against the error. Throws it if no repetition can help. */
  #reportFailure(error: unknown): Help | undefined {
    if (error instanceof Problem) throw error;
    const kind = getDatabaseErrorKind(error);
    if (kind === 'permanent' || kind === 'unfit') throw error;
    this.#reportCode(getErrorCode(error));
    return getHelp(error);
  }

  #reportCode(code: string): void {
    const { obstacle } = this;
    this.observe({ type: 'primary_failed', code, ...(obstacle !== undefined && { obstacle }) });
  }
}

/** A server that is the primary, or can become it. */
export interface ServerNode {
  /** Host, port and database. */
  readonly name: string;
  /** Reads the URL again, because a password can be rotated. */
  readonly readUrl: () => string;
  /** Runs before the first use; null if the start checked the server. */
  readonly check: LateCheck | null;
}

interface ProbedNode extends ServerNode {
  readonly probe: Probe;
}

/** A user of the current primary. */
interface PrimaryUser {
  moveToNewPrimary(): void;
  /** Gets the connection of each probe of the primary. */
  look?(connection: Connection): Promise<void>;
}

/** Finds the primary, the server out of recovery, whose positions are the heartbeat: a failover needs no restart. */
export class PrimaryNodes {
  readonly #nodes: readonly ProbedNode[];
  #sampling: Promise<void> | null = null;
  #current: ProbedNode;
  /** Users that hear of each change, and get each probe's connection. */
  readonly users: PrimaryUser[] = [];
  /** Null while the primary is reachable. */
  reason: string | null = 'not probed yet';

  /** `nodes` are not empty; the first counts as primary until one has answered as such. */
  constructor(
    nodes: readonly ServerNode[],
    options: ConnectionOptions & ProbeBounds,
    private readonly heartbeat: Heartbeat,
    private readonly observe: Observe,
  ) {
    this.#nodes = nodes.map((node) => ({ ...node, probe: new Probe(makeConnect(node.readUrl, options), options) }));
    this.#current = this.#nodes[0] as ProbedNode;
  }

  readonly #show = (connection: Connection) => Promise.all(this.users.map((user) => user.look?.(connection)));

  /** Null while the server is not checked. Reads the settings, which takes 3 ms. */
  get url(): string | null {
    const { readUrl, check } = this.#current;
    return check?.isComplete === false ? null : readUrl();
  }

  get isReachable(): boolean {
    return this.reason === null;
  }

  /** Name of the server that takes the writes now, or would. */
  get server(): string {
    return this.#current.name;
  }

  /** Probes in the order of the setting, until closed. */
  async start(): Promise<void> {
    for (const node of this.#nodes) await node.probe.repeat(() => this.#sample(node));
  }

  close(): void {
    for (const { probe } of this.#nodes) probe.close();
  }

  /** Never rejects; the outcome is `isReachable`. */
  sample(): Promise<void> {
    this.#sampling ??= this.#sample(this.#current).finally(() => {
      this.#sampling = null;
    });
    return this.#sampling;
  }

  async #sample(node: ProbedNode): Promise<void> {
    try {
      // The time is taken before the statement, so that all commits until then lie at or before the position.
      const [atMs, tickMs] = [Date.now(), performance.now()];
      const state = await node.probe.ask(node === this.#current ? this.#show : undefined);
      if (state.inRecovery) return this.#fail(node, 'in_recovery', 'it is in recovery');
      await node.check?.repeat();
      if (node.check?.isComplete === false)
        return this.#fail(node, 'unchecked', node.check.result.refusal ?? 'it is not checked yet');
      this.#accept(node, { ...state, atMs, tickMs });
    } catch (error) {
      this.#fail(node, getErrorCode(error), `it does not answer (${getReason(error as Error)})`);
    }
  }

  /** After a failover the old primary can come back on its old timeline, where writes are lost: the later timeline wins. */
  #accept(node: ProbedNode, sample: PositionSample): void {
    const { newest } = this.heartbeat;
    const isCurrent = node === this.#current;
    if (newest !== undefined && sample.systemIdentifier !== newest.systemIdentifier && !isCurrent) return;
    if (newest?.systemIdentifier === sample.systemIdentifier && sample.timeline < newest.timeline)
      return this.#fail(node, 'old_timeline', 'it is on the timeline of before a promotion');
    if (!isCurrent && this.isReachable && sample.timeline === newest?.timeline) return;
    this.heartbeat.add(sample);
    this.reason = null;
    if (isCurrent) return;
    this.#current = node;
    if (newest !== undefined) this.observe({ type: 'primary_changed', server: node.name });
    for (const user of this.users) user.moveToNewPrimary();
  }

  #fail(node: ProbedNode, code: string, reason: string): void {
    if (node !== this.#current) return;
    if (this.isReachable && !node.probe.isClosed) this.observe({ type: 'primary_failed', code });
    this.reason = reason;
  }
}
