import { setTimeout as sleep } from 'node:timers/promises';
import type { Gate } from '../base/flow/gate.js';
import type { Connect, Connection } from './connection.js';
import type { ResourceHealth } from './resource-health.js';

export interface ConnectionLimits {
  readonly connections: number;
  /** Statements in flight per connection, at most. */
  readonly depth: number;
  /** Is called when a connection ended without an answer: the server may still hold its transaction, until `settle` is called. */
  readonly onOrphan?: () => void;
}

/** Pause after a failed login, so that waiting statements do not try the next one at once. */
const failedLoginPauseMs = 50;

/**
 * Opens and ends the connections of a pool, and knows the room that they leave to each resource. A connection that ended without an answer
 * stays until the server no longer holds its transaction.
 *
 * A connection that is reserved for a slow resource (resource-health.ts) does not count against the bound. At most twice as many as the
 * bound are reserved, so that a resource that turns slow finds room.
 *
 * A transaction leases a connection. It is given up when no client awaits it, and orphaned when its connection ended without an answer:
 * the server may hold both. With `onOrphan` the bound counts them and reserved connections. Slow resources together have half of it, each
 * other one half of the rest; while all of it is given up, a transaction is refused at once.
 */
export class ConnectionSet extends Set<Connection> {
  /** Logins under way. */
  #opening = 0;
  /** Counts resets: a connection asked for before a reset can lead to a former primary. */
  #resets = 0;
  isClosed = false;

  constructor(
    private readonly limits: ConnectionLimits,
    private readonly connect: Connect,
    private readonly gate: Gate,
  ) {
    super();
  }

  count(isMeant: (connection: Connection) => boolean): number {
    let count = 0;
    for (const connection of this) if (isMeant(connection)) count++;
    return count;
  }

  get reserved(): number {
    return this.count(({ reservedFor }) => reservedFor !== null);
  }

  /** Bound for the backends of all slow resources together. */
  get slowMax(): number {
    return Math.max(1, Math.floor(this.limits.connections / 2));
  }

  /**
   * Returns how many more connections the resource may use beside the other resources; 0 or less: none. Slow resources have equal parts of
   * their room, so one that turns slow waits for none that was slow before.
   */
  countRoom({ name, state, reserved }: ResourceHealth): number {
    const { connections, onOrphan } = this.limits;
    if (state !== 'slow') {
      if (!onOrphan || this.reserved === 0) return connections;
      const quota = Math.max(1, Math.floor((connections - this.slowMax) / 2));
      return quota - this.count(({ resource }) => resource === name);
    }
    if (onOrphan) return this.slowMax - this.reserved;
    const slow = new Set([...this].flatMap((connection) => connection.reservedFor?.name ?? [])).add(name);
    const quota = Math.max(1, Math.floor(connections / slow.size));
    return Math.min(quota - reserved, 2 * connections - this.reserved);
  }

  /** Some connection takes statements, at once or when it has fewer in flight. */
  get isUsable(): boolean {
    return this.count(({ isUsable: usable, reservedFor }) => usable && reservedFor === null) > 0;
  }

  /** Number of connections that count against the bound. */
  get counted(): number {
    return this.size + this.#opening - (this.limits.onOrphan ? 0 : this.reserved);
  }

  /** Returns the connection with the fewest statements in flight, below `depth`. */
  find(depth = this.limits.depth): Connection | null {
    let best: Connection | null = null;
    for (const connection of this) {
      const { isUsable: usable, reservedFor, inFlight } = connection;
      if (usable && reservedFor === null && inFlight < Math.min(depth, best?.inFlight ?? depth)) best = connection;
    }
    return best;
  }

  /** Opens another connection, unless one is idle or the bound is reached. */
  grow(): void {
    if (this.find(1) === null && this.counted < this.limits.connections) void this.#openOne();
  }

  growIfAwaited(): void {
    if (this.gate.waiting > 0) this.grow();
  }

  reset(): void {
    this.#resets++;
    for (const connection of this) connection.destroy();
  }

  renew(): void {
    for (const connection of this) connection.close();
  }

  close(): void {
    this.isClosed = true;
    this.renew();
    for (const connection of this) if (connection.isGivenUp) connection.destroy();
  }

  async #openOne(): Promise<void> {
    this.#opening++;
    try {
      await this.open();
    } catch (error) {
      // Waiting statements then try another server at once.
      if (!this.isUsable) this.gate.failAll(error as Error);
      else await sleep(failedLoginPauseMs, undefined, { ref: false });
    }
    this.#opening--;
    this.growIfAwaited(); // after a failed login
    this.gate.serve();
  }

  /** Opens a connection for all statements, or for a resource. Rejects as `connect` does. */
  async open(reservedFor?: ResourceHealth): Promise<Connection> {
    const resets = this.#resets;
    const connection = await this.connect();
    reservedFor?.reserve(connection);
    this.add(connection);
    connection.onEnd = () => {
      connection.reservedFor?.release(connection, false);
      const { onOrphan } = this.limits;
      const isCurrent = resets === this.#resets && !this.isClosed;
      const isOrphaned = isCurrent && connection.inFlight > 0 && connection.pid !== null;
      if (isOrphaned && onOrphan) onOrphan();
      else this.delete(connection);
      this.growIfAwaited();
    };
    if (this.isClosed || resets !== this.#resets) connection.close();
    return connection;
  }

  /**
   * `pids` are the backends that the server has for this login; null: a pooler hides them. A connection that ended leaves the set, unless
   * the server still has its backend. A connection that was given up is destroyed once the server no longer has its backend.
   */
  settle(pids: ReadonlySet<number> | null): void {
    for (const connection of this) {
      const isHeld = pids?.has(connection.pid as number);
      if (!connection.hasEnded && connection.isGivenUp && isHeld === false) connection.destroy();
      else if (connection.hasEnded && !isHeld) this.delete(connection);
      else if (connection.hasEnded) connection.giveUp();
    }
  }
}
