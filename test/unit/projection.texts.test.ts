import { randomBytes } from 'node:crypto';
import test from 'ava';
import fc from 'fast-check';
import { wordsOf } from '../../src/db/row.js';
import type { Codec } from '../../src/projection/codec.js';
import { decodeBase64 } from '../../src/projection/encodings.js';
import { constantJson, JsonBytes } from '../../src/projection/json-bytes.js';
import { looksStructured, sealedTexts } from '../../src/projection/plain-texts.js';

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

/** Stored values of a codec that must be found, and texts that must not. */
interface Case {
  readonly codec: Codec;
  readonly sealed: readonly string[];
}

const bytes = (count: number): Buffer => randomBytes(count);
const gcm = { cipher: 'aes-256-gcm', layout: ['nonce12', 'data', 'tag16'] } as const;
const smallest = 28; // nonce and tag of an empty text

const cases: Readonly<Record<string, Case>> = {
  'a prefix with a version and a key id': {
    codec: { ...gcm, encoding: 'base64', prefix: 'enc:v2:{keyId}:', legacyPrefix: 'old:{keyId}:' },
    sealed: ['enc:v2:k1:AA==', 'ENC:V2:k1:AA==', 'was enc:v2:k1:AA==', 'enc:v3:k1:AA==', 'old:k1:AA=='],
  },
  'a prefix that is a word': {
    codec: { cipher: 'none', encoding: 'base64', prefix: 'b64:' },
    sealed: ['b64:SmFu', 'B64:SmFu'],
  },
  'AES-GCM in base64': {
    codec: { ...gcm, encoding: 'base64' },
    sealed: [smallest, smallest + 1, 300].flatMap((count) => {
      const value = bytes(count).toString('base64');
      return [value, `(${value})`, value.replaceAll(/(.{38})/g, '$1\r\n')];
    }),
  },
  'AES-GCM with a short tag in base64url': {
    codec: { ...gcm, layout: ['tag12', 'nonce12', 'data'], encoding: 'base64url' },
    sealed: [bytes(24).toString('base64url'), `${bytes(25).toString('base64url')}==`],
  },
  'AES-GCM in hexadecimal': {
    codec: { ...gcm, encoding: 'hex' },
    sealed: [bytes(smallest).toString('hex'), bytes(smallest).toString('hex').toUpperCase()],
  },
  'AES-GCM in a bytea, as PostgreSQL and as programs print it': {
    codec: { ...gcm, encoding: 'bytea' },
    sealed: ['hex', 'base64', 'base64url'].map((form) => bytes(smallest).toString(form as BufferEncoding)),
  },
  'a short prefix': {
    codec: { ...gcm, encoding: 'base64', prefix: '{keyId}:' },
    sealed: [`k1:${bytes(smallest).toString('base64')}`],
  },
  'base64 without a cipher': {
    codec: { cipher: 'none', encoding: 'base64' },
    sealed: ['Jan', 'De Boer', 'Café René', 'Kerkstraat 12, Utrecht'].map((text) =>
      Buffer.from(text).toString('base64'),
    ),
  },
  'hexadecimal without a cipher': {
    codec: { cipher: 'none', encoding: 'hex' },
    sealed: ['Jan', 'Café René'].map((text) => Buffer.from(text).toString('hex')),
  },
  'bytes of a module': {
    codec: { cipher: 'module', encoding: 'base64' },
    sealed: [bytes(12).toString('base64'), bytes(64).toString('base64')],
  },
  'a text of a module': {
    codec: { cipher: 'module', encoding: 'text' },
    sealed: ['wnafxyzpoiuytrew', 'x wna-fxy.zpo:iuy!trew x'],
  },
};

const plain = [
  '',
  'Daikin',
  'ERQ125AV1',
  'J004321',
  'gepland',
  'done',
  'WB-2026-000123',
  '2026-11-21',
  '0b6f1a3e-9c1d-4c55-8a57-0d2f1e9b7c44',
  'De koelcel van de keuken lekt; morgen terugkomen.',
  'reënt',
];

