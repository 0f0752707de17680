import test from 'ava';
import fc from 'fast-check';
import type { FieldType } from '../../src/definition/field-types.js';
import { decodeCursor, encodeParts, isCertainlyWithin } from '../../src/read/page-ends.js';
import { decodePlace, decodeToken } from '../../src/sync/pass.js';

const order = (...types: FieldType[]) => types.map((type, i) => ({ column: `c${i}`, type }));

test('of keys of dates, moments, numbers and UUIDs the gateway knows which is within which, in both directions', (t) => {
  const pairs: [FieldType, string, string][] = [
    ['date', '9999-12-31', '10000-01-01'],
    ['timestamp', '2026-03-29 01:59:59+00', '2026-03-29 01:59:59.5+00'],
    ['bigint', '9', '10'],
    ['integer', '-10', '-9'],
    ['uuid', '0fffffff-0000-4000-8000-000000000000', 'a0000000-0000-4000-8000-000000000000'],
  ];
  for (const [type, low, high] of pairs) {
    t.true(isCertainlyWithin([low, 'b'], [high, 'a'], order(type, 'text'), 'asc'), type);
    t.false(isCertainlyWithin([high, 'a'], [low, 'b'], order(type, 'text'), 'asc'), type);
    t.true(isCertainlyWithin([high, 'a'], [low, 'b'], order(type, 'text'), 'desc'), type);
    t.false(isCertainlyWithin([low, 'b'], [high, 'a'], order(type, 'text'), 'desc'), type);
  }
});

test('of two different texts it does not know it; a key is within itself', (t) => {
  const types = order('date', 'text');
  t.false(isCertainlyWithin(['2026-01-01', 'a'], ['2026-01-01', 'b'], types, 'asc'));
  t.false(isCertainlyWithin(['2026-01-01', 'b'], ['2026-01-01', 'a'], types, 'asc'));
  t.true(isCertainlyWithin(['2026-01-01', 'a'], ['2026-01-01', 'a'], types, 'asc'));
});

test('every number in a cursor or token, whatever was forged, is one that the statements can take', (t) => {
  const digits = fc.oneof(
    fc.bigInt({ min: 0n, max: 10n ** 22n }).map(String),
    fc.constantFrom('', '0', '-1', '1e3', '999999999999999', '9'.repeat(18), '9'.repeat(19)),
    fc.string({ maxLength: 20 }),
  );
  const isInstant = (ms: number | null): boolean => ms === null || /^\d{4}-/.test(new Date(ms).toISOString());
  const isBigint = (value: bigint): boolean => value >= 0n && value < 2n ** 63n;
  const forged = fc.tuple(digits, digits, digits, digits, digits, digits, digits, fc.constantFrom('0', '1', '7', 'x'));
  fc.assert(
    fc.property(forged, ([system, lsn, xmin, replayed, asOf, sinceXmin, sinceReplayed, section]) => {
      const position = ['1', system, '0000000A', lsn, xmin, replayed];
      const token = decodeToken('c', encodeParts('c', position));
      const all = [...position, asOf, sinceXmin, sinceReplayed, section];
      const place = decodePlace('c', encodeParts('c', all), () => [order('date', 'text')]);
      const cursor = decodeCursor('c', encodeParts('c', [replayed]), order('date', 'text'));
      t.true(cursor === undefined || isInstant(cursor.asOfMs));
      for (const each of [token, place?.pass])
        t.true(each === undefined || (isInstant(each.replayedAtMs) && isBigint(each.xmin) && each.lsn < 2n ** 64n));
      t.true(place === undefined || isInstant(place.asOfMs));
      t.true(!place?.since || (isInstant(place.since.replayedAtMs) && isBigint(place.since.xmin)));
    }),
    { numRuns: 2000 },
  );
});
