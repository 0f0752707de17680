import type { Replica } from '../db/replica.js';

/** Body of /readyz: 200 when ready, else 503 with the reasons. */
export interface Readiness {
  readonly status: 'ready' | 'not ready';
  readonly reasons: readonly string[];
  readonly replicas: readonly {
    readonly name: string;
    readonly healthy: boolean;
    readonly reason: string | null;
    readonly lagMs: number | null;
  }[];
}

/** Ready while a replica is healthy. The primary does not count, because reads are answered without it. */
export function readinessOf(replicas: readonly Replica[], stopping: boolean): Readiness {
  const healthy = replicas.some(({ state }) => state.healthy);
  const reasons = [...(stopping ? ['stopping'] : []), ...(healthy ? [] : ['no healthy replica'])];
  const states = replicas.map(({ name, state }) => ({
    name,
    healthy: state.healthy,
    reason: state.reason,
    lagMs: Number.isFinite(state.lagMs) ? state.lagMs : null, // JSON has no Infinity
  }));
  return { status: reasons.length === 0 ? 'ready' : 'not ready', reasons, replicas: states };
}
