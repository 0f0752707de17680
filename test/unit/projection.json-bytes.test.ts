import test from 'ava';
import fc from 'fast-check';
import { wordsOf } from '../../src/db/row.js';
import { constantJson, JsonBytes } from '../../src/projection/json-bytes.js';

const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc
    .array(fc.constantFrom('a', '"', '\\', '\n', '\u001f', ' ', '\u007f', 'é', '𝄞', 'abcd'), { maxLength: 20 })
    .map((some) => some.join('')),
);
const around = fc.string({ maxLength: 5, unit: 'binary' });

test('a text is the same JSON string by bytes and by words, wherever it stands', (t) => {
  fc.assert(
    fc.property(text, around, around, (value, before, behind) => {
      const bytes = Buffer.from(`${before}${value}${behind}`);
      const [start, size] = [Buffer.byteLength(before), Buffer.byteLength(value)];
      const json = new JsonBytes(1);
      json.stringPart({ bytes, words: wordsOf(bytes) }, start, start + size);
      json.comma();
      json.string(bytes, start, start + size);
      t.is(json.toString(), `${JSON.stringify(value)},${JSON.stringify(value)}`);
    }),
    { numRuns: 3000 },
  );
});

test('bytes and constants of any length are copied as they are', (t) => {
  fc.assert(
    fc.property(fc.string({ maxLength: 300 }), around, around, (value, before, behind) => {
      const bytes = Buffer.from(`${before}${value}${behind}`);
      const [start, size] = [Buffer.byteLength(before), Buffer.byteLength(value)];
      const json = new JsonBytes(1);
      json.part({ bytes, words: wordsOf(bytes) }, start, start + size);
      json.constant(constantJson(value));
      json.quoted({ bytes, words: wordsOf(bytes) }, start, start + size);
      t.is(json.toString(), `${value}${value}"${value}"`);
    }),
  );
});

test('a moment has milliseconds, cut or filled up', (t) => {
  for (const [fraction, milliseconds] of [
    ['', '000'],
    ['.5', '500'],
    ['.123456', '123'],
    ['.999999', '999'],
  ]) {
    const bytes = Buffer.from(`x2026-03-29 01:59:59${fraction}+00`);
    const json = new JsonBytes(1);
    json.instant({ bytes, words: wordsOf(bytes) }, 1, bytes.length - 3);
    t.is(json.toString(), `"2026-03-29T01:59:59.${milliseconds}Z"`);
  }
});
