import { PassThrough } from 'node:stream';
import test from 'ava';
import pg from 'pg';
import { loadResources } from '../../src/definition/load.js';
import { problems } from '../../src/errors.js';
import type { Event } from '../../src/events.js';
import { logEvents, type RepeatedLines, type Repetition, repeatedLines } from '../../src/ops/log.js';
import { metricsEvents } from '../../src/ops/metrics.js';
import {
  countsBetween,
  duration,
  quantileSeconds,
  recent,
  type StatusReport,
  type StatusSources,
  sampledMetrics,
  sampleOf,
  statusReport,
  totalOf,
} from '../../src/ops/status.js';
import { until } from '../support/patience.js';

const resources = loadResources('');
const gateway = () =>
  metricsEvents(
    {
      replicas: [],
      primary: { reachable: true, reason: null },
      unfit: [],
      redis: () => null,
      requestsInFlight: () => 2,
      largePages: () => 0,
      clientConnections: async () => 0,
    },
    resources,
  );

const sources: StatusSources = {
  readiness: () => ({
    status: 'ready',
    reasons: [],
    replicas: [],
    primary: { healthy: true, reason: null },
    unfit: [],
    redis: null,
  }),
  workers: () => null,
  lagMaxMs: 30_000,
};

/** The report a minute after the start of a gateway that has seen these events. */
async function reportOf(events: readonly Event[], changed: Partial<StatusSources> = {}): Promise<StatusReport> {
  const { observe, values } = gateway();
  const start = sampleOf(await values(sampledMetrics), 1000);
  for (const event of events) observe(event);
  return statusReport([start, sampleOf(await values(sampledMetrics), 61_000)], { ...sources, ...changed });
}

const finished = (code: string | null, durationMs = 20): Event => ({
  type: 'request_finished',
  requestId: 'r',
  method: 'GET',
  route: '/api/v1/klanten',
  status: 200,
  code,
  durationMs,
  complete: true,
  tokenId: null,
  workspace: null,
  rows: 10,
  perPage: 10,
  bytes: 3000,
});

test('each metric of the status is one of the gateway, and none of those that begin again when they are read', async (t) => {
  const values = await gateway().values(sampledMetrics);
  t.deepEqual(
    values.map(({ name }) => name),
    [...sampledMetrics],
  );
  t.true(sampledMetrics.every((name) => name.startsWith('gateway_')));
});

test('traffic is per second, and the quantiles are those of histogram_quantile()', async (t) => {
  const { traffic } = await reportOf([...Array(99).fill(finished(null)), finished(null, 900)]);
  t.deepEqual(traffic, {
    requestsPerSecond: 1.67,
    rowsPerSecond: 16.7,
    bytesPerSecond: 5000,
    p50Seconds: 0.0176,
    p99Seconds: 0.025,
    requestsInFlight: 2,
  });
  t.is(quantileSeconds(new Map([['1', 0], ['+Inf', 4]]), 0.5), 1, 'beyond the last bound'); // biome-ignore format: short
  t.is((await reportOf([])).traffic.p50Seconds, null);
});

test('a count that falls, because a worker took it along, is no negative rate', (t) => {
  const rows = (value: number) => [{ name: 'gateway_rows_total', values: [{ value, labels: { route: '/a' } }] }];
  const [before, after] = [700, 20].map((value, i) => sampleOf(rows(value) as never, i * 5000));
  t.is(totalOf(countsBetween(before as never, after as never).rows), 0);
});

const wrong: readonly (readonly [event: Event, times: number, sentence: string])[] = [
  [finished('internal'), 2, '2 requests of the last 5 minutes failed: 500 internal; the log has request_failed'],
  [finished('primary_unavailable'), 1, '1 request of the last minute failed: 503 primary_unavailable.'],
  [finished('overloaded'), 61, 'Overloaded: 61 requests of the last minute got 503.'],
  [{ type: 'limit_hit', limit: 'address' }, 61, 'A client tries tokens'],
  [{ type: 'page_broken', requestId: 'r', reason: 'x' }, 1, '1 page of the last 5 minutes broke off'],
  [
    { type: 'worker_died', workerPid: 1, code: 1, signal: null, silent: false, restartMs: 1 },
    1,
    '1 worker died in the last 5 minutes',
  ],
  [
    { type: 'decode_failed', resource: 'klanten', row: 'secret-row', pointer: '/naam', reason: 'bad_tag' },
    3,
    'Stored values did not decode 3 times in the last 5 minutes: klanten /naam bad_tag.',
  ],
  [
    { type: 'decrypt_mismatch', table: 't', column: 'c', row: 'secret-row' },
    1,
    'The batched decryption refused a value',
  ],
];

