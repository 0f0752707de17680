import { randomBytes } from 'node:crypto';
import { inspect } from 'node:util';
import test from 'ava';
import fc from 'fast-check';
import { encodings } from '../../src/resource/projection/encodings.js';
import { parseKeyring } from '../../src/resource/projection/keyring.js';

const key = () => randomBytes(32).toString('base64');

test('a keyring holds every key of the setting under its id', (t) => {
  const keys = { k1: key(), 'k-2.b_3': key() };
  const keyring = parseKeyring(JSON.stringify(keys));
  t.deepEqual(keyring.ids, ['k1', 'k-2.b_3']);
  t.is(keyring.get('k1')?.export().toString('base64'), keys.k1);
  t.is(keyring.get('k3'), undefined);
  t.is(keyring.get('toString'), undefined);
});

test('an empty keyring is a keyring, for a workspace app that encrypts nothing', (t) => {
  t.deepEqual(parseKeyring('{}').ids, []);
});

test('a keyring prints no key when it is inspected or serialized', (t) => {
  const k1 = key();
  const keyring = parseKeyring(JSON.stringify({ k1 }));
  const printed = inspect(keyring, { depth: 9 }) + JSON.stringify(keyring) + inspect(keyring.get('k1'), { depth: 9 });
  t.false(printed.includes(k1));
});

test('every fault of the keyring is named at once, and no key is in the message', (t) => {
  const short = randomBytes(16).toString('base64');
  const long = randomBytes(33).toString('base64');
  const misplaced = key();
  const setting = { good: key(), short, long, [misplaced]: 'k1', 'a:b': key(), number: 7, gap: ` ${key()}`, '': key() };
  const { message } = t.throws(() => parseKeyring(JSON.stringify(setting)));
  for (const id of ['short', 'long', 'number', 'gap']) t.regex(message, new RegExp(`\\("${id}"\\): the key must be`));
  for (const position of [4, 5, 8]) t.regex(message, new RegExp(`entry ${position}: the key id must be`));
  t.notRegex(message, /good/);
  const secrets = [misplaced, ...Object.values(setting).filter((value) => `${value}`.length > 20)];
  for (const secret of secrets) t.false(message.includes(`${secret}`.trim().slice(0, 12)));
});

test('a setting that is not JSON, or not an object, is refused without being quoted', (t) => {
  const secret = key();
  t.is(t.throws(() => parseKeyring(secret)).message, 'The keyring is not usable: it is not JSON.');
  for (const json of ['null', '7', '[]', `["${secret}"]`, `"${secret}"`]) {
    const told = t.throws(() => parseKeyring(json)).message;
    t.is(told, 'The keyring is not usable: it is not a JSON object of key id to key.');
  }
});

/** Decodes by Node's lenient decoder: canonical is what encodes back to itself. */
function expected(text: string): Buffer | null {
  const bytes = Buffer.from(text, 'base64');
  return bytes.toString('base64') === text ? bytes : null;
}

function decoded(text: string): Buffer | null {
  const into = Buffer.alloc(text.length + 8);
  const from = Buffer.from(`é:${text}A`);
  const length = encodings.base64.decode(from, 3, from.length - 1, into, 3);
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