for (const [name, { codec, sealed }] of Object.entries(cases)) {
  test(`stored values are found in texts: ${name}`, (t) => {
    const { areIn: holdsSealed } = sealedTexts([codec]);
    for (const value of sealed) t.true(holdsSealed(value), value);
  });

  test(`plain texts are not taken for stored values: ${name}`, (t) => {
    const { areIn: holdsSealed } = sealedTexts([codec]);
    const isModule = codec.cipher === 'module'; // its text can be like a UUID
    for (const text of plain.filter((each) => !isModule || !/\S{16}/.test(each))) t.false(holdsSealed(text), text);
  });
}

test('a codec that stores texts as they are hides none, and without codecs nothing is hidden', (t) => {
  for (const codecs of [[], [{ cipher: 'none', encoding: 'text' }]] as Codec[][]) {
    const { areIn: holdsSealed } = sealedTexts(codecs);
    for (const { sealed } of Object.values(cases)) for (const value of sealed) t.false(holdsSealed(value), value);
  }
});

const person = { naam: 'Jansen', gsm: '0612345678' };
const json = JSON.stringify(person);
const structured = [
  json,
  ` \n\t${json}`,
  `\ufeff${json}`,
  `\u200b${JSON.stringify(['Jansen', 'Utrecht'])}`,
  JSON.stringify(json),
  JSON.stringify(JSON.stringify(json)),
  JSON.stringify(json).slice(1, -1),
  `was: ${json}`,
  '["Jansen"]',
  "{'naam': 'Jansen'}",
  "'naam': 'Jansen'",
  '"naam"=>"Jansen"',
  '"Jansen"',
  '"Jansen", "Utrecht"',
  '｛"naam"："Jansen"｝',
  '<klant><naam>Jansen</naam></klant>',
  'zie <naam>Jansen',
  '&lt;naam&gt;Jansen',
  '&#123;&#34;naam&#34;',
  encodeURIComponent(json),
  'naam=Jansen&gsm=0612345678',
  'naam = Jansen',
  'naam: Jansen\nstraat: Kerkstraat',
  '- naam: Jansen\r\n- straat: Kerkstraat',
  'naam: Jansen; gsm: 0612345678',
  'Jansen;Kerkstraat 12;Utrecht',
  'Jansen|Kerkstraat 12|Utrecht',
  'Jansen\tKerkstraat 12\tUtrecht',
  'Jansen,Kerkstraat 12,Utrecht',
  '(Jansen,Kerkstraat)',
  'a:1:{s:4:"naam";s:6:"Jansen";}',
  Buffer.from(json).toString('base64'),
  Buffer.from('{"n":"Jo"}').toString('base64'),
  Buffer.from('["Jansen"]').toString('base64url'),
  Buffer.from(json).toString('hex'),
  Buffer.from('{"naam":"Jo"}').toString('hex'),
  String.raw`\u007b\u0022naam`,
];

test('a string that looks like structured data is recognised', (t) => {
  for (const value of structured) {
    t.true(looksStructured(value), value);
  }
});

test('words, dates, codes and prose are not taken for structured data', (t) => {
  const plain = [
    'in_uitvoering',
    '2019-03-10',
    '2021-05-10T14:03:12.120Z',
    '2018-03-25 01:00:00+02',
    'WB-2026-000123',
    '',
  ];
  plain.push('Storing "hoge druk"\nkamer 7', 'Dak "noord"\\12', 'Kelder (links)', 'ERQ125AV1', 'R449A', 'BI10240000');
  plain.push(
    '0b0e7c7e-1c5e-4a57-9d0b-4c6f1f1f1f01',
    'Druk 18/4,2 bar < 20 & 80% vochtigheid; geen "lek".',
    "'t Hoekje",
  );
  plain.push(
    'Let op: filter vervangen, daarna drukken meten.',
    'Koelcel, vriescel en toonbank',
    'Café Zoë – 1e verdieping',
  );
  for (const value of plain) {
    t.false(looksStructured(value), value);
  }
});

test('a long text is judged in time that grows with its length', (t) => {
  const began = performance.now();
  for (const piece of [',', '(,', 'a: ', '"', ' ', '\n', ',a', ');', 'a\n-', "' ", '\\', 'a '])
    for (const start of ['', '(', '"', 'a']) looksStructured(start + piece.repeat(100_000));
  t.true(performance.now() - began < 5000);
});
