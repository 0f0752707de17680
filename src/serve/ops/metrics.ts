import {
  Counter,
  collectDefaultMetrics,
  Gauge,
  Histogram,
  type MetricObjectWithValues,
  type MetricValue,
  Registry,
} from 'prom-client';
import { type Event, type EventMetric, events, type Observe, tokenLosses } from '../../base/events.js';
import { toPointer } from '../../base/members.js';
import { readVersion } from '../../base/paths.js';
import { unfitSqlStates } from '../../postgres/database-errors.js';
import type { Replica } from '../../postgres/replica.js';
import { canFail } from '../../resource/definition/record-schema.js';
import { listLeaves, type Resource } from '../../resource/definition/resource.js';
import { decodeReasons } from '../../resource/projection/codec.js';
import { lackNames } from './self.js';
import { isPrimaryAmongReplicas, type ReadinessSources } from './status.js';

type Labels = Readonly<Record<string, string>>;
type CountEvent = (event: Event) => void;

const secondsBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60];

export type MetricValues = MetricObjectWithValues<MetricValue<string>>[];

/** Makes a registry per gateway, because two can be in one process. */
export function makeMetrics(sources: GaugeSources) {
  const metrics = makeEventMetrics(listKnownLabels(sources));
  const { registry } = metrics;
  collectDefaultMetrics({ register: registry });
  for (const [name, { help, labels, samples, ofWorkers }] of Object.entries<GaugeRow>(gauges)) {
    new Gauge({
      name: `gateway_${name}`,
      help,
      labelNames: [...labels],
      aggregator: ofWorkers,
      registers: [registry],
      async collect() {
        this.reset(); // a value that is no longer known must not stay
        if (labels.length === 0) this.remove(); // reset() gives a gauge without labels the value 0
        for (const [labelValues, value] of await samples(sources)) this.set(labelValues, value);
      },
    });
  }
  return metrics;
}

const pendingMax = 128;

/** Leaves out gauges, for a parent of workers. Counts events together: one by one each took a twentieth of a single record's time. */
export function makeEventMetrics(known: Readonly<Record<string, Labels[]>> = {}) {
  const registry = new Registry();
  const counts = new Map<Event['type'], CountEvent[]>();
  const pending: Event[] = [];
  const countPending = (): void => {
    for (const event of pending.splice(0)) for (const count of counts.get(event.type) as CountEvent[]) count(event);
  };
  for (const [type, { metrics = [] }] of Object.entries(events)) {
    const all = (metrics as readonly EventMetric<Event>[]).map((metric) =>
      registerMetric(metric, known, registry, countPending),
    );
    counts.set(type as Event['type'], all);
  }
  const observe: Observe = (event) => {
    if (pending.push(event) === pendingMax) countPending();
  };
  return { registry, observe, values: () => registry.getMetricsAsJSON() as Promise<MetricValues> };
}

/** Calls `collect` before the metric is read. */
function registerMetric(
  metric: EventMetric<Event>,
  known: Readonly<Record<string, Labels[]>>,
  registry: Registry,
  collect: () => void,
): CountEvent {
  const { name, help, labels = {}, seconds, amount = () => 1 } = metric;
  const labelNames = Object.keys(labels);
  const registers = [registry];
  const getLabels = (event: Event): Record<string, string> | null => {
    const values: Record<string, string> = {};
    for (const label of labelNames) {
      const value: unknown = event[label as keyof Event];
      if (value === null) return null;
      values[label] = String(value);
    }
    return values;
  };
  if (seconds !== undefined) {
    const options = { name: `gateway_${name}`, help, labelNames, buckets: secondsBuckets, registers, collect };
    const histogram = new Histogram(options);
    return (event) => histogram.observe(getLabels(event) ?? {}, seconds(event));
  }
  const counter = new Counter({ name: `gateway_${name}_total`, help, labelNames, registers, collect });
  // Each series starts at 0: increase() ignores the first value of a series.
  for (const first of known[name] ?? listCombinations(labels)) counter.inc(first, 0);
  return (event) => {
    const labelValues = getLabels(event);
    if (labelValues !== null) counter.inc(labelValues, amount(event));
  };
}

