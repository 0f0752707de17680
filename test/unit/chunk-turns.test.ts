import test from 'ava';
import { ChunkTurns } from '../../src/db/chunk-turns.js';
import type { Run } from '../../src/db/connection.js';
import type { WorkspaceId } from '../../src/db/statement.js';

const run: Run = { statement: { name: '', text: '', parameters: [] }, workspace: 'a' as WorkspaceId, values: {} };
const chunk = { waitMs: 0, takesTurns: true, isContinuation: true };
const first = { waitMs: 0, takesTurns: true };
const other = { waitMs: 0 };

/** Turns, and the next moment at which a chunk may begin. */
function made(atATime = 1): { turns: ChunkTurns; nextTurn: () => Promise<void> } {
  let onTurn = (): void => undefined;
  const nextTurn = (): Promise<void> =>
    new Promise((resolve) => {
      onTurn = resolve;
      setTimeout(() => undefined, 1000); // the timers of turns keep no process alive
    });
  return { turns: new ChunkTurns(atATime, () => onTurn()), nextTurn };
}

test('without short statements chunks run side by side', (t) => {
  const { turns } = made();
  turns.short.enter({ ...run, workspace: null }, other)(); // a token look-up is for no workspace
  turns.long.enter(run, chunk);
  t.true(turns.long.admits(chunk));
});

test('while short statements come a chunk waits for the end of the chunk before it, and other long statements do not', (t) => {
  const { turns } = made();
  turns.short.enter(run, other)();
  const leave = turns.long.enter(run, chunk);
  t.false(turns.long.admits(chunk));
  t.true(turns.long.admits(other));
  t.true(turns.short.admits(other));
  leave();
  t.true(turns.long.admits(chunk));
});

test('a chunk waits until the short statements that were sent during the chunk before it are answered', (t) => {
  const { turns } = made();
  const leave = turns.long.enter(run, chunk);
  const answers = [turns.short.enter(run, other), turns.short.enter(run, other)];
  leave();
  turns.short.enter(run, other); // sent later
  for (const answered of answers) {
    t.false(turns.long.admits(chunk));
    answered();
  }
  t.true(turns.long.admits(chunk));
});

test('a slow chunk and a slow short statement keep the next chunk waiting for a moment only', async (t) => {
  const { turns, nextTurn } = made();
  turns.short.enter(run, other);
  const leave = turns.long.enter(run, chunk);
  await nextTurn();
  t.true(turns.long.admits(chunk));
  const leaveSecond = turns.long.enter(run, chunk);
  leave();
  t.false(turns.long.admits(chunk));
  leaveSecond();
  t.false(turns.long.admits(chunk), 'the short statement is not answered');
  await nextTurn();
  t.true(turns.long.admits(chunk));
});

test('as many chunks run at a time as the operator allows, and the next waits for the short statements after the end of any', (t) => {
  const { turns } = made(2);
  const answered = turns.short.enter(run, other);
  const leave = turns.long.enter(run, chunk);
  t.true(turns.long.admits(chunk));
  turns.long.enter(run, chunk);
  t.false(turns.long.admits(chunk));
  leave();
  t.false(turns.long.admits(chunk));
  answered();
  t.true(turns.long.admits(chunk));
});

test('a page begins beside the chunks that run, one at a time, and no other chunk begins until its first rows are read', (t) => {
  const { turns } = made();
  turns.short.enter(run, other)();
  const leave = turns.long.enter(run, chunk);
  t.true(turns.long.admits(first));
  const leaveFirst = turns.long.enter(run, first);
  t.false(turns.long.admits(first));
  leave();
  t.true(turns.long.admits(first));
  t.false(turns.long.admits(chunk));
  leaveFirst();
  t.true(turns.long.admits(chunk));
});

test('two slow chunks keep a page that begins waiting for a moment only', async (t) => {
  const { turns, nextTurn } = made();
  turns.short.enter(run, other)();
  turns.long.enter(run, chunk);
  turns.long.enter(run, first);
  t.false(turns.long.admits(first));
  await nextTurn();
  t.true(turns.long.admits(first));
});
