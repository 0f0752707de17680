import test from 'ava';
import { ChunkMemory } from '../../src/read/chunks.js';

/** A buffer that was filled with so many bytes and given back. */
function used(memory: ChunkMemory, bytes: number): ReturnType<ChunkMemory['borrow']> {
  const json = memory.borrow();
  json.raw(Buffer.alloc(bytes));
  memory.lend(json).release();
  return json;
}

test('a buffer is used again, empty', (t) => {
  const memory = new ChunkMemory();
  const json = used(memory, 60_000);
  t.is(memory.borrow(), json);
  t.is(json.length, 0);
});

test('the largest spare buffer is used first', (t) => {
  const memory = new ChunkMemory();
  const filled = [60_000, 1_000_000, 200_000].map((bytes) => {
    const json = memory.borrow();
    json.raw(Buffer.alloc(bytes));
    return memory.lend(json);
  });
  for (const { release } of filled) release();
  t.deepEqual(
    filled.map(() => memory.borrow().capacity),
    filled.map(({ json }) => json.capacity).sort((a, b) => b - a),
  );
});

test('a chunk that fills less than half of its buffer is copied, so that a slow client does not keep a large one', (t) => {
  const memory = new ChunkMemory();
  const large = used(memory, 1_000_000);
  t.is(memory.borrow(), large);
  large.raw(Buffer.from('abc'));
  const { json } = memory.lend(large);
  t.deepEqual([json.toString(), json.capacity], ['abc', 3]);
  t.is(memory.borrow(), large);
});
