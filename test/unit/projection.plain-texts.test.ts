import { randomBytes } from 'node:crypto';
import test from 'ava';
import fc from 'fast-check';
import type { Codec } from '../../src/projection/codec.js';
import { holdsImage } from '../../src/projection/images.js';
import { looksStructured, plainTexts, sealedTexts } from '../../src/projection/plain-texts.js';
import { limitMs } from '../support/patience.js';

const seal = { cipher: 'aes-256-gcm', layout: ['nonce12', 'data', 'tag16'] } as const;
const codecs: readonly Codec[] = [
  { ...seal, encoding: 'base64', prefix: 'enc:v2:{keyId}:' },
  { cipher: 'none', encoding: 'base64' },
  { cipher: 'none', encoding: 'base64url' },
  { cipher: 'none', encoding: 'hex' },
  { ...seal, encoding: 'hex' },
  { cipher: 'module', encoding: 'text' },
];
const json = JSON.stringify({ name: 'Jansen', phone: '0612345678' });
const sealed = Buffer.alloc(40, 7);
/** Texts, and beginnings of texts, of which the exact tests refuse most. */
const parts = [
  ...[
    'gepland',
    '2016-06-01T14:00:00.5',
    '9a55140a-572e-4950-9a2b-113eea697d10',
    'a@b.nl',
    'Kelder noord',
    ' ',
    'é',
    'à',
    'ÿ',
    '×',
    'Ł',
  ],
  ...[', ', ',', '; ', ';', ': ', ':', '(', ')', ' (', 'a,b', 'gefactureerd', 'bijzonderheden', '12,5'],
  ...['enc:v2:k1:', 'ENC:V', 'K', '(a, b)', 'a=b', 'k: v; j: w', '<svg', '50%', '\\x', '"', '{', '\t', '\n'],
  ...[
    'iVBORw0KGgoAAAANSUhEUgAAADAAAAAY',
    'i VBOR w0KGgo',
    '/9j/4AAQSkZJRgABAQAAAQABAAD',
    'R0lGODlh',
    'UklGRkoAAABXRUJQVlA4',
  ],
  ...[
    'data:image/png',
    '89504e47',
    '137,80,78,71,13,10,26,10',
    'ffd8ffe000104a46',
    'A'.repeat(39),
    'A'.repeat(40),
    '1,'.repeat(64),
  ],
  ...(['base64', 'base64url', 'hex'] as const).flatMap((encoding) => [
    Buffer.from(json).toString(encoding),
    Buffer.from('Nederland').toString(encoding),
    sealed.toString(encoding),
  ]),
];
const text = fc
  .array(fc.oneof(fc.constantFrom(...parts), fc.string(), fc.string({ unit: 'binary' })), { maxLength: 4 })
  .map((some) => some.join(''));

for (const [name, used] of [
  ...codecs.map((codec) => [`${codec.cipher} ${codec.encoding}`, [codec]] as const),
  ['no codec', []] as const,
])
  test(`a text that is sure to be plain passes each exact test: ${name}`, (t) => {
    const exact = sealedTexts(used);
    const isSurelyPlain = plainTexts(exact);
    fc.assert(
      fc.property(text, fc.string({ maxLength: 3 }), (value, before) => {
        const bytes = Buffer.from(`${before}${value}"`);
        if (!isSurelyPlain(bytes, Buffer.byteLength(before), bytes.length - 1)) return;
        t.false(exact.areIn(value) || holdsImage(value) || looksStructured(value), value);
      }),
      { numRuns: 3000 },
    );
  });

test('words, dates, numbers and addresses are sure to be plain', (t) => {
  const isSurelyPlain = plainTexts(sealedTexts(codecs.slice(0, 1)));
  for (const value of [
    '',
    'gepland',
    '2016-06-01T14:00:00.5',
    'BI10240012',
    'a@b.nl',
    'Kelder noord (2e deur)',
    'WB-2026-000123',
    'Ventiel lekt, besteld (2 stuks); druk 12,5 bar: volgt',
    'Café Zuid, coördinator',
  ])
    t.true(isSurelyPlain(Buffer.from(value), 0, Buffer.byteLength(value)), value);
});

test('a word is no base64 only because it is long', (t) => {
  const isSurelyPlain = plainTexts(sealedTexts([{ cipher: 'none', encoding: 'base64' }]));
  for (const [value, isPlain] of [
    ['gefactureerd', true],
    ['zonder bijzonderheden', true],
    ['was TmVkZXJsYW5kZXI= eerst', false],
    ['was abcd=TmVkZXJsYW5kZXIs', false],
    [Buffer.from('Jan').toString('base64'), false],
  ] as const)
    t.is(isSurelyPlain(Buffer.from(value), 0, value.length), isPlain, value);
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
const personJson = JSON.stringify(person);
const structured = [
  personJson,
  ` \n\t${personJson}`,
  `\ufeff${personJson}`,
  `\u200b${JSON.stringify(['Jansen', 'Utrecht'])}`,
  JSON.stringify(personJson),
  JSON.stringify(JSON.stringify(personJson)),
  JSON.stringify(personJson).slice(1, -1),
  `was: ${personJson}`,
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
  encodeURIComponent(personJson),
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
  Buffer.from(personJson).toString('base64'),
  Buffer.from('{"n":"Jo"}').toString('base64'),
  Buffer.from('["Jansen"]').toString('base64url'),
  Buffer.from(personJson).toString('hex'),
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
  t.true(performance.now() - began < limitMs(5000));
});
