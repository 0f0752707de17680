import test from 'ava';
import fc from 'fast-check';
import type { Codec } from '../../src/projection/codec.js';
import { holdsImage } from '../../src/projection/images.js';
import { looksStructured, plainTexts, sealedTexts } from '../../src/projection/plain-texts.js';

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
