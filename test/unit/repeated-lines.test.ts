import test from 'ava';
import type { Event } from '../../src/events.js';
import { type RepeatedLines, type Repetition, repeatedLines } from '../../src/ops/log.js';
import { until } from '../support/patience.js';

type Line = readonly [Event, (Repetition | undefined)?];

function lines(windowMs?: number): { written: Line[]; repeated: RepeatedLines } {
  const written: Line[] = [];
  return { written, repeated: repeatedLines((...line) => written.push(line), windowMs) };
}

const failed = (row: string, reason = 'bad_tag'): Event => ({
  type: 'decode_failed',
  resource: 'klanten',
  row,
  pointer: '/naam',
  reason,
});

test('a flood of a kind is two lines: its first event, and the number of the others with some of their rows', (t) => {
  const { written, repeated } = lines();
  for (let i = 0; i < 1691; i++) repeated.add(failed(`row ${i}`));
  repeated.add(failed('row x', 'unknown_key'));
  t.deepEqual(written, [[failed('row 0')], [failed('row x', 'unknown_key')]]);
  repeated.close();
  const rows = Array.from({ length: 20 }, (_, i) => `row ${i + 1}`);
  t.deepEqual(written.slice(2), [[failed('row 1690'), { repeated: 1690, rows }]]);
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
