import type { ConnectionPool } from './connection-pool.js';

/** A server that can answer a read: a replica, or the primary for the few reads that no replica is fresh enough for. */
export interface ReadTarget {
  readonly name: string;
  readonly short: ConnectionPool;
  readonly long: ConnectionPool;
  readonly state: { readonly asOfMs: number | null; readonly healthy: boolean };
}

/** The primary as a source: always current. */
export function primaryTarget(lane: ConnectionPool): ReadTarget {
  return {
    name: 'primary',
    short: lane,
    long: lane,
    get state() {
      return { asOfMs: Date.now(), healthy: true };
    },
  };
}