/** Returns an empty list if a label's values are not known. */
function listCombinations(labels: Readonly<Record<string, readonly string[] | null>>): Labels[] {
  return Object.entries(labels).reduce<Labels[]>(
    (all, [label, values]) => all.flatMap((others) => (values ?? []).map((value) => ({ ...others, [label]: value }))),
    [{}],
  );
}

function listKnownLabels({ replicas, resources }: GaugeSources): Readonly<Record<string, Labels[]>> {
  const routes = resources.flatMap(({ name, detail, sync }) => [
    { route: `/api/v1/${name}` },
    ...(detail ? [{ route: `/api/v1/${name}/:id` }] : []),
    ...(sync ? [{ route: `/api/v1/sync/${name}` }] : []),
  ]);
  return {
    database_unfit: unfitSqlStates.map((code) => ({ code })),
    rows: routes,
    response_bytes: routes,
    pages_resumed: resources.map(({ name }) => ({ resource: name })),
    replica_ejections: replicas.map(({ name }) => ({ replica: name })),
    decode_errors: resources.flatMap((resource) => {
      const encoded = listLeaves(resource).filter(({ field }) => canFail(field));
      const labels = encoded.map(({ path }) => ({ resource: resource.name, pointer: toPointer(path) }));
      return labels.flatMap((each) => decodeReasons.map((reason) => ({ ...each, reason })));
    }),
  };
}

export interface GaugeSources extends ReadinessSources {
  readonly resources: readonly Resource[];
  /** Null without a primary, or before the first look. */
  readonly storedAnswersBytes: () => number | null;
  readonly largePages: () => number;
  readonly requestsInFlight: () => number;
  readonly clientConnections: () => Promise<number>;
}

type Sample = readonly [labels: Readonly<Record<string, string>>, value: number];

interface GaugeRow {
  readonly help: string;
  readonly labels: readonly string[];
  /** Aggregation of the workers' values. */
  readonly ofWorkers: 'sum' | 'min' | 'max' | 'first';
  readonly samples: (sources: GaugeSources) => readonly Sample[] | Promise<readonly Sample[]>;
}

