import type { Replica } from '../db/replica.js';
import { apiVersion } from '../http/render.js';
import type { ReadinessSources } from './readiness.js';

/** Values of the gauges, read at each scrape. */
export interface GaugeSources extends ReadinessSources {
  readonly largePages: () => number;
  readonly requestsInFlight: () => number;
  readonly clientConnections: () => Promise<number>;
}

type Sample = readonly [labels: Readonly<Record<string, string>>, value: number];

interface GaugeRow {
  readonly help: string;
  readonly labels: readonly string[];
  /** How the values of several workers become a single one. */
  readonly ofWorkers: 'sum' | 'min' | 'max' | 'first';
  readonly samples: (sources: GaugeSources) => readonly Sample[] | Promise<readonly Sample[]>;
}

/** A replica has no series while its value is null or infinite: 0 would say that all is well. */
const replicaGauge = (
  help: string,
  ofWorkers: GaugeRow['ofWorkers'],
  read: (replica: Replica, replicas: readonly Replica[]) => number | null,
): GaugeRow => ({
  help,
  ofWorkers,
  labels: ['replica'],
  samples: ({ replicas }) =>
    replicas.flatMap((replica): Sample[] => {
      const value = read(replica, replicas);
      return value !== null && Number.isFinite(value) ? [[{ replica: replica.name }, value]] : [];
    }),
});

const poolGauge = (help: string, read: (pool: Replica['short']) => number): GaugeRow => ({
  help,
  ofWorkers: 'sum',
  labels: ['replica', 'pool'],
  samples: ({ replicas }) =>
    replicas.flatMap((replica) =>
      (['short', 'long'] as const).map((pool): Sample => [{ replica: replica.name, pool }, read(replica[pool])]),
    ),
});

/** A gauge of a server: 1 while it is up, absent where none is configured. */
const upGauge = (help: string, isUp: (sources: GaugeSources) => boolean | null): GaugeRow => ({
  help,
  labels: [],
  ofWorkers: 'min',
  samples: (sources) => {
    const up = isUp(sources);
    return up === null ? [] : [[{}, up ? 1 : 0]];
  },
});

/** The one table of gauges, by name without the prefix `gateway_`. docs/monitoring.md is compared with it. */
export const gauges: Readonly<Record<string, GaugeRow>> = {
  replica_healthy: replicaGauge(
    '1 while the replica may be used. Absent for the primary while a replica may be used.',
    'min',
    ({ state }, replicas) =>
      state.isPrimary && replicas.some(({ state }) => state.healthy) ? null : Number(state.healthy),
  ),
  replica_lag_seconds: replicaGauge(
    'How far the replica is behind the newest known position of the primary. Absent while it is not known.',
    'max',
    ({ state }) => (state.lagMs === null ? null : state.lagMs / 1000),
  ),
  data_age_seconds: replicaGauge(
    'Time since the moment up to which the replica is known to be current. Absent while it is not known.',
    'max',
    ({ state }) => (state.asOfMs === null ? null : Math.max(0, Date.now() - state.asOfMs) / 1000),
  ),
  primary_up: upGauge('1 while the primary answers.', ({ primary }) => primary?.reachable ?? null),
  redis_up: upGauge('1 while Redis answers and counts.', ({ redis }) => redis()?.healthy ?? null),
  pool_connections: poolGauge('Open connections to a replica.', ({ open }) => open),
  pool_in_flight: poolGauge('Statements in flight.', ({ inFlight }) => inFlight),
  pool_waiting: poolGauge('Statements waiting for a connection.', ({ waiting }) => waiting),
  requests_in_flight: {
    help: 'Requests that are not answered to the end.',
    labels: [],
    ofWorkers: 'sum',
    samples: ({ requestsInFlight }) => [[{}, requestsInFlight()]],
  },
  build_info: {
    help: 'Always 1; the labels tell the versions of gateway and Node.js.',
    labels: ['version', 'node'],
    ofWorkers: 'first',
    samples: () => [[{ version: apiVersion, node: process.version }, 1]],
  },
  large_pages: {
    help: 'Large pages under way.',
    labels: [],
    ofWorkers: 'sum',
    samples: ({ largePages }) => [[{}, largePages()]],
  },
  client_connections: {
    help: 'Open connections of clients.',
    ofWorkers: 'sum',
    labels: [],
    samples: async ({ clientConnections }) => [[{}, await clientConnections()]],
  },
};
