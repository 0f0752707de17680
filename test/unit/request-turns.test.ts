import type { IncomingMessage } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import test from 'ava';
import { RequestTurns } from '../../src/flow/request-turns.js';

const requestOf = (token: string): IncomingMessage =>
  ({
    headers: token === '' ? {} : { authorization: `Bearer ${token}` },
    socket: { remoteAddress: '192.0.2.1' },
  }) as IncomingMessage;

/** Begins the requests, named by their token and a number, and returns those that begin in each turn of the event loop. */
async function turnsOf(tokens: readonly string[]): Promise<string[][]> {
  const turns = new RequestTurns();
  const begun: string[][] = [[]];
  for (const [i, token] of tokens.entries())
    turns.begin(requestOf(token), () => void begun.at(-1)?.push(`${token}${i}`));
  while (begun.flat().length < tokens.length) {
    begun.push([]);
    await setImmediate();
  }
  return begun;
}

test('requests of one token begin at once, however many come', async (t) => {
  const tokens = Array.from({ length: 20 }, () => 'a');
  t.deepEqual(await turnsOf(tokens), [tokens.map((token, i) => token + i)]);
});

test('while several tokens are used four requests begin in a turn of the event loop, one of each token after the other', async (t) => {
  t.deepEqual(await turnsOf(['b', ...'aaaaaaaaa', 'b', 'c']), [
    ['b0', 'a1', 'a2', 'a3'],
    ['a4', 'b10', 'c11', 'a5'],
    ['a6', 'a7', 'a8', 'a9'],
  ]);
});

test('requests without a token, or with a header longer than any token, take turns by their address', async (t) => {
  const long = 'x'.repeat(500);
  const turns = await turnsOf(['b', 'b', 'b', 'b', '', long, '', long, 'b']);
  t.deepEqual(
    turns.map((begun) => begun.map((name) => name.replace(long, 'long'))),
    [['b0', 'b1', 'b2', 'b3'], ['4', 'b8', 'long5', '6'], ['long7']],
  );
});
