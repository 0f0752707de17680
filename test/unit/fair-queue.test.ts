import test from 'ava';
import { FairQueue } from '../../src/db/fair-queue.js';

test('waiters are served one of each in turn, and of one in the order they came', (t) => {
  const queue = new FairQueue<string>();
  for (const waiter of ['a1', 'a2', 'a3', 'b1', 'a4', 'c1', 'b2']) queue.add(waiter.charAt(0), waiter);
  t.deepEqual([...queue.drain()], ['a1', 'b1', 'c1', 'a2', 'b2', 'a3', 'a4']);
  t.is(queue.size, 0);
});

test('who may not be served yet is passed over and keeps its turn', (t) => {
  const queue = new FairQueue<string>();
  for (const waiter of ['a1', 'b1', 'b2']) queue.add(waiter.charAt(0), waiter);
  t.is(
    queue.take((whose) => whose !== 'a'),
    'b1',
  );
  t.is(
    queue.take(() => false),
    undefined,
  );
  t.deepEqual([...queue.drain()], ['a1', 'b2']);
});

test('room is made by the newest of whoever has most waiters', (t) => {
  const queue = new FairQueue<string>();
  for (const waiter of ['a1', 'b1', 'a2', 'a3']) queue.add(waiter.charAt(0), waiter);
  t.is(queue.takeNewestOfMost(), 'a3');
  t.true(queue.delete('a', 'a1'));
  t.false(queue.delete('a', 'a1'));
  t.deepEqual([...queue.drain()], ['a2', 'b1']);
});
