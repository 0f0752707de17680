import { execFile } from 'node:child_process';
import { PassThrough } from 'node:stream';
import { promisify } from 'node:util';
import test from 'ava';
import pg from 'pg';
import { type ProblemCode, problems } from '../../src/base/errors.js';
import type { Event } from '../../src/base/events.js';
import { loadResources } from '../../src/resource/definition/load.js';
import { foldRepeatedLines, openLog, type RepeatedLines, type Repetition } from '../../src/serve/ops/log.js';
import { makeMetrics } from '../../src/serve/ops/metrics.js';
import { RecentFaults, sumCounts } from '../../src/serve/ops/recent.js';
import { type Readiness, reportStatus } from '../../src/serve/ops/status.js';
import { type CopyStep, ReadRegister } from '../../src/serve/read-register.js';
import { until } from '../support/patience.js';

const ready: Readiness = {
  status: 'ready',
  reasons: [],
  replicas: [{ name: 'a', state: 'used', reason: null, lagSeconds: 0, dataAgeSeconds: 75 }],
  primary: { healthy: true, reason: null },
  unfit: [],
  refused: [],
  locked: [],
  lacks: [],
  recent: [],
  reloadRefused: null,
  redis: null,
};

test('the status names primary, Redis and workers that are away, and data that is old, failures first', (t) => {
  t.like(reportStatus(ready, 30_000), { level: 'degraded', lagSecondsMax: 30, workers: null });
  t.is(reportStatus({ ...ready, primary: null }, 30_000).summary, 'All is well.', 'an idle database is not late');
  const away = {
    primary: { healthy: false, reason: 'it does not answer (ECONNREFUSED)' },
    redis: { healthy: false, reason: 'ECONNREFUSED' },
  };
  const { faults, level, summary } = reportStatus({ ...ready, ...away }, 30_000, { configured: 4, reporting: 3 });
  t.deepEqual(
    faults.map(({ sentence }) => sentence),
    [
      'Writes fail: the primary cannot be used: it does not answer (ECONNREFUSED).',
      'The newest data is 75 s old: replay has stopped or the primary is unreachable.',
      'Redis cannot be used: ECONNREFUSED. Each gateway enforces its share of the limits.',
      'Only 3 of 4 workers report.',
    ],
  );
  t.like({ level, summary }, { level: 'failing', summary: 'There are 4 faults.' });
});

const finished = (status: number, code: ProblemCode | null, workspace: string | null): Event => ({
  type: 'request_finished',
  requestId: 'r',
  method: 'GET',
  route: '/api/v1/klanten',
  status,
  code,
  durationMs: 1,
  complete: true,
  tokenId: null,
  workspace,
  rows: null,
  perPage: null,
  bytes: 0,
});

test('the status says what clients met in the last minute, with counts, the workspace that causes it, and a link', (t) => {
  const recent = new RecentFaults();
  for (let i = 0; i < 12; i++) recent.observe(finished(503, 'overloaded', 'constructor')); // a workspace can have any id
  for (let i = 0; i < 3; i++) recent.observe(finished(500, 'internal', `w${i}`));
  for (let i = 0; i < 5; i++) recent.observe(finished(200, null, 'w2'));
  recent.observe(finished(429, 'rate_limited', 'w2'));
  for (let i = 0; i < 2; i++) recent.observe(undecoded('row'));
  recent.observe({ type: 'log_line_dropped' });
  const twice = sumCounts([...recent.getCounts(), ...recent.getCounts()]); // of two workers
  t.deepEqual(
    reportStatus({ ...ready, primary: null, recent: twice }, 30_000).faults,
    [
      ['failing', '6 requests were answered 500 internal: GET /api/v1/klanten', 'internal'],
      [
        'degraded',
        '24 requests were answered 503 overloaded: GET /api/v1/klanten, all of workspace constructor',
        'overloaded',
      ],
      ['degraded', '2 lines were lost from the log: stdout is not read', 'lacks-log'],
      ['degraded', '4 values could not be decoded: klanten /naam (bad_tag)', 'undecodable'],
    ].map(([level, words, id]) => ({
      level,
      sentence: `In the last minute, ${words}.`,
      link: `troubleshooting#${id}`,
    })) as never,
  );
});

function logged(...events: Event[]): string {
  const stream = new PassThrough();
  const log = openLog('trace', () => undefined, stream);
  for (const event of events) log.add(event);
  return String(stream.read());
}

const failed = (error: Error): Event => ({ type: 'request_failed', requestId: 'r', error });

/** PostgreSQL reports `select 'Jansen'::uuid` so, with everything that an error can hold. */
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
  const pool = { openCount: 0, inFlight: 0, waiting: 0 };
  const sources = {
    replicas: [{ name: 'replica1', state: { healthy: true, lagMs: 0 }, short: pool, long: pool, locked: [] }] as never,
    primary: null,
    unfit: [],
    refused: () => [],
    lacks: () => [],
    recent: () => [],
    resources: loadResources(''),
    redis: () => null,
    lagMaxMs: 0,
    storedAnswersBytes: () => 1,
    largePages: () => 0,
    requestsInFlight: () => 0,
    clientConnections: async () => 0,
  };
  const { observe, registry } = makeMetrics(sources);
  for (const event of events) observe(event);
  return registry.metrics();
}

