import test from 'ava';
import type { Replica } from '../../src/db/replica.js';
import { gatesOf } from '../../src/flow/gates.js';
import { newToken } from '../../src/http/token-format.js';
import { Tokens } from '../../src/http/tokens.js';

const address = '192.0.2.1';
const minuteMs = 60_000;

/** Tokens over a replica that finds each of them, for an address with too many failures. */
function tokensOf() {
  const run = async (_: unknown, __: unknown, onRow: (row: unknown) => void): Promise<void> => {
    onRow({ texts: () => ['id', 'workspace', 'read:klanten', null, 'f'] });
  };
  const state = { healthy: true, replayed: 0n, asOfMs: null };
  return new Tokens({
    replicas: [{ state, inFlight: 0, short: { run } } as unknown as Replica],
    observe: () => undefined,
    tokenCacheMax: 100,
    tokenCacheMs: 5000,
    gate: gatesOf({ largePagesPerToken: 1, largePagesPerWorkspace: 1, queueWaitMs: 1000 }, () => undefined)
      .unknownTokens,
    queueWaitMs: 1000,
    isExhausted: async () => true,
    noteUse: () => undefined,
  });
}

/** Moves the clock on that never steps, by which caches forget. */
let movedMs = 0;
const now = performance.now.bind(performance);
performance.now = () => now() + movedMs;

test.serial(
  'a token in steady use stays known for ten minutes from its last look-up, not from its first',
  async (t) => {
    const tokens = tokensOf();
    const [token, other] = [newToken(), newToken()];
    t.true('tokenId' in (await tokens.find(token, address)));
    movedMs += 4000;
    t.not(tokens.cached(token), null, 'which renews the result');
    await new Promise((resolve) => setTimeout(resolve, 20));
    movedMs += 10 * minuteMs - 2000;
    t.is(tokens.cached(token), null);
    void tokens.find(other, address); // takes the look-up that the address has now
    t.true('tokenId' in (await tokens.find(token, address)));
  },
);

test.serial('a token that was not looked up for ten minutes shares the look-ups of its address', async (t) => {
  const tokens = tokensOf();
  const [token, other] = [newToken(), newToken()];
  t.true('tokenId' in (await tokens.find(token, address)));
  movedMs += 10 * minuteMs + 1000;
  void tokens.find(other, address);
  t.deepEqual(await tokens.find(token, address), { failureKeys: [address] });
});
