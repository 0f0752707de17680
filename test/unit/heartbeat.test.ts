import test from 'ava';
import { Heartbeat } from '../../src/postgres/heartbeat.js';

const history = { timeline: '00000001', systemIdentifier: '1' };

function heartbeatOf(...samples: { atMs: number; tickMs?: number; lsn: bigint; insertLsn: bigint }[]): Heartbeat {
  const heartbeat = new Heartbeat(60_000);
  for (const sample of samples) heartbeat.add({ ...history, tickMs: sample.atMs, ...sample });
  return heartbeat;
}

test('a replica is current up to the newest sample whose visible commits it has all replayed', (t) => {
  const heartbeat = heartbeatOf({ atMs: 1000, lsn: 10n, insertLsn: 10n }, { atMs: 1500, lsn: 10n, insertLsn: 20n });
  t.deepEqual(heartbeat.currency(10n), { asOfMs: 1000, lagMs: 0 });
  t.deepEqual(heartbeat.currency(20n), { asOfMs: 1500, lagMs: 0 });
});

test('when the clock is set a minute ahead, no replica lags, and older samples are kept', (t) => {
  const heartbeat = heartbeatOf(
    { atMs: 1000, lsn: 10n, insertLsn: 10n },
    { atMs: 61_500, tickMs: 1500, lsn: 20n, insertLsn: 20n },
  );
  t.deepEqual(heartbeat.currency(10n), { asOfMs: 1000, lagMs: 500 });
});

test('without a position of the primary, lag is not known', (t) => {
  t.deepEqual(heartbeatOf().currency(10n), { asOfMs: null, lagMs: null });
});

test('records that the primary has not flushed make no replica lag', (t) => {
  const heartbeat = heartbeatOf(
    ...Array.from({ length: 40 }, (_, i) => ({ atMs: i * 500, lsn: 10n, insertLsn: i === 0 ? 10n : 20n })),
  );
  t.deepEqual(heartbeat.currency(10n), { asOfMs: 0, lagMs: 0 });
});
