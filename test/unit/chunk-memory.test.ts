import test from 'ava';
import { ChunkMemory } from '../../src/read/chunks.js';

/** A buffer that was filled with so many bytes and given back. */
function used(memory: ChunkMemory, bytes: number): ReturnType<ChunkMemory['borrow']> {
  const json = memory.borrow('long');
  json.raw(Buffer.alloc(bytes));
  memory.lend(json).release();
  return json;
}

test('a buffer is used again, empty', (t) => {
  const memory = new ChunkMemory();
  const json = used(memory, 60_000);
  t.is(memory.borrow('short'), json);
  t.is(json.length, 0);
});

test('a short list takes the smallest buffer, and none that it would be copied out of; a chunk takes the largest', (t) => {
  const memory = new ChunkMemory();
  const filled = (bytes: number): ReturnType<ChunkMemory['lend']> => {
    const json = memory.borrow('long');
    json.raw(Buffer.alloc(bytes));
    return memory.lend(json);
  };
  const [large, small, medium] = [filled(1_000_000), filled(60_000), filled(200_000)];
  for (const { release } of [large, small, medium]) release();
  t.is(memory.borrow('short'), small.json);
  t.is(memory.borrow('short'), medium.json);
  t.not(memory.borrow('short'), large.json);
  t.is(memory.borrow('long'), large.json);
});

test('a chunk that fills less than half of its buffer is copied, so that a slow client does not keep a large one', (t) => {
  const memory = new ChunkMemory();
  const large = used(memory, 1_000_000);
  t.is(memory.borrow('long'), large);
  large.raw(Buffer.from('abc'));
  const { json } = memory.lend(large);
  t.deepEqual([json.toString(), json.capacity], ['abc', 3]);
  t.is(memory.borrow('long'), large);
});
