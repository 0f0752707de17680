import { randomBytes } from 'node:crypto';
import test from 'ava';
import type { Codec } from '../../src/projection/codec.js';
import { sealedTexts } from '../../src/projection/plain-texts.js';

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
