import test from 'ava';
import fc from 'fast-check';
import { decodeBase64 } from '../../src/projection/base64.js';

/** The expected result of the decoder, by way of Node's lenient one: canonical is what encodes back to itself. */
function expected(text: string): Buffer | null {
  const bytes = Buffer.from(text, 'base64');
  return bytes.toString('base64') === text ? bytes : null;
}

function decoded(text: string): Buffer | null {
  const into = Buffer.alloc(text.length + 8);
  const from = Buffer.from(`é:${text}A`);
  const length = decodeBase64(from, 3, from.length - 1, into, 3);
  return length < 0 ? null : into.subarray(3, 3 + length);
}

test('canonical base64 of any bytes is decoded', (t) => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      t.deepEqual(decoded(Buffer.from(bytes).toString('base64')), Buffer.from(bytes));
    }),
  );
});

test('every last group of four characters is judged as node judges it', (t) => {
  const characters = ['A', 'B', 'Q', 'g', 'w', '/', '+', '-', '_', '=', ' ', '\n', '\u00c1', '\u0141', '\ud83d'];
  for (const a of characters)
    for (const b of characters)
      for (const c of characters)
        for (const d of characters)
          for (const text of [a + b + c + d, `AAAA${a}${b}${c}${d}`]) {
            const [want, got] = [expected(text), decoded(text)];
            if (want === null ? got !== null : got === null || !got.equals(want)) t.fail(JSON.stringify(text));
          }
  t.pass();
});

test('a changed character anywhere is judged as node judges it', (t) => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1, maxLength: 40 }), fc.nat(), fc.nat(0xffff), (bytes, place, code) => {
      const text = Buffer.from(bytes).toString('base64');
      const at = place % text.length;
      const changed = text.slice(0, at) + String.fromCharCode(code < 0x8000 ? code & 0xff : code) + text.slice(at + 1);
      t.deepEqual(decoded(changed), expected(changed), JSON.stringify(changed));
    }),
    { numRuns: 2000 },
  );
});
