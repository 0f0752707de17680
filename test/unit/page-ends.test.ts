import test from 'ava';
import type { FieldType } from '../../src/definition/field-types.js';
import { isCertainlyWithin } from '../../src/read/page-ends.js';

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