for (const [event, times, sentence] of wrong) {
  test(`the status says: ${sentence}`, async (t) => {
    const { summary, level, faults } = await reportOf(Array(times).fill(event));
    t.true(summary.startsWith(sentence), summary);
    t.is(faults.length, 1);
    t.not(level, 'well');
    t.false(summary.includes('secret-row'));
  });
}

test('refusals by a limit, errors of clients and a few sheds are nothing wrong', async (t) => {
  const events = ['rate_limited', 'invalid_request', 'not_found', 'overloaded'].map((code) => finished(code));
  const report = await reportOf([...events, { type: 'limit_hit', limit: 'token' }]);
  t.is(report.summary, 'All is well.');
  t.deepEqual(report.limitHits, [{ name: 'token', lastMinute: 1, lastTenMinutes: 1 }]);
});

test('the status names primary, Redis and workers that are away', async (t) => {
  const away = await reportOf([], {
    readiness: () => ({
      ...sources.readiness(),
      primary: { healthy: false, reason: 'it does not answer (ECONNREFUSED)' },
      redis: { healthy: false, reason: 'ECONNREFUSED' },
    }),
    workers: () => ({ configured: 4, reporting: 3 }),
  });
  t.deepEqual(
    away.faults.map(({ sentence }) => sentence),
    [
      'Writes fail: the primary cannot be used: it does not answer (ECONNREFUSED).',
      'Redis is away: ECONNREFUSED. Each gateway enforces its share of the limits.',
      'Only 3 of 4 workers report.',
    ],
  );
  t.is(away.level, 'failing');
});

test('the history has the last ten minutes and no more', (t) => {
  const samples = Array.from({ length: 300 }, (_, i) => sampleOf([], 5000 * i));
  t.deepEqual(recent(samples), samples.slice(-121));
});

test('numbers read as words', (t) => {
  t.deepEqual([0.00042, 0.0117, 1.234, 75, 7300, 200_000].map(duration), [
    ...['0.42 ms', '11.7 ms', '1.23 s', '1.25 min', '2.03 h', '2.31 d'],
  ]);
});

/** The log lines of the events, as text. */
function logged(...events: Event[]): string {
  const stream = new PassThrough();
  const log = logEvents('trace', () => undefined, stream);
  for (const event of events) log.add(event);
  return String(stream.read());
}

const failed = (error: Error): Event => ({ type: 'request_failed', requestId: 'r', error });

/** As PostgreSQL reports `select 'Jansen'::uuid`, with everything that an error can hold. */
function databaseError(): Error {
  return Object.assign(
    new pg.DatabaseError('invalid input syntax for type uuid: "Jansen\n    at Jansen"', 1, 'error'),
    {
      code: '22P02',
      severity: 'ERROR',
      detail: 'Key (naam)=(Jansen) exists.',
      hint: 'Jansen?',
      where: 'unnamed portal parameter $1 = Jansen',
      internalQuery: "select 'Jansen'",
      routine: 'string_to_uuid',
      schema: 'app',
      table: 'klanten',
      constraint: 'klanten_pkey',
    },
  );
}

