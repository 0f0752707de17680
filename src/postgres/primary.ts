import { databaseErrorKind, Problem } from '../base/errors.js';
import type { Observe } from '../base/events.js';
import { Gate } from '../base/flow/gate.js';
import {
  type Connect,
  type Connection,
  type ConnectionOptions,
  connectTo,
  errorCode,
  isConnectionEnd,
  isOfOlderConnection,
} from './connection.js';
import { ConnectionPool } from './connection-pool.js';
import type { Heartbeat, PositionSample } from './heartbeat.js';
import { Locks } from './locks.js';
import { type LateCheck, Probe, type ProbeBounds } from './probe.js';
import type { TextRow } from './row.js';
import type { Seal } from './seal.js';
import type { Statement, Values, WorkspaceId } from './statement.js';
import { OpenTransaction, runSteps, type TransactionResult, type Work } from './transaction.js';

/** Bounds of the primary's pool; times in milliseconds. */
export interface PrimaryBounds {
  readonly primaryConnections: number;
  readonly queueMax: number;
  /** How long a write waits for a connection. */
  readonly writeWaitMs: number;
  /** How long a transaction may take, including its repetitions. */
  readonly writeTimeoutMs: number;
  /** Whether statements are prepared by name; a pooler in front of PostgreSQL must support that. */
  readonly namedStatements: boolean;
  readonly seal: Seal;
}

/** Runs of a transaction in all: a repetition mostly succeeds after a serialization failure, a deadlock or a lost connection. */
const attemptsMax = 3;

/** Connections to the primary for reads when no replica is fresh enough; their number per second is capped. */
export const primaryReadConnections = 2;

/** The primary, for writes: a small pool, a deadline for each transaction, and the decision which failures are repeated. */
export class Primary {
  readonly #bounds: PrimaryBounds;
  readonly #observe: Observe;
  readonly #pool: ConnectionPool;
  /** Leaves a connection to the other resources while the writes of one wait for a lock. */
  readonly #ofResource: Gate;
  /** Counts the moves to another primary. */
  #moves = 0;

  /** `connect` leads to the primary of the moment; `isShared` where clients write several resources. */
  constructor(connect: Connect, bounds: PrimaryBounds, isShared: boolean, observe: Observe) {
    this.#bounds = bounds;
    this.#observe = observe;
    const { primaryConnections: connections, queueMax, writeTimeoutMs: statementTimeoutMs } = bounds;
    const shares = { depth: 1, perWorkspace: connections, quietMs: Number.POSITIVE_INFINITY };
    const limits = { ...shares, connections, queueMax, statementTimeoutMs };
    this.#pool = new ConnectionPool(limits, connect, new Locks('primary', observe));
    const share = isShared ? Math.max(1, connections - 1) : connections;
    this.#ofResource = new Gate({ share: () => share, queueMax, refusal: () => primaryUnavailable() });
  }

  /**
   * Runs `work` in a transaction and commits it; a Problem that `work` throws rolls it back and is the outcome. `work` can run
   * several times, so it must be safe to repeat: after a lost COMMIT the second run meets the changes of the first. Throws
   * primary_unavailable, after `writeTimeoutMs` and a wait for a connection at the latest. A repetition names no statements, so
   * that it meets none that was prepared before DDL.
   */
  async transaction<T>(workspace: WorkspaceId, resource: string, work: Work<T>): Promise<TransactionResult<T>> {
    const waiting = { waitMs: this.#bounds.writeWaitMs, lane: workspace };
    const leave = await this.#ofResource.enter([resource], waiting);
    return this.#repeat(workspace, work).finally(leave);
  }

  async #repeat<T>(workspace: WorkspaceId, work: Work<T>): Promise<TransactionResult<T>> {
    const beganMs = performance.now();
    let [failures, failedMs] = [0, 0]; // of the first failure
    for (;;) {
      const named = this.#bounds.namedStatements && failedMs === 0;
      try {
        return await this.#hold(workspace, beganMs, async (connection) => {
          const open = new OpenTransaction(connection, this.#bounds.seal(workspace), named);
          const result = await open.end(work);
          if (open.hasFailed) connection.close();
          return result;
        });
      } catch (error) {
        const code = this.#reportFailure(error, named);
        const isOver = performance.now() - beganMs >= this.#bounds.writeTimeoutMs;
        if (!isOfOlderConnection(error, failedMs)) failures++;
        failedMs ||= performance.now();
        if (failures >= attemptsMax || isOver || !isRepeatable(code, named)) throw primaryUnavailable();
      }
    }
  }

  /** Runs a housekeeping statement outside any workspace, only while no write waits for a connection. Throws primary_unavailable. */
  async execute(statement: Statement, values: Values = {}): Promise<readonly TextRow[]> {
    if (this.#pool.waiting > 0) throw primaryUnavailable();
    const [result] = await this.#hold('', performance.now(), (connection) =>
      runSteps(connection, false, [{ statement, values }]),
    );
    return result?.rows ?? [];
  }

  /** Ends every connection, those in a transaction too: another server is the primary now, and runs the transactions again. */
  moveToNewPrimary(): void {
    this.#moves++;
    this.#pool.reset();
  }

  close(): void {
    this.#pool.close();
  }

  /** Throws primary_unavailable when the primary refuses connections, or no connection is free in time. A login that fails is tried once more. */
  async #hold<T>(
    workspace: string,
    beganMs: number,
    work: (connection: Connection) => Promise<T>,
    isFirst = true,
  ): Promise<T> {
    const moves = this.#moves;
    let isHeld = false;
    try {
      return await this.#pool.hold(workspace, this.#bounds.writeWaitMs, beganMs, (connection) => {
        isHeld = true;
        return work(connection);
      });
    } catch (error) {
      if (isHeld) throw error;
      const isMoved = moves !== this.#moves;
      const isEarly = performance.now() - beganMs < this.#bounds.writeWaitMs / 2;
      if (isMoved || (isFirst && isEarly && !(error instanceof Problem)))
        return this.#hold(workspace, beganMs, work, isMoved);
      this.#observe({ type: 'primary_failed', code: errorCode(error) });
      throw primaryUnavailable();
    }
  }

  /** Reports a failure of the primary and returns its code. Throws an error that a repetition would meet again. */
  #reportFailure(error: unknown, named: boolean): string {
    const code = errorCode(error);
    if (error instanceof Problem) throw error;
    if (databaseErrorKind(error) === 'permanent' && !(named && ofNames.has(code))) throw error;
    this.#observe({ type: 'primary_failed', code });
    return code;
  }
}

