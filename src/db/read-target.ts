import type { ConnectionPool } from './connection-pool.js';

/** A server that can answer a read: a replica, or the primary for the few reads for which no replica is current enough. */
export interface ReadTarget {
  readonly name: string;
  readonly short: ConnectionPool;
  readonly long: ConnectionPool;
  readonly state: { readonly asOfMs: number | null; readonly healthy: boolean };
}

/** The primary as a read target: always current. */
export function primaryTarget(pool: ConnectionPool): ReadTarget {
  return {
    name: 'primary',
    short: pool,
    long: pool,
    get state() {
      return { asOfMs: Date.now(), healthy: true };
    },
  };
}
