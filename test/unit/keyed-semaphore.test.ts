import test from 'ava';
import { KeyedSemaphore } from '../../src/db/keyed-semaphore.js';

test('each key holds at most its bound, and keys do not count against each other', async (t) => {
  const semaphore = new KeyedSemaphore(() => 2);
  const release = semaphore.take('a');
  semaphore.take('a');
  t.true(semaphore.isFull('a'));
  t.false(semaphore.isFull('b'));
  t.is(await semaphore.acquire('a', 1), null);
  t.is(semaphore.held, 2);
  release();
  t.false(semaphore.isFull('a'));
});

test('a released unit goes to the waiter that came first', async (t) => {
  const semaphore = new KeyedSemaphore(() => 1);
  const release = semaphore.take('a');
  const [first, second] = [semaphore.acquire('a', 1000), semaphore.acquire('a', 10)];
  release();
  t.truthy(await first);
  t.is(await second, null);
  t.is(semaphore.held, 1);
});

test('a unit that costs more than is left fills the key until it is released', (t) => {
  const semaphore = new KeyedSemaphore(() => 4);
  semaphore.take('a', 3);
  const release = semaphore.take('a', 5);
  t.true(semaphore.isFull('a'));
  release();
  t.false(semaphore.isFull('a'));
});
