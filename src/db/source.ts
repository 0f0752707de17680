import type { Lane } from './lane.js';

/** A server that can answer a read: a replica, or the primary for the few reads that no replica is fresh enough for. */
export interface Source {
  readonly name: string;
  readonly short: Lane;
  readonly long: Lane;
  readonly state: { readonly asOfMs: number | null; readonly healthy: boolean };
}

/** The primary as a source: always current. */
export function primarySource(lane: Lane): Source {
  return {
    name: 'primary',
    short: lane,
    long: lane,
    get state() {
      return { asOfMs: Date.now(), healthy: true };
    },
  };
}