/** Makes a gauge without series while the value is unknown: 0 would say that all is well. */
const describeReplicaGauge = (
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

const describePoolGauge = (help: string, read: (pool: Replica['short']) => number): GaugeRow => ({
  help,
  ofWorkers: 'sum',
  labels: ['replica', 'pool'],
  samples: ({ replicas }) =>
    replicas.flatMap((replica) =>
      (['short', 'long'] as const).map((pool): Sample => [{ replica: replica.name, pool }, read(replica[pool])]),
    ),
});

/** Makes a gauge without series if none is configured. */
const describeUpGauge = (help: string, isUp: (sources: GaugeSources) => boolean | null): GaugeRow => ({
  help,
  labels: [],
  ofWorkers: 'min',
  samples: (sources) => {
    const up = isUp(sources);
    return up === null ? [] : [[{}, up ? 1 : 0]];
  },
});

const describePlainGauge = (
  help: string,
  ofWorkers: GaugeRow['ofWorkers'],
  read: (sources: GaugeSources) => number | Promise<number>,
): GaugeRow => ({ help, labels: [], ofWorkers, samples: async (sources) => [[{}, await read(sources)]] });

/** Table of all gauges, by name without the prefix `gateway_`. docs/reference/metrics-and-events.md is compared with it. */
export const gauges = {
  replica_healthy: describeReplicaGauge(
    '1 while the replica may be used. Absent for the primary while a replica may be used.',
    'min',
    ({ state }, replicas) => (isPrimaryAmongReplicas(state, replicas) ? null : Number(state.healthy)),
  ),
  replica_lag_seconds: describeReplicaGauge(
    'How far the replica is behind the newest known position of the primary. Absent while it is not known.',
    'max',
    ({ state }) => (state.lagMs === null ? null : state.lagMs / 1000),
  ),
  data_age_seconds: describeReplicaGauge(
    'Time since the moment up to which the replica is known to be current. Absent while it is not known.',
    'max',
    ({ state }) => (state.asOfMs === null ? null : Math.max(0, Date.now() - state.asOfMs) / 1000),
  ),
  primary_up: describeUpGauge('1 while the primary answers.', ({ primary }) => primary?.isReachable ?? null),
  redis_up: describeUpGauge('1 while Redis answers and counts.', ({ redis }) => redis()?.healthy ?? null),
  pool_connections: describePoolGauge('Open connections to a replica.', (pool) => pool.openCount),
  pool_in_flight: describePoolGauge('Statements in flight.', ({ inFlight }) => inFlight),
  pool_waiting: describePoolGauge('Statements waiting for a connection.', ({ waiting }) => waiting),
  resource_refused: {
    help: '1 while the resource is answered 503 because the database no longer fits it.',
    labels: ['resource', 'use'],
    ofWorkers: 'max',
    samples: ({ refused, resources }) =>
      resources.flatMap(({ name, write }) =>
        (write ? (['read', 'write'] as const) : (['read'] as const)).map((use): Sample => {
          const isRefused = refused().some((each) => each.resource === name && each.use === use);
          return [{ resource: name, use }, Number(isRefused)];
        }),
      ),
  },
  resource_locked: {
    help: '1 while a lock holds the resource on a replica, which does not read it.',
    labels: ['resource', 'replica'],
    ofWorkers: 'max',
    samples: ({ replicas, resources }) =>
      replicas.flatMap(({ name: replica, locked }) =>
        resources.map(({ name }): Sample => {
          return [{ resource: name, replica }, Number(locked.some(({ resource }) => resource === name))];
        }),
      ),
  },
  token_loss_workspaces: {
    help: 'Workspaces of which requests were answered 401 in the last minute though their token worked in the last ten; at most 50 are told apart.',
    labels: ['reason'],
    ofWorkers: 'sum',
    samples: ({ recent }) =>
      Object.entries(tokenLosses).map(([reason, words]): Sample => {
        const count = recent().find(({ kind, about }) => kind === 'known_token_refused' && about === words);
        return [{ reason }, Object.keys(count?.workspaces ?? {}).length];
      }),
  },
  reload_refused: describePlainGauge(
    '1 after a reload that was refused, until one succeeds: the definitions before it serve.',
    'max',
    () => 0, // a worker has no reloads; its parent counts them
  ),
  requests_in_flight: describePlainGauge('Requests that are not answered to the end.', 'sum', (now) =>
    now.requestsInFlight(),
  ),
  lacks: {
    help: '1 while the process itself is at its limits: of processor time, file descriptors, memory, or of a log that is read.',
    labels: ['what'],
    ofWorkers: 'max',
    samples: ({ lacks }) => {
      const all = lacks();
      return lackNames.map((what): Sample => [{ what }, Number(all.some((lack) => lack.what === what))]);
    },
  },
  build_info: {
    help: 'Always 1; the labels tell the versions of gateway and Node.js.',
    labels: ['version', 'node'],
    ofWorkers: 'first',
    samples: () => [[{ version: readVersion(), node: process.version }, 1]],
  },
  stored_answers_bytes: {
    help: 'Size of gateway.idempotency, which keeps the answers of writes for 25 hours. Absent while it is not known.',
    labels: [],
    ofWorkers: 'max',
    samples: ({ storedAnswersBytes }) => [storedAnswersBytes() ?? []].flat().map((bytes): Sample => [{}, bytes]),
  },
  large_pages: describePlainGauge('Large pages under way.', 'sum', (now) => now.largePages()),
  client_connections: describePlainGauge('Open connections of clients.', 'sum', (now) => now.clientConnections()),
} satisfies Readonly<Record<string, GaugeRow>>;