test('counters count from 0 where their labels are known, so that an alert sees the first event', async (t) => {
  const text = await scraped();
  for (const code of Object.keys(problems)) t.true(text.includes(`gateway_problems_total{code="${code}"} 0\n`), code);
  for (const series of [
    ...['gateway_limit_hits_total{limit="address"} 0'],
    ...['gateway_requests_shed_total{bound="large_pages"} 0'],
    ...['gateway_writes_total{outcome="replayed"} 0'],
    ...['gateway_decode_errors_total{resource="klanten",pointer="/adres/straat",reason="bad_tag"} 0'],
    ...['gateway_pages_resumed_total{resource="werkbonnen"} 0'],
    ...['gateway_replica_ejections_total{replica="replica1"} 0', 'gateway_pages_broken_total 0'],
    ...['gateway_redis_failures_total 0'],
  ])
    t.true(text.includes(`${series}\n`), series);
});

test('a request counts as a problem only when it was answered with one', async (t) => {
  const request = { ...finished(500, null, null), route: '/x', durationMs: 20 } as Event;
  const text = await scraped(request, { ...request, code: 'internal' } as Event);
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
  return { written, repeated: foldRepeatedLines((...line) => written.push(line), windowMs) };
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
  const [[event, repetition] = []] = written.slice(2);
  t.deepEqual(event, undecoded('row 1690'));
  t.like(repetition, { repeated: 1690, rows });
  const { firstAt = '', lastAt = '' } = repetition ?? {};
  t.true(firstAt <= lastAt && Math.abs(Date.parse(lastAt) - Date.now()) < 60_000);
});

test('a flood is told when its window ends, and the next window begins with a count', async (t) => {
  const { written, repeated } = lines(100);
  const event: Event = { type: 'primary_failed', code: '25006' };
  for (let i = 0; i < 3; i++) repeated.add(event);
  t.true(await until(() => written.length === 2, 5000, 10));
  t.like(written[1], [event, { repeated: 2 }]);
  repeated.add(event);
  t.is(written.length, 2);
  t.true(await until(() => written.length === 3, 5000, 10));
  t.like(written[2], [event, { repeated: 1 }]);
});

test('each request and each change of state has its line', (t) => {
  const { written, repeated } = lines();
  for (let i = 0; i < 5; i++) repeated.add({ type: 'replica_ejected', replica: 'replica1', reason: 'x' });
  t.is(written.length, 5);
});

test('kinds without end take a bounded memory and a bounded log, and the status counts all of them', (t) => {
  const { written, repeated } = lines();
  for (let i = 0; i < 5000; i++) repeated.add({ type: 'primary_failed', code: String(i) });
  t.is(written.length, 1001);
  repeated.close();
  t.is(written.length, 1002);
  const recent = new RecentFaults();
  for (let i = 0; i < 5000; i++) recent.observe(undecoded('row', String(i)));
  for (let i = 0; i < 7; i++) recent.observe(finished(500, 'internal', null));
  t.is(recent.getCounts().length, 202);
  t.like(recent.getCounts().slice(-2), [
    { kind: 'decode_failed', about: 'others', count: 4800 },
    { kind: 'internal', about: 'others', count: 7 },
  ]);
});

test('lines that were cut leave no room taken, so the log goes on however many there were', async (t) => {
  const script = `
    const { openLog } = await import(process.argv[1]);
    const log = openLog('info', () => undefined);
    for (let round = 0; round < 30; round++) {
      for (let i = 0; i < 20; i++) log.add({ type: 'request_failed', requestId: 'r', error: new Error('x'.repeat(8000)) });
      await log.close();
    }`;
  const module = new URL('../../src/serve/ops/log.js', import.meta.url).href;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script, module], {
    maxBuffer: 10_000_000,
  });
  t.is(stdout.trim().split('\n').length, 600);
});

test('reads that could not be stored are stored later, with every step of a copy', async (t) => {
  const register = new ReadRegister();
  const end = (copy: CopyStep, ms: number): void =>
    register.note('token', { resource: 'klanten', personal: '', records: 1, copy }, ms);
  end('pass', 0);
  await register.flush(async () => {
    end('digest', 1000);
    return false;
  });
  let stored = '';
  await register.flush(async (noted) => {
    stored = noted;
    return true;
  });
  t.deepEqual(JSON.parse(stored).copies, [
    { token: 'token', resource: 'klanten', pass: '1970-01-01T00:00:00.000Z', digest: '1970-01-01T00:00:01.000Z' },
  ]);
});
