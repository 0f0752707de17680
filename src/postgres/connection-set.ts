import type { Connection } from './connection.js';
import type { ResourceHealth } from './resource-health.js';

export interface ConnectionLimits {
  readonly connections: number;
  /** Statements in flight per connection, at most. */
  readonly depth: number;
  /** Is called when a connection ended without an answer: the server may still hold its transaction, until `settle` is called. */
  readonly onOrphan?: () => void;
}

/**
 * The connections of a pool, and the room that they leave to each resource. Connections that ended without an answer stay until the server
 * no longer holds their transactions.
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
  opening = 0;

  constructor(private readonly limits: ConnectionLimits) {
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
   * Says how many connections the others leave to the resource, none from 0 down; the pool's own bound is no part of it. Slow resources
   * have equal parts of their room, so one that turns slow waits for none that was slow before.
   */
  roomFor({ name, state, reserved }: ResourceHealth): number {
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
    return this.count(({ usable, reservedFor }) => usable && reservedFor === null) > 0;
  }

  /** Number of connections that count against the bound. */
  get counted(): number {
    return this.size + this.opening - (this.limits.onOrphan ? 0 : this.reserved);
  }

  /** Returns the usable connection with the fewest statements in flight, less than `depth`. */
  leastBusy(depth = this.limits.depth): Connection | null {
    let best: Connection | null = null;
    for (const connection of this) {
      const { usable, reservedFor, inFlight } = connection;
      if (usable && reservedFor === null && inFlight < Math.min(depth, best?.inFlight ?? depth)) best = connection;
    }
    return best;
  }

  /**
   * Compares with a look at the server, which has these backends of this login; null: a pooler hides them. An ended connection that the
   * server still holds counts until a later look, every other ended one leaves, and a given up one ends with its backend.
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
