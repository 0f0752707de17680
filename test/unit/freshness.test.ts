import test from 'ava';
import { Problem } from '../../src/errors.js';
import { Heartbeat, WritePositions } from '../../src/postgres/heartbeat.js';
import type { Replica } from '../../src/postgres/replica.js';
import type { ReadTarget } from '../../src/read/routing.js';
import { freshnessRouter, type PagePhase, perSecond, type ReadDeps, withReadTarget } from '../../src/read/routing.js';

const here = { timeline: '00000001', systemIdentifier: '1' };
const atMs = (): number => Date.now();

function routerOf(
  replica: { replayed: bigint; asOfMs: number | null; healthy?: boolean },
  primary: { timeline?: string; atMs?: number } | null,
) {
  const positions = new WritePositions();
  const heartbeat = new Heartbeat(60_000);
  if (primary)
    heartbeat.add({ ...here, tickMs: performance.now(), lsn: 1000n, insertLsn: 1000n, atMs: atMs(), ...primary });
  const replicas = [
    { inFlight: 0, state: { healthy: true, reason: null, lagMs: 0, ...replica }, probe: async () => {} },
  ];
  const router = freshnessRouter({
    replicas: replicas as unknown as Replica[],
    positions,
    heartbeat,
    primary: () => (primary ? ({ name: 'primary' } as ReadTarget) : null),
    primaryReadsPerSecond: 1,
    waitMs: 30,
    observe: () => {},
  });
  return { positions, router };
}

test('without a write any replica will do', async (t) => {
  const { router } = routerOf({ replayed: 0n, asOfMs: null }, {});
  t.deepEqual(await router('w'), { requirement: {} });
});

test('after a write a replica that has replayed it is asked for, else the primary, within its cap', async (t) => {
  const { router, positions } = routerOf({ replayed: 500n, asOfMs: null }, {});
  await positions.record('w', { ...here, lsn: 500n });
  t.deepEqual(await router('w'), { requirement: { replayed: 500n } });
  await positions.record('w', { ...here, lsn: 501n });
  t.true('primary' in (await router('w')));
  const refused = await t.throwsAsync(async () => router('w'), { instanceOf: Problem });
  t.is((refused as Problem).code, 'replica_unavailable');
  t.is((refused as Problem).headers['Retry-After'], '1');
});

test('positions only move forward', async (t) => {
  const { router, positions } = routerOf({ replayed: 500n, asOfMs: null }, {});
  await positions.record('w', { ...here, lsn: 501n });
  await positions.record('w', { ...here, lsn: 400n });
  t.true('primary' in (await router('w')));
});

test('a position of another timeline proves nothing: the replica must show the primary as it was after the write', async (t) => {
  const behind = routerOf({ replayed: 9999n, asOfMs: atMs() - 5000 }, { timeline: '00000002' });
  await behind.positions.record('w', { ...here, lsn: 500n });
  t.true('primary' in (await behind.router('w')));
  const after = routerOf({ replayed: 1n, asOfMs: atMs() + 5000 }, { timeline: '00000002' });
  await after.positions.record('w', { ...here, lsn: 500n });
  const route = await after.router('w');
  t.true('requirement' in route && route.requirement.asOfMs !== undefined && route.requirement.replayed === undefined);
});

test('without any healthy replica the read gets its own answer at once, and the primary is left alone', async (t) => {
  const { router, positions } = routerOf({ replayed: 0n, asOfMs: null, healthy: false }, {});
  await positions.record('w', { ...here, lsn: 500n });
  t.deepEqual(await router('w'), { requirement: { replayed: 500n } });
});

test('while the primary does not answer, a read that no replica can serve is refused', async (t) => {
  const { router, positions } = routerOf({ replayed: 0n, asOfMs: null }, null);
  await positions.record('w', { ...here, lsn: 500n });
  await t.throwsAsync(async () => router('w'), { instanceOf: Problem });
});

test('a page that has begun waits for its share of the primary', async (t) => {
  const { router, positions } = routerOf({ replayed: 0n, asOfMs: null }, {});
  await positions.record('w', { ...here, lsn: 500n });
  await router('w');
  const startedMs = performance.now();
  t.true('primary' in (await router('w', { resumeMs: 5000 })));
  t.true(performance.now() - startedMs > 500);
});

test('the cap holds for any second, wherever it begins', (t) => {
  let now = 0;
  const may = perSecond(5, () => now);
  const used: number[] = [];
  for (; now < 5000; now += 37) if (may()) used.push(now);
  for (const from of used) t.true(used.filter((at) => at >= from && at < from + 1000).length <= 5);
  t.true(used.length >= 25);
  t.false(perSecond(0)());
});

test('when the clock was set back since the rows before, the most current replica continues a walk and a page', async (t) => {
  const replicaOf = (asOfMs: number) => ({
    inFlight: 0,
    state: { healthy: true, asOfMs },
    mayRead: () => true,
    probe: async () => {},
  });
  const [late, current] = [replicaOf(atMs() - 5000), replicaOf(atMs() - 400)];
  const read = { compiled: { write: null, resource: {} }, caller: {} } as Parameters<typeof withReadTarget>[1];
  const primaryReachable = () => true;
  const deps = { replicas: [late, current], resumeMs: 0, primaryReachable, observe: () => {} } as unknown as ReadDeps;
  const requirement = { asOfMs: atMs() + 3_600_000, resumeMs: 0 };
  const phases: PagePhase[] = [
    { kind: 'first', requirement },
    { kind: 'continuation', requirement, onPrimary: false },
  ];
  for (const phase of phases)
    t.is(await withReadTarget<unknown>(deps, read, phase, async ({ target }) => target), current, phase.kind);
  const justNow = { ...requirement, asOfMs: atMs() };
  const refused = withReadTarget(deps, read, { kind: 'first', requirement: justNow }, async () => null);
  t.is(((await t.throwsAsync(refused)) as Problem).code, 'replica_unavailable', 'a moment in the past is waited for');
});
