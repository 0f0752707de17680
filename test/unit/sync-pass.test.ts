import test from 'ava';
import { Problem } from '../../src/errors.js';
import type { SyncPosition } from '../../src/sync/pass.js';
import { LatestTimeline, Pass } from '../../src/sync/pass.js';

const system = '7400000000000000001';
const mark = (xmin: number, lsn: string | null, timeline = '00000001', cluster = system) => [
  String(xmin),
  lsn,
  timeline,
  cluster,
  '1767225600000',
];
const before: SyncPosition = {
  systemIdentifier: system,
  timeline: '00000001',
  lsn: 0x50n,
  xmin: 100n,
  replayedAtMs: null,
};
const primaryOn = (timeline: string) => new LatestTimeline(() => ({ systemIdentifier: system, timeline }));
const primaryUnknown = () => new LatestTimeline(() => undefined);

test('a pass keeps the oldest transaction of its first snapshot, and the latest position', (t) => {
  const pass = new Pass({ pass: null, since: before }, primaryUnknown());
  t.deepEqual(pass.requirement, { replicasOnly: true, replayed: 0x50n });
  pass.onMark(mark(120, '0/60'));
  pass.onMark(mark(150, '0/80'));
  const { xmin, lsn, replayedAtMs } = pass.position;
  t.deepEqual([xmin, lsn, replayedAtMs], [120n, 0x80n, 1767225600000]);
  t.is(pass.requirement.replayed, 0x80n);
});

const refusals: readonly (readonly [name: string, row: ReturnType<typeof mark>, message: RegExp])[] = [
  ['lacks transactions that the pass counts as over', mark(119, '0/90'), /lacks transactions/],
  ['is behind the pass', mark(130, '0/7F'), /behind the pass/],
  ['is no replica any more', mark(130, null), /no replica/],
];
for (const [name, row, message] of refusals) {
  test(`a statement is repeated elsewhere when its server ${name}`, (t) => {
    const pass = new Pass({ pass: { ...before, xmin: 120n, lsn: 0x80n }, since: null }, primaryUnknown());
    const error = t.throws(() => pass.onMark(row), { message });
    t.false(error instanceof Problem);
    t.is(pass.position.xmin, 120n);
  });
}

test('a replica behind the end of the pass before is refused, also at the beginning of a pass', (t) => {
  const pass = new Pass({ pass: null, since: before }, primaryUnknown());
  t.throws(() => pass.onMark(mark(130, '0/4F')), { message: /behind the pass/ });
  pass.onMark(mark(99, '0/50'));
  t.is(pass.position.xmin, 99n);
});

test('another history expires the token: a timeline of the replica or of the primary, and another cluster', (t) => {
  const expired = { instanceOf: Problem, message: /another history/ };
  const start = { pass: null, since: before };
  t.throws(() => new Pass(start, primaryUnknown()).onMark(mark(130, '0/60', '00000002')), expired);
  t.throws(() => new Pass(start, primaryOn('00000002')).onMark(mark(130, '0/60')), expired);
  t.throws(
    () => new Pass(start, primaryUnknown()).onMark(mark(130, '0/60', '00000001', '7400000000000000002')),
    expired,
  );
  t.notThrows(() => new Pass(start, primaryOn('00000001')).onMark(mark(130, '0/60')));
});

test('no pass begins on a replica that does not show the timeline of the primary', (t) => {
  const start = { pass: null, since: null };
  const error = t.throws(() => new Pass(start, primaryOn('00000002')).onMark(mark(130, '0/60')), {
    message: /follows/,
  });
  t.false(error instanceof Problem);
  t.notThrows(() => new Pass(start, primaryOn('00000002')).onMark(mark(130, '0/60', '00000002')));
});

test('without a primary the latest timeline of any replica counts, and a replica that shows an earlier one is not read', (t) => {
  const start = { pass: null, since: null };
  const latest = primaryUnknown();
  t.notThrows(() => new Pass(start, latest).onMark(mark(130, '0/60')));
  t.notThrows(() => new Pass(start, latest).onMark(mark(130, '0/60', '00000002')));
  t.throws(() => new Pass(start, latest).onMark(mark(130, '0/60')), { message: /follows/ });
  t.throws(() => new Pass({ ...start, since: before }, latest).onMark(mark(130, '0/60')), {
    message: /another history/,
  });
});
