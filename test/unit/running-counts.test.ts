import test from 'ava';
import { type Count, RunningCounts } from '../../src/read/running-counts.js';

const never = new AbortController().signal;
const count = (rows: number): Count => ({ rows, asOfMs: rows, lastWrite: undefined });

/** A count that ends when the test says so. */
function deferred() {
  const started: { signal: AbortSignal; end: (count: Count) => void; fail: (error: Error) => void }[] = [];
  const start = (signal: AbortSignal): Promise<Count> =>
    new Promise((end, fail) => {
      started.push({ signal, end, fail });
    });
  return { started, start };
}

test('a result that is not current enough is followed by one more count, for all that wait for it', async (t) => {
  const counts = new RunningCounts();
  const { started, start } = deferred();
  const first = counts.share('key', never, () => false, start);
  const later = [2, 2, 1].map((asOfMs) => counts.share('key', never, (found) => (found.asOfMs ?? 0) >= asOfMs, start));
  t.is(started.length, 1);
  started[0]?.end(count(1));
  t.deepEqual(await first, { ...count(1), isShared: false });
  t.deepEqual(await later[2], { ...count(1), isShared: true });
  t.is(started.length, 2);
  started[1]?.end(count(2));
  t.deepEqual(
    (await Promise.all(later.slice(0, 2))).map(({ rows, isShared }) => [rows, isShared]),
    [
      [2, false],
      [2, true],
    ],
  );
});

test('a count ends when the last request that waits for it has gone, and no request joins it any more', async (t) => {
  const counts = new RunningCounts();
  const { started, start } = deferred();
  const clients = [new AbortController(), new AbortController()];
  const waiting = clients.map(({ signal }) => counts.share('key', signal, () => true, start));
  clients[0]?.abort(new Error('gone'));
  t.false(started[0]?.signal.aborted);
  clients[1]?.abort(new Error('gone'));
  t.true(started[0]?.signal.aborted);
  const next = counts.share('key', never, () => true, start);
  t.is(started.length, 2);
  for (const each of waiting) await t.throwsAsync(each, { message: 'gone' });
  started[1]?.end(count(7));
  t.is((await next).rows, 7);
});

test('a failed count fails all that wait for it, and the next request counts again', async (t) => {
  const counts = new RunningCounts();
  const { started, start } = deferred();
  const waiting = [1, 2].map(() => counts.share('key', never, () => true, start));
  started[0]?.fail(new Error('time'));
  for (const each of waiting) await t.throwsAsync(each, { message: 'time' });
  const next = counts.share('key', never, () => true, start);
  started[1]?.end(count(3));
  t.is((await next).rows, 3);
});

test('a request that is gone already starts nothing that goes on', async (t) => {
  const counts = new RunningCounts();
  const { started, start } = deferred();
  await t.throwsAsync(
    counts.share('key', AbortSignal.abort(new Error('gone')), () => true, start),
    { message: 'gone' },
  );
  t.true(started[0]?.signal.aborted ?? true);
});
