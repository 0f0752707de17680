import test from 'ava';
import { FairQueue } from '../../src/db/fair-queue.js';

test('waiters are served one of each key in turn, those of a key in the order of their arrival', (t) => {
  const queue = new FairQueue<string>();
  for (const waiter of ['a1', 'a2', 'a3', 'b1', 'a4', 'c1', 'b2']) queue.add(waiter.charAt(0), waiter);
  t.deepEqual([...queue.drain()], ['a1', 'b1', 'c1', 'a2', 'b2', 'a3', 'a4']);
  t.is(queue.size, 0);
});

test('a key whose first waiter must not be served yet is skipped and keeps its turn', (t) => {
  const queue = new FairQueue<string>();
  for (const waiter of ['a1', 'b1', 'b2']) queue.add(waiter.charAt(0), waiter);
  t.is(
    queue.take((waiter) => !waiter.startsWith('a')),
    'b1',
  );
  t.is(
    queue.take(() => false),
    undefined,
  );
  t.deepEqual([...queue.drain()], ['a1', 'b2']);
});

test('the newest waiter of the key with the longest queue is evicted', (t) => {
  const queue = new FairQueue<string>();
  for (const waiter of ['a1', 'b1', 'a2', 'a3']) queue.add(waiter.charAt(0), waiter);
  t.is(queue.evictNewestOfLongest(), 'a3');
  t.true(queue.delete('a', 'a1'));
  t.false(queue.delete('a', 'a1'));
  t.deepEqual([...queue.drain()], ['a2', 'b1']);
});
