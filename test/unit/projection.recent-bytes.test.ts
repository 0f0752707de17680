import test from 'ava';
import fc from 'fast-check';
import { wordsOf } from '../../src/db/row.js';
import { RecentBytes } from '../../src/projection/redact.js';

const places = 8;
const text = fc.oneof(fc.string({ maxLength: 5 }), fc.string({ maxLength: 40, unit: 'binary' }));

test('what is known of a text is found by all of its bytes, or not at all', (t) => {
  fc.assert(
    fc.property(fc.array(text, { minLength: 1, maxLength: 60 }), fc.string({ maxLength: 5 }), (texts, behind) => {
      const recent = new RecentBytes<string>(Math.log2(places));
      for (const each of [...texts, ...texts]) {
        const bytes = Buffer.from(`${each}${behind}`);
        const source = { bytes, words: wordsOf(bytes) };
        const end = Buffer.byteLength(each);
        const found = recent.find(source, 0, end);
        if (found !== undefined) t.is(found, each);
        else recent.keep(source, 0, end, each);
      }
    }),
    { numRuns: 1000 },
  );
});

test('a text is found again until another takes its place; a long one is not kept', (t) => {
  const recent = new RecentBytes<number>(4);
  const known = (value: string): number | undefined => {
    const bytes = Buffer.from(`${value}...`);
    const source = { bytes, words: wordsOf(bytes) };
    const found = recent.find(source, 0, value.length);
    recent.keep(source, 0, value.length, value.length);
    return found;
  };
  for (const [value, second] of [
    ['gepland', 7],
    ['', 0],
    ['x'.repeat(32), 32],
    ['x'.repeat(33), undefined],
  ] as const) {
    t.is(known(value), undefined);
    t.is(known(value), second);
  }
});
