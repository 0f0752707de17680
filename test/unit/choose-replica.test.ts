import test from 'ava';
import { type Candidate, chooseReplica, type ReplicaRequirement } from '../../src/read/routing.js';

interface Named extends Candidate {
  readonly name: string;
}

function replica(name: string, inFlight = 0, state: object = {}): Named {
  return {
    name,
    inFlight,
    mayRead: (view) => view !== 'unchecked',
    state: { healthy: true, replayed: 5n, asOfMs: 1000, ...state } as Candidate['state'],
  };
}

/** How often each is chosen of 3,000 times. */
function chosen(replicas: readonly Named[], requirement: ReplicaRequirement = {}): Record<string, number> {
  const counts: Record<string, number> = {};
  for (let i = 0; i < 3000; i++) {
    const name = chooseReplica(replicas, requirement)?.name ?? 'none';
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}

test('equally loaded replicas are chosen equally often', (t) => {
  const counts = chosen([replica('a'), replica('b'), replica('c')]);
  for (const name of ['a', 'b', 'c']) t.true(Math.abs((counts[name] ?? 0) - 1000) < 200, JSON.stringify(counts));
});

test('the replica with the fewest statements in flight is chosen, also before that of the page', (t) => {
  const busy = replica('busy', 2);
  t.deepEqual(chosen([busy, replica('calm', 1)], { ofPage: busy }), { calm: 3000 });
});

test('a page continues on its replica while the others are as busy', (t) => {
  const own = replica('own');
  t.deepEqual(chosen([replica('a'), own, replica('b')], { ofPage: own }), { own: 3000 });
});

test('a replica that failed the read is chosen when no other is left', (t) => {
  const failed = replica('failed');
  const avoid = new Set<Candidate>([failed]);
  t.deepEqual(chosen([failed, replica('busy', 50)], { avoid, ofPage: failed }), { busy: 3000 });
  t.deepEqual(chosen([failed], { avoid }), { failed: 3000 });
});

test('a replica that is not healthy, behind a write or behind the page is not chosen', (t) => {
  const good = replica('good', 9);
  const late = replica('late', 0, { asOfMs: 999, replayed: 4n });
  t.deepEqual(chosen([replica('out', 0, { healthy: false }), late, good], { replayed: 5n }), { good: 3000 });
  t.deepEqual(chosen([late, good], { asOfMs: 1000 }), { good: 3000 });
  t.is(chooseReplica([late], { asOfMs: 1000 }), null);
});
