import test from 'ava';
import { valuesOfComposite } from '../../src/db/composite.js';

test('the text form of a row becomes its values: doubled quotes and backslashes, empty texts and NULL', (t) => {
  const texts: readonly (readonly [string, ...(string | null)[]])[] = [
    ['(1,t,2026-01-31)', '1', 't', '2026-01-31'],
    ['(,"",)', null, '', null],
    ['()', null],
    ['("a ""b"" \\\\ (c, d)","""",""",""")', 'a "b" \\ (c, d)', '"', '","'],
    ['("\\\\""","2026-03-14 09:26:53.5+00",NULL)', '\\"', '2026-03-14 09:26:53.5+00', 'NULL'],
  ];
  for (const [text, ...values] of texts) t.deepEqual(valuesOfComposite(text), values, text);
  t.throws(() => valuesOfComposite('(1,"a'), { instanceOf: SyntaxError });
});
