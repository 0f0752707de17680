import test from 'ava';
import { chooseEncoding } from '../../src/http/encodings.js';
import { parseEntityTags } from '../../src/read/etag.js';

// Headers that a client writes as it likes: with time in the square of its length, one of 15 KB would take 200 ms, and these minutes.

const many = (text: string): string => text.repeat(1_000_000 / text.length);

const cases: Record<string, () => unknown> = {
  'Accept-Encoding with semicolons': () => chooseEncoding(`gzip${many(';')}`, [{ name: 'gzip' }]),
  'Accept-Encoding with weights': () => chooseEncoding(`gzip${many(';q=')}`, [{ name: 'gzip' }]),
  'Accept-Encoding with blanks': () => chooseEncoding(`gzip${many(' ')};q=1`, [{ name: 'gzip' }]),
  'If-None-Match with blanks': () => parseEntityTags(`"a",${many(' ')}x`),
  'If-None-Match with blanks behind a tag': () => parseEntityTags(`"a"${many(' ')}x`),
  'If-None-Match with a tag that does not end': () => parseEntityTags(`W/"${many('a')}`),
};

for (const [what, parse] of Object.entries(cases))
  test(`${what}: a million characters are taken apart in time in proportion`, (t) => {
    const startedMs = performance.now();
    parse();
    t.true(performance.now() - startedMs < 5000);
  });

test('the last weight of an encoding counts, and other parameters do not', (t) => {
  const offered = [{ name: 'br' }, { name: 'gzip' }];
  for (const [header, chosen] of [
    ['gzip;q=0.5;x=1', 'gzip'],
    ['gzip;x=1;q=0', undefined],
    ['br;q=0.1, gzip;x=2;q=0.9', 'gzip'],
    ['gzip;q=a', undefined],
  ] as const)
    t.is(chooseEncoding(header, offered)?.name, chosen, header);
});
