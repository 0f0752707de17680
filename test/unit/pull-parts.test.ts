import test from 'ava';
import fc from 'fast-check';
import { changeFormats } from '../../pull/change-formats.js';
import { retryAfterMs } from '../../pull/client.js';
import { progressBar } from '../../pull/display.js';
import { HashSet } from '../../pull/hash-set.js';
import { elements, member, members } from '../../pull/json-text.js';

test('parts of any JSON text stand in it as JSON.parse reads them', (t) => {
  const spaced = fc.constantFrom(undefined, 1, '\t');
  fc.assert(
    fc.property(fc.array(fc.jsonValue()), fc.dictionary(fc.string(), fc.jsonValue()), spaced, (list, object, space) => {
      const text = JSON.stringify(list, null, space);
      t.deepEqual(
        [...elements(text)].map((each) => JSON.parse(each) as unknown),
        JSON.parse(text),
      );
      const ofObject = JSON.stringify(object, null, space);
      const read = [...members(ofObject)].map(([name, value]) => [name, JSON.parse(value) as unknown] as const);
      t.deepEqual(JSON.stringify(Object.fromEntries(read)), JSON.stringify(JSON.parse(ofObject)));
    }),
  );
  t.is(member(String.raw`{"a\"b\\":{"x":"]}"},"n":12345678901234567890.10}`, 'n'), '12345678901234567890.10');
  t.is(member('{"a":1}', 'b'), undefined);
});

test('a set of hashes has what a Set has, through growth and deletions', (t) => {
  // Few low words, so that many hashes search for the same slot.
  const hash = fc.tuple(fc.integer({ min: 1, max: 400 }), fc.constantFrom(0, 1, 2, 1022, 1023, 0xffff_ffff));
  const change = fc.tuple(fc.boolean(), hash);
  fc.assert(
    fc.property(fc.array(change, { minLength: 200, maxLength: 3000, size: 'max' }), (changes) => {
      const [hashes, model] = [new HashSet(), new Set<string>()];
      for (const [isAdded, [high, low]] of changes) {
        const key = `${high} ${low}`;
        const expected = isAdded ? !model.has(key) : model.has(key);
        if ((isAdded ? hashes.add(high, low) : hashes.delete(high, low)) !== expected) return false;
        if (isAdded) model.add(key);
        else model.delete(key);
      }
      return true;
    }),
    { numRuns: 50 },
  );
  t.pass();
});

test('CSV quotes every text, leaves null empty, and has objects and arrays as JSON and numbers digit by digit', (t) => {
  const columns = ['nummer', 'id', 'tekst', 'bedrag', 'delen', 'leeg', 'gone'];
  const record =
    '{"id":"a,1","nummer":null,"tekst":"say \\"hi\\"\\r\\nthere","bedrag":12345678901234567.10,"delen":[{"x":"é"}],"leeg":""}';
  t.is(changeFormats.csv.header(columns), '"seq","change","id","nummer","tekst","bedrag","delen","leeg","gone"\r\n');
  t.is(
    changeFormats.csv.upsert(7, 'a,1', record, columns),
    '7,"upsert","a,1",,"say ""hi""\r\nthere",12345678901234567.10,"[{""x"":""é""}]","",\r\n',
  );
  t.is(changeFormats.csv.delete(8, 'a,1', columns), '8,"delete","a,1",,,,,,\r\n');
});

test('a change in ND-JSON is one line with the record as it came', (t) => {
  t.is(
    changeFormats.ndjson.upsert(7, 'a"1', '{"id":"a\\"1",\n "n":1.10}'),
    '{"seq":7,"change":"upsert","id":"a\\"1","record":{"id":"a\\"1",  "n":1.10}}\n',
  );
  t.is(changeFormats.ndjson.delete(8, 'b'), '{"seq":8,"change":"delete","id":"b"}\n');
});

test('Retry-After is seconds or a date, at most an hour', (t) => {
  const nowMs = Date.parse('2026-01-01T00:00:00Z');
  t.is(retryAfterMs('7', nowMs), 7000);
  t.is(retryAfterMs('Thu, 01 Jan 2026 00:00:09 GMT', nowMs), 9000);
  t.is(retryAfterMs('99999999999', nowMs), 3_600_000);
  for (const none of [null, '0', 'soon', 'Wed, 31 Dec 2025 00:00:00 GMT']) t.is(retryAfterMs(none, nowMs), null);
});

test('the progress bar has rows, rows per second and the pages that are left when they are known', (t) => {
  const progress = { resource: 'werkbonnen', pages: 30, records: 30_000, pagesLeft: 10 };
  t.is(progressBar(progress, 4), 'werkbonnen [##################------] 75%  30,000 rows  7,500 rows/s  10 pages left');
  t.is(progressBar({ ...progress, pagesLeft: null }, 4), 'werkbonnen  30,000 rows  7,500 rows/s');
});