test('a log line of a database error has its code, names and frames, and neither message nor values', (t) => {
  const line = logged(failed(databaseError()));
  t.false(line.includes('Jansen'), line);
  const { stack, ...fields } = JSON.parse(line);
  t.like(fields, {
    msg: 'request_failed',
    code: '22P02',
    routine: 'string_to_uuid',
    schema: 'app',
    table: 'klanten',
    constraint: 'klanten_pkey',
    message: undefined,
  });
  t.regex(stack, /^ {4}at databaseError \(.*status\.test/);
});

test('an error around a database error is logged without its message too, whichever holds the other', (t) => {
  const around = new Error('saving Jansen failed', { cause: databaseError() });
  const line = logged(failed(around), { type: 'crashed', error: new Error('Jansen', { cause: around }) });
  t.false(line.includes('Jansen'), line);
  t.true(line.includes('"code":"22P02"'));
  const circle = new Error('one');
  circle.cause = new Error('two', { cause: circle });
  t.true(logged(failed(circle)).includes('"message":"two"'));
});

test('a log line of malformed JSON does not quote it; that of a bug has its message', (t) => {
  const unreadable = t.throws(() => JSON.parse('Jansen'), { message: /Jansen/ }) as Error;
  t.false(logged(failed(unreadable)).includes('Jansen'));
  t.true(logged(failed(new TypeError('x is not a function'))).includes('"message":"x is not a function"'));
});

async function scraped(...events: Event[]): Promise<string> {
  const pool = { open: 0, inFlight: 0, waiting: 0 };
  const sources = {
    replicas: [{ name: 'replica1', state: { healthy: true, lagMs: 0 }, short: pool, long: pool }] as never,
    primary: null,
    unfit: [],
    redis: () => null,
    largePages: () => 0,
    requestsInFlight: () => 0,
    clientConnections: async () => 0,
  };
  const { observe, registry } = metricsEvents(sources, loadResources(''));
  for (const event of events) observe(event);
  return registry.metrics();
}

test('counters count from 0 where their labels are known, so that an alert sees the first event', async (t) => {
  const text = await scraped();
  for (const code of Object.keys(problems)) t.true(text.includes(`gateway_problems_total{code="${code}"} 0\n`), code);
  for (const series of [
    ...['gateway_limit_hits_total{limit="address"} 0'],
    ...['gateway_requests_shed_total{bound="large_pages_per_token"} 0'],
    ...['gateway_writes_total{outcome="replayed"} 0'],
    ...['gateway_decode_errors_total{resource="klanten",pointer="/adres/straat",reason="bad_tag"} 0'],
    ...['gateway_pages_resumed_total{resource="werkbonnen"} 0'],
    ...['gateway_replica_ejections_total{replica="replica1"} 0', 'gateway_pages_broken_total 0'],
    ...['gateway_redis_failures_total 0'],
  ])
    t.true(text.includes(`${series}\n`), series);
});

test('a request counts as a problem only when it was answered with one', async (t) => {
  const request: Event = {
    type: 'request_finished',
    requestId: 'r',
    method: 'GET',
    route: '/x',
    status: 500,
    code: null,
    durationMs: 20,
    complete: true,
    tokenId: null,
    workspace: null,
    rows: null,
    perPage: null,
    bytes: 0,
  };
  const text = await scraped(request, { ...request, code: 'internal' });
  t.true(text.includes('gateway_problems_total{code="internal"} 1\n'));
  t.true(text.includes('gateway_request_seconds_count{method="GET",route="/x",status="500"} 2\n'));
  t.true(text.includes('gateway_request_seconds_sum{method="GET",route="/x",status="500"} 0.04\n'));
});

test('each event is counted once, whether it waits for others or not', async (t) => {
  const limited: Event = { type: 'limit_hit', limit: 'token' };
  for (const count of [1, 127, 128, 129, 300]) {
    const text = await scraped(...new Array<Event>(count).fill(limited));
    t.true(text.includes(`gateway_limit_hits_total{limit="token"} ${count}\n`), String(count));
  }
});

type Line = readonly [Event, (Repetition | undefined)?];

function lines(windowMs?: number): { written: Line[]; repeated: RepeatedLines } {
  const written: Line[] = [];
  return { written, repeated: repeatedLines((...line) => written.push(line), windowMs) };
}

const undecoded = (row: string, reason = 'bad_tag'): Event => ({
  type: 'decode_failed',
  resource: 'klanten',
  row,
  pointer: '/naam',
  reason,
});

test('a flood of a kind is two lines: its first event, and the number of the others with some of their rows', (t) => {
  const { written, repeated } = lines();
  for (let i = 0; i < 1691; i++) repeated.add(undecoded(`row ${i}`));
  repeated.add(undecoded('row x', 'unknown_key'));
  t.deepEqual(written, [[undecoded('row 0')], [undecoded('row x', 'unknown_key')]]);
  repeated.close();
  const rows = Array.from({ length: 20 }, (_, i) => `row ${i + 1}`);
  t.deepEqual(written.slice(2), [[undecoded('row 1690'), { repeated: 1690, rows }]]);
});

test('a flood is told when its window ends, and the next window begins with a count', async (t) => {
  const { written, repeated } = lines(100);
  const event: Event = { type: 'primary_failed', code: '25006' };
  for (let i = 0; i < 3; i++) repeated.add(event);
  t.true(await until(() => written.length === 2, 5000, 10));
  t.deepEqual(written[1], [event, { repeated: 2 }]);
  repeated.add(event);
  t.is(written.length, 2);
  t.true(await until(() => written.length === 3, 5000, 10));
  t.deepEqual(written[2], [event, { repeated: 1 }]);
});

test('each request and each change of state has its line', (t) => {
  const { written, repeated } = lines();
  for (let i = 0; i < 5; i++) repeated.add({ type: 'replica_ejected', replica: 'replica1', reason: 'x' });
  t.is(written.length, 5);
});

test('kinds without end take a bounded memory, and a bounded log', (t) => {
  const { written, repeated } = lines();
  for (let i = 0; i < 5000; i++) repeated.add({ type: 'primary_failed', code: String(i) });
  t.is(written.length, 1001);
  repeated.close();
  t.is(written.length, 1002);
});
