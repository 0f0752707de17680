import test from 'ava';
import { Problem } from '../../src/base/errors.js';
import {
  type Candidate,
  chooseReplica,
  makePrimaryLender,
  type ReadTarget,
  type Requirement,
} from '../../src/postgres/choice.js';
import type { ConnectionPool } from '../../src/postgres/connection-pool.js';
import { ConnectionLost, StatementEnded } from '../../src/postgres/database-errors.js';
import { Heartbeat, WritePositions } from '../../src/postgres/heartbeat.js';
import { type ReadDeps, runOnReadTarget } from '../../src/serve/read/routing.js';

// The choice of a server is a function of plain values: the states, positions and errors below, which real servers take
// only by chance. Heartbeat and positions are the gateway's own; real replicas choose in test/fault/freshness,
// failed-reads and read-your-writes.

interface Named extends Candidate {
  readonly name: string;
}

function replica(name: string, inFlight = 0, state: object = {}): Named {
  const mayRead: Candidate['mayRead'] = ({ view }) => view !== 'unchecked';
  const [healthy, replayed, asOfMs, probe] = [true, 5n, 1000, async () => {}];
  return Object.assign({ name, inFlight, mayRead, state: { healthy, replayed, asOfMs, ...state } as never }, { probe });
}

/** Counts how often each is chosen of 3,000 times. */
function chosen(replicas: readonly Named[], requirement: Requirement = {}, failed?: Set<Candidate>) {
  const counts: Record<string, number> = {};
  for (let i = 0; i < 3000; i++) {
    const name = chooseReplica(replicas, requirement, failed)?.name ?? 'none';
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}

test('equally loaded replicas are chosen equally often', (t) => {
  const counts = chosen([replica('a'), replica('b'), replica('c')]);
  for (const name of ['a', 'b', 'c']) t.true(Math.abs((counts[name] ?? 0) - 1000) < 200, JSON.stringify(counts));
});

test('a replica is chosen that is healthy, current and calm, of equals the one of the page, and one that failed at the last', (t) => {
  const [good, busy, own] = [replica('good', 9), replica('busy', 50), replica('own')];
  const [out, late] = [replica('out', 0, { healthy: false }), replica('late', 0, { asOfMs: 999, replayed: 4n })];
  const cases: [string, readonly Named[], Requirement, Set<Candidate>?][] = [
    ['good', [out, late, good], { replayed: 5n }],
    ['good', [late, good], { asOfMs: 1000 }],
    ['none', [late], { asOfMs: 1000 }],
    ['none', [own], { resource: { name: 'a', view: 'unchecked' } }],
    ['good', [busy, good], { pageServer: busy }],
    ['own', [replica('a'), own, replica('b')], { pageServer: own }],
    ['busy', [own, busy], { pageServer: own }, new Set([own])],
    ['own', [own], {}, new Set([own])],
  ];
  for (const [name, replicas, requirement, failed] of cases)
    t.deepEqual(chosen(replicas, requirement, failed), { [name]: 3000 });
});

const here = { timeline: '00000001', systemIdentifier: '1' };
const primary = { name: 'primary', state: {} } as ReadTarget;

/** Reads of a resource that clients write, by a gateway with one replica, and the primary `reads` times. */
function readsOf(state: object, { timeline, reads = 1 }: { timeline?: string; reads?: number } = {}) {
  const positions = new WritePositions();
  const heartbeat = new Heartbeat(60_000);
  const sample = { ...here, tickMs: performance.now(), atMs: Date.now(), lsn: 1000n, insertLsn: 1000n };
  heartbeat.add({ ...sample, ...(timeline && { timeline }) });
  let left = reads;
  const deps = {
    replicas: [replica('replica', 0, { replayed: 500n, asOfMs: null, ...state })],
    heartbeat,
    findLastWrite: (workspace: string) => positions.findLastWrite(workspace),
    freshnessWaitMs: 30,
    resumeMs: 0,
    lendPrimary: () => (left > 0 && left-- > 0 ? primary : null),
    primaryReachable: () => true,
    refuses: () => false,
    observe: () => {},
  } as unknown as ReadDeps;
  const about = { compiled: { resource: { write: {} } }, caller: { workspace: 'w' } } as never;
  const read = (requirement: Requirement = {}): Promise<string> =>
    runOnReadTarget(deps, about, requirement, async ({ target }) => target.name);
  return { read, wrote: (lsn: bigint) => positions.noteWrite('w', { ...here, lsn }), allow: () => left++ };
}

const refusal = { instanceOf: Problem, code: 'replica_unavailable' };

test('after a write a replica that has replayed it is read, else the primary while it has reads to spare, else none', async (t) => {
  const { read, wrote } = readsOf({});
  t.is(await read(), 'replica');
  await wrote(500n);
  t.is(await read(), 'replica');
  await wrote(501n);
  await wrote(400n); // positions only move forward
  t.is(await read(), 'primary');
  const refused = await t.throwsAsync<Problem>(read(), refusal);
  t.is(refused.headers['Retry-After'], '1');
});

test('a position of another timeline proves nothing: the replica must show the primary as it was after the write', async (t) => {
  for (const [seconds, name] of [
    [-5, 'primary'],
    [5, 'replica'],
  ] as const) {
    const { read, wrote } = readsOf({ replayed: 9999n, asOfMs: Date.now() + seconds * 1000 }, { timeline: '00000002' });
    await wrote(500n);
    t.is(await read(), name);
  }
});

test('without any healthy replica, and for a pass of sync, the primary is left alone', async (t) => {
  const down = readsOf({ healthy: false });
  const behind = readsOf({});
  for (const { wrote } of [down, behind]) await wrote(501n);
  await t.throwsAsync(down.read(), refusal);
  await t.throwsAsync(behind.read({ replicasOnly: true }), refusal);
});

test('a page that has begun waits for its share of the primary', async (t) => {
  const { read, wrote, allow } = readsOf({}, { reads: 0 });
  await wrote(501n);
  const waiting = read({ resumeMs: 60_000 });
  setTimeout(allow, 200);
  t.is(await waiting, 'primary');
});

const [pool, isReachable, ignore] = [{ renew: () => {} } as ConnectionPool, () => true, () => {}];
const fewReads = () => makePrimaryLender(pool, isReachable, 20, ignore);

/** Says how a read ends whose attempts fail with these errors, and counts the attempts. */
async function failing(errors: readonly Error[], { isBehind = false, requirement = {} as Requirement } = {}) {
  const only = replica('replica', 0, { replayed: isBehind ? 0n : 9n });
  let [attempts, second] = [0, 0];
  const reads = fewReads();
  const deps = {
    ...{ replicas: [only], freshnessWaitMs: 10, resumeMs: 0, heartbeat: new Heartbeat(1000), observe: () => {} },
    lendPrimary: () => reads(),
    ...{ primaryReachable: () => true, findLastWrite: () => undefined, refuses: () => false },
  } as unknown as ReadDeps;
  const about = { compiled: { resource: { write: {} } }, caller: {} } as never;
  const given = isBehind ? { replayed: 5n, showsWrite: true } : requirement;
  const startedMs = performance.now();
  const end = await runOnReadTarget(deps, about, given, async () => {
    const error = errors[attempts++];
    if (attempts === 2) second = performance.now() - startedMs;
    if (error !== undefined) throw error;
    return 'read';
  }).catch((error: Error) => (error instanceof Problem ? error.code : error.message));
  return { end, attempts, secondAfterMs: second };
}

const fromPostgres = (code: string): Error => Object.assign(new Error(code), { code, severity: 'ERROR' });
const [lost, ended] = [new ConnectionLost('lost'), new StatementEnded()];

test('a read is repeated for faults of a server, a bounded number of times, and never for a fault of our own', async (t) => {
  const cases: [errors: readonly Error[], end: string, attempts: number][] = [
    [[lost], 'read', 2],
    [[lost, ended], 'read', 3],
    [[lost, lost, lost, lost], 'replica_unavailable', 3],
    [[fromPostgres('40001'), lost, ended], 'replica_unavailable', 3],
    [[ended, ended, ended, ended], 'query_timeout', 3],
    [[fromPostgres('57014')], 'query_timeout', 1],
    [[lost, fromPostgres('57014')], 'query_timeout', 2],
    [[new Error('ours')], 'ours', 1],
    [[new TypeError('ours')], 'ours', 1],
    [[Object.assign(new Error('no file'), { code: 'ENOENT' })], 'no file', 1],
  ];
  for (const [errors, end, attempts] of cases)
    t.like(await failing(errors), { end, attempts }, errors.map(({ message }) => message).join());
});

test('a page that has begun repeats a cancelled statement for the time of a resumption, and then it has taken too long', async (t) => {
  const { end, attempts } = await failing(Array(1000).fill(ended), { requirement: { resumeMs: 300 } });
  t.is(end, 'query_timeout');
  t.true(attempts >= 2 && attempts <= 17, `${attempts} attempts`); // a pause of 20 ms before each
});

test('after a failure on the primary its few reads are spared for a moment', async (t) => {
  const { end, attempts, secondAfterMs } = await failing([lost, lost, lost, lost], { isBehind: true });
  t.deepEqual([end, attempts], ['replica_unavailable', 3]);
  t.true(secondAfterMs >= 100, `the second attempt came after ${secondAfterMs} ms`);
  const reads = fewReads();
  reads()?.pause?.(50);
  t.is(reads(), null);
});

test('when the clock was set back since the rows before, the most current replica continues a walk and a page', async (t) => {
  const [late, current] = [5000, 400].map((ms) => replica(`${ms}`, 0, { asOfMs: Date.now() - ms }));
  const about = { compiled: { resource: {} }, caller: {} } as never;
  const [primaryReachable, refuses] = [() => true, () => false];
  const deps = {
    replicas: [late, current],
    resumeMs: 0,
    primaryReachable,
    refuses,
    observe: () => {},
  } as unknown as ReadDeps;
  const read = (asOfMs: number, requirement: Requirement = {}): Promise<unknown> =>
    runOnReadTarget(deps, about, { asOfMs, resumeMs: 0, ...requirement }, async ({ target }) => target);
  for (const requirement of [{}, { pageServer: replica('page') }])
    t.is(await read(Date.now() + 3_600_000, requirement), current);
  await t.throwsAsync(read(Date.now()), refusal, 'a moment in the past is waited for');
});

function heartbeatOf(...samples: { atMs: number; tickMs?: number; lsn: bigint; insertLsn: bigint }[]): Heartbeat {
  const heartbeat = new Heartbeat(60_000);
  for (const sample of samples) heartbeat.add({ ...here, tickMs: sample.atMs, ...sample });
  return heartbeat;
}

test('a replica is current up to the newest sample whose visible commits it has all replayed', (t) => {
  const heartbeat = heartbeatOf({ atMs: 1000, lsn: 10n, insertLsn: 10n }, { atMs: 1500, lsn: 10n, insertLsn: 20n });
  t.deepEqual(heartbeat.estimateCurrency(10n), { asOfMs: 1000, lagMs: 0 });
  t.deepEqual(heartbeat.estimateCurrency(20n), { asOfMs: 1500, lagMs: 0 });
});

test('when the clock is set a minute ahead, no replica lags, and older samples are kept', (t) => {
  const heartbeat = heartbeatOf(
    { atMs: 1000, lsn: 10n, insertLsn: 10n },
    { atMs: 61_500, tickMs: 1500, lsn: 20n, insertLsn: 20n },
  );
  t.deepEqual(heartbeat.estimateCurrency(10n), { asOfMs: 1000, lagMs: 500 });
});

test('without a position of the primary, lag is not known', (t) => {
  t.deepEqual(heartbeatOf().estimateCurrency(10n), { asOfMs: null, lagMs: null });
});

test('records that the primary has not flushed make no replica lag', (t) => {
  const heartbeat = heartbeatOf(
    ...Array.from({ length: 40 }, (_, i) => ({ atMs: i * 500, lsn: 10n, insertLsn: i === 0 ? 10n : 20n })),
  );
  t.deepEqual(heartbeat.estimateCurrency(10n), { asOfMs: 0, lagMs: 0 });
});
