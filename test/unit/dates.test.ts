import test from 'ava';
import { isEarlier, isInstant, isPrintedDate, isPrintedInstant } from '../../src/definition/field-types.js';

// The forms of PostgreSQL 8.5.2 ("Date/Time Output", ISO) and the limits of its Table 8.9; other forms would fail in a statement.

const days = ['2026-03-29', '0001-01-01', '9999-12-31', '20226-01-05', '12000-02-29', '0044-03-15 BC', '0005-02-29 BC'];
const noDays = [
  '',
  'x',
  '2026-02-30',
  '0000-01-01',
  '02026-01-01',
  '12001-02-29',
  '0004-02-29 BC',
  '4714-01-01 BC',
  '+2026-01-01',
  'now',
];

test('every date that PostgreSQL prints is taken for a date of a cursor, and no other text', (t) => {
  for (const text of [...days, '5874897-12-31', 'infinity', '-infinity']) t.true(isPrintedDate(text), text);
  for (const text of [...noDays, '5874898-01-01', '2026-03-29 00:00:00+00']) t.false(isPrintedDate(text), text);
});

test('every moment that PostgreSQL prints is taken for a moment of a cursor, and no other text', (t) => {
  const at = (day: string): string => day.replace(/^([\d-]+)/, '$1 23:59:59.000001+00');
  for (const text of [...days.map(at), '294276-12-31 00:00:00+00', 'infinity', '-infinity'])
    t.true(isPrintedInstant(text), text);
  for (const text of [
    ...noDays.map(at),
    '294277-01-01 00:00:00+00',
    '2026-03-29',
    '2026-03-29 24:00:00+00',
    '2026-03-29 00:00:00+02',
  ])
    t.false(isPrintedInstant(text), text);
});

test('a date-time of a filter has up to nine digits of a second, as some clients always send', (t) => {
  for (const text of ['2026-03-14T09:26:53.0000000Z', '2026-03-14T09:26:53.123456789+01:00', '2026-03-14T09:26:53Z'])
    t.true(isInstant(text), text);
  t.false(isInstant('2026-03-14T09:26:53.Z'));
});

test('dates and moments that PostgreSQL prints have the order of their values', (t) => {
  const inOrder = [
    '-infinity',
    '4713-11-24 BC',
    '0044-03-15 BC',
    '0044-12-31 BC',
    '0001-12-31 BC',
    '0001-01-01',
  ].concat(['2026-03-29', '2026-03-30', '9999-12-31', '10000-01-01', '20226-01-05', '5874897-12-31', 'infinity']);
  const seconds = ['59+00', '59.000001+00', '59.1+00', '59.12+00'].map((second) => `2026-03-29 23:59:${second}`);
  const moments = ['-infinity', '0044-03-15 23:59:59+00 BC', ...seconds, '2026-03-30 00:00:00+00', 'infinity'];
  for (const texts of [inOrder, moments])
    for (const [i, a] of texts.entries())
      for (const [j, b] of texts.entries()) t.is(isEarlier(a, b), i < j, `${a} before ${b}`);
});
