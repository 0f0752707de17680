import type { UnfitServer } from '../events.js';
import type { Replica } from '../postgres/replica.js';

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
  /** Whether writes can be made; null without a primary. */
  readonly primary: { readonly healthy: boolean; readonly reason: string | null } | null;
  /** Faults that the check of the start found, and that did not refuse it. */
  readonly unfit: readonly UnfitServer[];
  /** Null without Redis. While it is away reads are answered, and limits go by each gateway's share. */
  readonly redis: { readonly healthy: boolean; readonly reason: string | null } | null;
}

/** The parts of a gateway that its readiness tells of. */
export interface ReadinessSources {
  readonly replicas: readonly Replica[];
  /** Null without PRIMARY_URLS. */
  readonly primary: { readonly reachable: boolean; readonly reason: string | null } | null;
  readonly unfit: readonly UnfitServer[];
  readonly redis: () => Readiness['redis'];
}

/** Ready while a replica is healthy. Primary and Redis do not count, because reads are answered without them. */
export function readinessOf({ replicas, primary, unfit, redis }: ReadinessSources, stopping: boolean): Readiness {
  const healthy = replicas.some(({ state }) => state.healthy);
  const reasons = [...(stopping ? ['stopping'] : []), ...(healthy ? [] : ['no healthy replica'])];
  const states = replicas.map(({ name, state }) => ({
    name,
    healthy: state.healthy,
    reason: state.reason,
    lagMs: Number.isFinite(state.lagMs) ? state.lagMs : null, // JSON has no Infinity
  }));
  return {
    status: reasons.length === 0 ? 'ready' : 'not ready',
    reasons,
    replicas: states,
    primary: primary && { healthy: primary.reachable, reason: primary.reason },
    unfit,
    redis: redis(),
  };
}
