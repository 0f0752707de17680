import type { Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import { ReadPace } from '../../src/flow/read-pace.js';

const rowsExpected = 2000;

/** A stream with a pace, and the answer that it reads. */
function paced(): { stream: PassThrough; answer: { rowsRead: number }; pace: ReadPace } {
  const stream = new PassThrough();
  const pace = new ReadPace(stream as unknown as Socket);
  return { stream, answer: { rowsRead: 0 }, pace };
}

test('bytes gather while many rows are to come, and are read a moment later', async (t) => {
  const { stream, answer, pace } = paced();
  pace.begin(answer, rowsExpected);
  for (const rows of [40, 80]) {
    await sleep(5);
    answer.rowsRead = rows;
    stream.write('rows');
  }
  t.true(stream.isPaused());
  await sleep(20);
  t.false(stream.isPaused());
});

test('the last rows of an answer are read as they come, and so is an answer that must not gather', async (t) => {
  for (const [rows, expected] of [
    [[1990, 1999], rowsExpected],
    [[40, 80], 0],
  ] as const) {
    const { stream, answer, pace } = paced();
    pace.begin(answer, expected);
    for (const count of rows) {
      await sleep(5);
      answer.rowsRead = count;
      stream.write('rows');
      t.false(stream.isPaused());
    }
  }
});

test('after a large read the other sockets have a turn', async (t) => {
  const { stream } = paced();
  stream.write(Buffer.alloc(32_768));
  t.true(stream.isPaused());
  await sleep(20);
  t.false(stream.isPaused());
});