/** SQLSTATEs of named statements: prepared before DDL, or gone or there already, because a pooler chose another connection. */
const ofNames = new Set(['0A000', '26000', '42P05']);

/** Whether a repetition can succeed: after a lost connection or a failed serialization, not after other refusals. */
function isRepeatable(code: string, named: boolean): boolean {
  return isConnectionEnd(code) || code.startsWith('40') || code === '25P03' || (named && ofNames.has(code));
}

/** 503; the write may have happened: the same request with the same Idempotency-Key returns its outcome. */
function primaryUnavailable(): Problem {
  return new Problem(
    'primary_unavailable',
    'The primary cannot take writes now; try again with the same Idempotency-Key.',
  );
}

const reasons: Readonly<Record<string, string>> = {
  in_recovery: 'it is in recovery',
  old_timeline: 'it is on the timeline of before a promotion',
  unchecked: 'it is not checked yet',
};

/** A server that is the primary, or can become it. */
export interface PrimaryNode {
  /** Host, port and database. */
  readonly name: string;
  /** As `currentUrl` gives it. */
  readonly url: () => string;
  /** To be made before its first use; null where the start checked it. */
  readonly check: LateCheck | null;
}

interface ProbedNode extends PrimaryNode {
  readonly probe: Probe;
}

/**
 * The servers of PRIMARY_URLS. Each is asked for its position again and again; the primary is the one that is not in recovery,
 * and its positions are the heartbeat. A failover puts another server in its place without a restart.
 */
export class PrimaryNodes {
  readonly #nodes: readonly ProbedNode[];
  readonly #heartbeat: Heartbeat;
  readonly #observe: Observe;
  readonly #onChange: () => void;
  #current: ProbedNode;
  /** Why the last sample of the primary did not succeed; null while it is reachable. */
  reason: string | null = 'not probed yet';

  /** `nodes` are not empty; the first is taken for the primary until one has answered as such. */
  constructor(
    nodes: readonly PrimaryNode[],
    options: ConnectionOptions & ProbeBounds,
    heartbeat: Heartbeat,
    observe: Observe,
    onChange: () => void,
  ) {
    this.#nodes = nodes.map((node) => ({ ...node, probe: new Probe(connectTo(node.url, options), options) }));
    this.#current = this.#nodes[0] as ProbedNode;
    this.#heartbeat = heartbeat;
    this.#observe = observe;
    this.#onChange = onChange;
  }

  /** Reads the URL of the primary of this moment from the settings, which takes 3 ms; null while it is not checked. */
  get url(): string | null {
    const { url, check } = this.#current;
    return check?.isComplete === false ? null : url();
  }

  get reachable(): boolean {
    return this.reason === null;
  }

  /** Samples now, in the order of the setting, and again every interval until closed. */
  async start(): Promise<void> {
    for (const node of this.#nodes) await node.probe.repeat(() => this.#sample(node));
  }

  close(): void {
    for (const { probe } of this.#nodes) probe.close();
  }

  /** Samples the primary once. Never rejects; the outcome is `reachable`. */
  sample(): Promise<void> {
    return this.#sample(this.#current);
  }

  async #sample(node: ProbedNode): Promise<void> {
    try {
      // Taken before the statement, so that all commits until then lie at or before the position.
      const [atMs, tickMs] = [Date.now(), performance.now()];
      const state = await node.probe.ask();
      if (state.inRecovery) return this.#fail(node, 'in_recovery');
      await node.check?.repeat();
      if (node.check?.isComplete === false) return this.#fail(node, 'unchecked', node.check.result.refusal);
      this.#accept(node, { ...state, atMs, tickMs });
    } catch (error) {
      this.#fail(node, errorCode(error));
    }
  }

  /**
   * Two servers can be out of recovery: after a failover the old primary comes back on its old timeline, where writes are lost.
   * So the later timeline wins, and an earlier one than the newest sample's is never accepted.
   */
  #accept(node: ProbedNode, sample: PositionSample): void {
    const { newest } = this.#heartbeat;
    const isCurrent = node === this.#current;
    if (newest !== undefined && sample.systemIdentifier !== newest.systemIdentifier && !isCurrent) return;
    if (newest?.systemIdentifier === sample.systemIdentifier && sample.timeline < newest.timeline)
      return this.#fail(node, 'old_timeline');
    if (!isCurrent && this.reachable && sample.timeline === newest?.timeline) return;
    this.#heartbeat.add(sample);
    this.reason = null;
    if (isCurrent) return;
    this.#current = node;
    if (newest !== undefined) this.#observe({ type: 'primary_changed', server: node.name });
    this.#onChange();
  }

  #fail(node: ProbedNode, code: string, reason: string | null = null): void {
    if (node !== this.#current) return;
    if (this.reachable && !node.probe.closed) this.#observe({ type: 'primary_failed', code });
    this.reason = reason ?? reasons[code] ?? `it does not answer (${code})`;
  }
}
