import test from 'ava';
import { ChunkTurns } from '../../src/flow/chunk-turns.js';

const workspace = 'a';
const chunk = { takesTurns: true, isContinuation: true };
const first = { takesTurns: true };
const other = {};

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
  turns.short.enter(null, other)(); // a token look-up is for no workspace
  turns.long.enter(workspace, chunk);
  t.true(turns.long.admits(chunk));
});

test('while short statements come a chunk waits for the end of the chunk before it, and other long statements do not', (t) => {
  const { turns } = made();
  turns.short.enter(workspace, other)();
  const leave = turns.long.enter(workspace, chunk);
  t.false(turns.long.admits(chunk));
  t.true(turns.long.admits(other));
  t.true(turns.short.admits(other));
  leave();
  t.true(turns.long.admits(chunk));
});

test('a chunk waits until the short statements that were sent during the chunk before it are answered', (t) => {
  const { turns } = made();
  const leave = turns.long.enter(workspace, chunk);
  const answers = [turns.short.enter(workspace, other), turns.short.enter(workspace, other)];
  leave();
  turns.short.enter(workspace, other); // sent later
  for (const answered of answers) {
    t.false(turns.long.admits(chunk));
    answered();
  }
  t.true(turns.long.admits(chunk));
});

test('a slow chunk and a slow short statement keep the next chunk waiting for a moment only', async (t) => {
  const { turns, nextTurn } = made();
  turns.short.enter(workspace, other);
  const leave = turns.long.enter(workspace, chunk);
  await nextTurn();
  t.true(turns.long.admits(chunk));
  const leaveSecond = turns.long.enter(workspace, chunk);
  leave();
  t.false(turns.long.admits(chunk));
  leaveSecond();
  t.false(turns.long.admits(chunk), 'the short statement is not answered');
  await nextTurn();
  t.true(turns.long.admits(chunk));
});

test('as many chunks run at a time as the operator allows, and the next waits for the short statements after the end of any', (t) => {
  const { turns } = made(2);
  const answered = turns.short.enter(workspace, other);
  const leave = turns.long.enter(workspace, chunk);
  t.true(turns.long.admits(chunk));
  turns.long.enter(workspace, chunk);
  t.false(turns.long.admits(chunk));
  leave();
  t.false(turns.long.admits(chunk));
  answered();
  t.true(turns.long.admits(chunk));
});

test('a page begins beside the chunks that workspace, one at a time, and no other chunk begins until its first rows are read', (t) => {
  const { turns } = made();
  turns.short.enter(workspace, other)();
  const leave = turns.long.enter(workspace, chunk);
  t.true(turns.long.admits(first));
  const leaveFirst = turns.long.enter(workspace, first);
  t.false(turns.long.admits(first));
  leave();
  t.true(turns.long.admits(first));
  t.false(turns.long.admits(chunk));
  leaveFirst();
  t.true(turns.long.admits(chunk));
});

test('two slow chunks keep a page that begins waiting for a moment only', async (t) => {
  const { turns, nextTurn } = made();
  turns.short.enter(workspace, other)();
  turns.long.enter(workspace, chunk);
  turns.long.enter(workspace, first);
  t.false(turns.long.admits(first));
  await nextTurn();
  t.true(turns.long.admits(first));
});
