import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { ConnectionPool } from '../db/connection-pool.js';
import type { Replica } from '../db/replica.js';
import type { Event, Observe } from '../events.js';

/** The metrics' side of the events, and the gauges that are read when scraped. */
export interface Metrics {
  readonly observe: Observe;
  readonly registry: Registry;
}

type Handlers = { readonly [T in Event['type']]?: (event: Extract<Event, { type: T }>) => void };

/** Gauges without labels: what they say, and where their value comes from. */
export type PlainGauges = Readonly<
  Record<string, { readonly help: string; readonly value: () => number | Promise<number> }>
>;

/** Prometheus metrics of one gateway; nothing is registered globally, so two gateways in one process do not meet. */
export function metricsEvents(replicas: () => readonly Replica[], gauges: PlainGauges): Metrics {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  const counter = (name: string, help: string, labelNames: string[]) =>
    new Counter({ name: `gateway_${name}_total`, help, labelNames, registers });
  const requests = new Histogram({
    name: 'gateway_request_seconds',
    help: 'Duration of requests until the last byte was handed over.',
    labelNames: ['method', 'route', 'status'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60],
    registers,
  });
  const problems = counter('problems', 'Problems answered, by code.', ['code']);
  const decodeErrors = counter('decode_errors', 'Stored values that could not be decoded.', [
    'resource',
    'pointer',
    'reason',
  ]);
  const limitHits = counter('limit_hits', 'Requests answered 429.', ['limit']);
  const shed = counter('requests_shed', 'Requests answered 503 overloaded, by the bound they met.', ['bound']);
  const slow = counter('slow_clients', 'Connections destroyed because the client took its response too slowly.', []);
  const resumed = counter('pages_resumed', 'Times a page was continued after its replica failed it.', ['resource']);
  const broken = counter('pages_broken', 'Pages that could not be finished; the connection was destroyed.', []);
  const ejected = counter('replica_ejections', 'Times a replica was taken out.', ['replica']);
  const failed = counter('replica_failures', 'Statements that failed on a replica and were retried or given up.', [
    'replica',
    'code',
  ]);
  const primaryFailed = counter(
    'primary_failures',
    'Transactions on the primary that failed and were retried or given up.',
    ['code'],
  );
  const primaryReads = counter(
    'primary_reads',
    'Reads the primary served because no replica had replayed the last write.',
    [],
  );
  const writes = counter('writes', 'Writes by outcome: created, updated, replayed, or the code of the problem.', [
    'outcome',
  ]);
  const redisFailed = counter(
    'redis_failures',
    'Times Redis did not answer and the local share of the limits took over.',
    [],
  );
  replicaGauges(registry, replicas);
  poolGauges(registry, replicas);
  for (const [name, { help, value }] of Object.entries(gauges)) {
    new Gauge({
      name: `gateway_${name}`,
      help,
      registers,
      async collect() {
        this.set(await value());
      },
    });
  }
  const handlers: Handlers = {
    request_finished: ({ method, route, status, code, durationMs }) => {
      requests.observe({ method, route, status }, durationMs / 1000);
      if (code !== null) problems.inc({ code });
    },
    decode_failed: ({ resource, pointer, reason }) => decodeErrors.inc({ resource, pointer, reason }),
    limit_hit: ({ limit }) => limitHits.inc({ limit }),
    request_shed: ({ bound }) => shed.inc({ bound }),
    client_too_slow: () => slow.inc(),
    page_resumed: ({ resource }) => resumed.inc({ resource }),
    page_broken: () => broken.inc(),
    replica_ejected: ({ replica }) => ejected.inc({ replica }),
    replica_failed: ({ replica, code }) => failed.inc({ replica, code }),
    primary_failed: ({ code }) => primaryFailed.inc({ code }),
    redis_failed: () => redisFailed.inc(),
    primary_read: () => primaryReads.inc(),
    write_finished: ({ outcome }) => writes.inc({ outcome }),
  };
  return { registry, observe: (event) => (handlers[event.type] as ((event: Event) => void) | undefined)?.(event) };
}

function replicaGauges(registry: Registry, replicas: () => readonly Replica[]): void {
  const gauges: Readonly<Record<string, { help: string; value: (replica: Replica) => number }>> = {
    replica_healthy: { help: '1 while the replica may be used.', value: ({ state }) => (state.healthy ? 1 : 0) },
    replica_lag_seconds: {
      help: 'How far the replica is behind the newest known position of the primary.',
      value: ({ state }) => state.lagMs / 1000,
    },
  };
  for (const [name, { help, value }] of Object.entries(gauges)) {
    new Gauge({
      name: `gateway_${name}`,
      help,
      labelNames: ['replica'],
      registers: [registry],
      collect() {
        for (const replica of replicas()) this.set({ replica: replica.name }, value(replica));
      },
    });
  }
}

function poolGauges(registry: Registry, replicas: () => readonly Replica[]): void {
  const gauges: Readonly<Record<string, { help: string; value: (lane: ConnectionPool) => number }>> = {
    pool_connections: { help: 'Open connections to a replica.', value: ({ open }) => open },
    pool_in_flight: { help: 'Statements in flight.', value: ({ inFlight }) => inFlight },
    pool_waiting: { help: 'Statements waiting for a connection.', value: ({ waiting }) => waiting },
  };
  for (const [name, { help, value }] of Object.entries(gauges)) {
    new Gauge({
      name: `gateway_${name}`,
      help,
      labelNames: ['replica', 'lane'],
      registers: [registry],
      collect() {
        for (const replica of replicas())
          for (const lane of ['short', 'long'] as const)
            this.set({ replica: replica.name, lane }, value(replica[lane]));
      },
    });
  }
}
