import { randomBytes } from 'node:crypto';
import test from 'ava';
import fc from 'fast-check';
import type { Codec } from '../../src/resource/projection/codec.js';
import { looksStructured, sealedTexts } from '../../src/resource/projection/hidden-texts.js';
import { holdsImage } from '../../src/resource/projection/images.js';
import { isSignatureName, isSuspect, stripImages } from '../../src/resource/projection/strip.js';
import { limitMs } from '../support/patience.js';
import { words } from '../support/words.js';

const bytesOf: Record<string, Buffer> = {
  png: Buffer.concat([Buffer.from('89504e470d0a1a0a0000000d494844520000012c00000096', 'hex'), randomBytes(300)]),
  jpeg: Buffer.concat([Buffer.from('ffd8ffe000104a46494600010101006000600000', 'hex'), randomBytes(300)]),
  gif: Buffer.concat([Buffer.from('GIF89a,\x01\x96\x00\xf7\x00\x00', 'latin1'), randomBytes(300)]),
  webp: Buffer.concat([Buffer.from('RIFF'), randomBytes(4), Buffer.from('WEBPVP8 '), randomBytes(300)]),
  bmp: Buffer.concat([Buffer.from('BM'), randomBytes(4), Buffer.from([0, 0, 0, 0, 54, 0, 0, 0]), randomBytes(300)]),
  tiff: Buffer.concat([Buffer.from('49492a0008000000', 'hex'), randomBytes(300)]),
  tiffBig: Buffer.concat([Buffer.from('4d4d002a00000008', 'hex'), randomBytes(300)]),
  heic: Buffer.concat([Buffer.from('00000018', 'hex'), Buffer.from('ftypheic'), randomBytes(300)]),
  svg: Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"><path d="M0 0L9 9"/></svg>'),
  svgFile: Buffer.from('<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"><path d="M0 0L9 9"/></svg>'),
  unknown: randomBytes(1000),
};

/** The bytes as URLs have them: those of letters and digits as they stand. */
const escapedBytes = (bytes: Buffer): string =>
  [...bytes]
    .map((byte) =>
      /\w/.test(String.fromCharCode(byte)) ? String.fromCharCode(byte) : `%${byte.toString(16).padStart(2, '0')}`,
    )
    .join('');

const wrap = (text: string, lineBreak: string): string => text.match(/.{1,76}/g)?.join(lineBreak) ?? text;

const images: string[] = Object.values(bytesOf).flatMap((bytes) => {
  const base64 = bytes.toString('base64');
  return [
    base64,
    bytes.toString('base64url'),
    wrap(base64, '\n'),
    wrap(base64, '\r\n  '),
    base64.replaceAll('/', '\\/'),
    `data:image/png;base64,${base64}`,
    `De klant tekende: ${base64} op het scherm.`,
    JSON.stringify({ bijlage: { inhoud: base64 } }),
  ];
});
for (const type of ['png', 'jpeg', 'gif']) {
  const hex = bytesOf[type]?.toString('hex') ?? '';
  images.push(hex, hex.toUpperCase(), `\\x${hex}`);
  for (const between of [':', '-', ' ']) images.push(hex.replace(/..(?!$)/g, `$&${between}`));
  const spaced = hex.toUpperCase().replace(/..(?!$)/g, '$&:');
  images.push(spaced, `%${spaced.replaceAll(':', '%')}`, escapedBytes(bytesOf[type] as Buffer));
}
for (const type of ['png', 'gif', 'webp']) {
  const base64 = bytesOf[type]?.toString('base64') ?? '';
  for (const between of [',', ', ', '\u200b', '\ufeff', '\u00ad'])
    images.push(base64.replace(/.{4}(?!$)/g, `$&${between}`));
}
for (const type of ['png', 'jpeg']) images.push(JSON.stringify(bytesOf[type]), encodeURIComponent(images[0] ?? ''));
images.push(
  '<SVG viewBox="0 0 9 9"></SVG>',
  'DATA:IMAGE/PNG;base64,AA==',
  'data%3Aimage%2Fpng%3Bbase64%2CAA==',
  '&lt;svg viewBox=&quot;0 0 9 9&quot;&gt;',
  'iVBO\nRw0K\nGgoA\nAAAN',
  '&#60;svg viewBox="0 0 9 9">',
  '<s:svg xmlns:s="http://www.w3.org/2000/svg">',
  '&#x3C;svg viewBox="0 0 9 9">',
  '&#060svg viewBox="0 0 9 9">',
  '{"0":137,"1":80,"2":78,"3":71,"4":13,"5":10,"6":26,"7":10,"8":0}',
);

const harmless = [
  'Onderhoud',
  'Lekcontrole volgens EN 378, druk 18/4,2 bar < 20 & 80% vochtigheid; geen "lek" gevonden.\nFilter gereinigd.',
  'https://voorbeeld.nl/9j/foto',
  'MAC 89:50:4e:11:0a:1b, van 09:50:47 tot 10:15:00, 47-49-46-11',
  'Serie GIF89a, korting 89%, 100%ff&#60;b&#62;',
  'Werkbon 2024-UklGR-0007',
  '0b0e7c7e-1c5e-4a57-9d0b-4c6f1f1f1f01',
  randomBytes(32)
    .toString('hex')
    .replace(/ffd8ff|89504e47/g, '0'),
  'woord '.repeat(2000),
  Array.from({ length: 200 }, (_, index) => `SERIE${index}`).join('\n'),
  '[137, 80, 78]',
];

test('an image is recognised in every form it is stored in', (t) => {
  for (const image of images) t.true(holdsImage(image), image.slice(0, 80));
});

test('ordinary text is not taken for an image', (t) => {
  for (const text of harmless) t.false(holdsImage(text), text.slice(0, 80));
});

test('names of signatures are told from when and by whom was signed', (t) => {
  for (const name of ['handtekening', 'HandtekeningKlant', 'hand_tekening', 'customerSignature', 'PARAAF', 'krabbel'])
    t.true(isSignatureName(name), name);
  for (const name of ['ondertekeningAfbeelding', 'ondertekening_image', 'svgOndertekening', 'ondertekeningData'])
    t.true(isSignatureName(name), name);
  for (const name of ['ondertekendOp', 'ondertekendDoor', 'ondertekeningDatum', 'tekening', 'paragraaf', 'signaal'])
    t.false(isSignatureName(name), name);
});

test('the value of a signature becomes null whatever it is, but for true, false and null', (t) => {
  const stored =
    '{"handtekening": "x", "paraaf": {"punten": [1, {"a": "]}"}]}, "krabbel": [1, 2], "signature": 12.50, ' +
    '"handtekeningAanwezig": true, "signatureOk": false, "paraaf2": null, "ondertekendOp": "2024-05-01", "n": 1.0}';
  const kept =
    '{"handtekening": null, "paraaf": null, "krabbel": null, "signature": null, ' +
    '"handtekeningAanwezig": true, "signatureOk": false, "paraaf2": null, "ondertekendOp": "2024-05-01", "n": 1.0}';
  t.is(stripImages(stored), kept);
});

test('escapes hide neither an image nor the name of a signature', (t) => {
  t.is(
    stripImages(String.raw`{"handteken\u0069ng": "x", "a": "\u0069VBORw0KGgo="}`),
    String.raw`{"handteken\u0069ng": null, "a": null}`,
  );
  t.is(stripImages(`["${(images[8] ?? '').replaceAll('/', '\\/')}"]`), '[null]');
  t.is(stripImages(String.raw`["\"<svg width=\"9\">", "\\", "a\\\"b"]`), String.raw`[null, "\\", "a\\\"b"]`);
});

test('whatever is not left as it is was suspect before a string was made of it', (t) => {
  const judged = (text: string, isJson = false): boolean => {
    const bytes = Buffer.from(`iVBORw0KGgo${text}<svg`); // what stands around the value is none of it
    return isSuspect(bytes, 11, bytes.length - 4, isJson);
  };
  for (const image of images) {
    t.true(judged(image), image.slice(0, 80));
    t.true(judged(JSON.stringify(image), true), image.slice(0, 80));
  }
  for (const name of [
    ...['handtekening', 'HAND_TEKENING', 'Signatuur', 'ondertekening foto', 'paraaf', 'parafen', 'krabbel'],
  ])
    t.true(judged(`{"${name}":[1,2]}`, true), name);
  const broken = fc
    .tuple(
      fc.constantFrom(...images),
      fc.nat({ max: 200 }),
      fc.constantFrom('', '\n', '\r\n', '"', '\\', '/', '\t', 'é', '\u0001'),
    )
    .map(([image, at, by]) => image.slice(0, at) + by + image.slice(at));
  const piece = fc.constantFrom('data:', 'data', 'image', 'TEKENING', 'hand\ntekening', '%3Csvg', '\\u003csvg', '\n');
  const text = fc.array(fc.oneof(fc.string({ unit: 'binary' }), broken, piece)).map((parts) => parts.join(''));
  fc.assert(
    fc.property(text, (value) => {
      if (!judged(value)) t.false(holdsImage(value));
      const json = JSON.stringify([{ [value.slice(0, 9)]: value }], null, 1); // line breaks between strings hide nothing
      if (!judged(json, true)) t.is(stripImages(json), json);
    }),
    { numRuns: 3000 },
  );
  t.false(judged('[{"druk": 12.5, "opmerking": "Filter \\"oost\\" vervangen; datum: 1 mei."}, {}]'));
});

test('neither invisible characters, accents nor other forms of letters hide the name of a signature', (t) => {
  const names = words(`
    hand\u200btekening hand\u00adtekening \u{ff48}\u{ff41}\u{ff4e}\u{ff44}tekening ha\u034fndtekening \u{1d5c1}andtekening
    handtek\ufe0feningKlant \u2060paraaf \u24e2ignature hand\u{e0061}tekening ſignature hándtekening sígnature
    handte\u0301kening Únterschrift hand/tekening`);
  for (const name of names) {
    t.true(isSignatureName(name), name);
    t.is(stripImages(JSON.stringify({ a: 1, [name]: [[1, 2]] })), JSON.stringify({ a: 1, [name]: null }), name);
    const bytes = Buffer.from(JSON.stringify({ [name]: 1 }));
    t.true(isSuspect(bytes, 0, bytes.length), name);
  }
});

test('strings that are JSON are stripped, however often they are encoded', (t) => {
  const signed = { handtekening: [[1, 2]], n: 'é', lijst: [1.5] };
  const wanted = { ...signed, handtekening: null };
  const encode = (value: unknown, times: number): unknown =>
    Array.from({ length: times }).reduce((text) => JSON.stringify(text), value);
  for (let times = 1; times <= 6; times++) {
    const stripped = JSON.parse(stripImages(JSON.stringify({ blad: encode(signed, times), ok: true })));
    t.deepEqual(stripped, { blad: encode(wanted, times), ok: true }, `${times} times`);
  }
  t.false(stripImages(JSON.stringify([encode(signed, 10)])).includes('handtekening'));
  t.deepEqual(JSON.parse(stripImages(JSON.stringify([`\ufeff ${JSON.stringify(signed)}`]))), [
    `\ufeff ${JSON.stringify(wanted)}`,
  ]);
  const unread = ['{ handtekening: niet gezet }', '[zie de handtekening]', '"handtekening'];
  for (const text of [...unread, '{"tekening": 1}', '{"handtekening'])
    t.is(stripImages(JSON.stringify([text])), JSON.stringify([text]), text);
});

test('a member that names the values beside it as a signature makes them null', (t) => {
  const points = [1, 3].map((n) => [n, n + 1]);
  for (const name of [...words('naam label type key Type na\u200bam náám title veld code id'), 'name '])
    for (const value of ['handtekening', 'Customer signature', 'hand\u00adtekening'])
      for (const beside of ['waarde', 'x']) {
        const stored = [
          { [name]: value, [beside]: points, verplicht: true, n: 5, tekst: 'M 10 10 L', leeg: null },
          { naam: 'druk', waarde: 4 },
        ];
        const wanted = [{ ...stored[0], [beside]: null, n: null, tekst: null }, stored[1]];
        t.deepEqual(JSON.parse(stripImages(JSON.stringify(stored))), wanted, `${name}: ${value}`);
        t.deepEqual(JSON.parse(stripImages(JSON.stringify({ blad: JSON.stringify(stored) }))), {
          blad: JSON.stringify(wanted),
        });
      }
  t.is(
    stripImages('{"waarde": {"b": {"naam": "handtekening", "c": [1]}}, "d": [2]}'),
    '{"waarde": {"b": {"naam": "handtekening", "c": null}}, "d": [2]}',
  );
  t.is(
    stripImages('{"waarde" : [ {"naam":"handtekening"} ], "type" : "handtekening"}'),
    '{"waarde" : null, "type" : "handtekening"}',
  );
  const plain = '{"naam": "Handtekenaar", "type": "tekening", "waarde": "handtekening gezet", "namen": "handtekening"}';
  t.is(stripImages(plain), plain);
});

test('an image in place of a name takes its member with it', (t) => {
  const image = JSON.stringify(images[0]);
  t.is(stripImages(`{${image}: 1, "a": 2}`), '{"a": 2}');
  t.is(stripImages(`{"a": 2, ${image}: {"b": [1]}}`), '{"a": 2}');
  t.is(stripImages(`{"a": 2, ${image}: 1, ${image}: 2}`), '{"a": 2}');
  t.is(stripImages(`{${image}: 1}`), '{}');
  t.is(stripImages(`{"a": 1, ${image}: 2, "b": 3}`), '{"a": 1, "b": 3}');
});

test('an image as a list of bytes becomes null', (t) => {
  const buffer = JSON.stringify(bytesOf.png);
  t.is(stripImages(`{"a": ${buffer}, "b": 1}`), '{"a": {"type":"Buffer","data":null}, "b": 1}');
  t.is(stripImages(`[${JSON.stringify(new Uint8Array(bytesOf.jpeg ?? []))}, 1.50]`), '[null, 1.50]');
  t.is(stripImages('[[137, 80, 78, 71, 13, 10, 26, 10, 0], "[137, 80"]'), '[null, "[137, 80"]');
  t.is(stripImages(JSON.stringify([[...(bytesOf.png ?? [])].map(String), 'a'])), '[null,"a"]');
});

const ints = (count: number, from = 1): number[] =>
  Array.from({ length: count }, (_, at) => ((from + at * 7) % 256) - 128);
const signed = (bytes: Buffer | undefined): number[] => [...new Int8Array(bytes ?? [])];

test('more than 64 small integers are taken for bytes or points, in each form of a list', (t) => {
  const bytes = ['png', 'gif', 'webp', 'jpeg', 'unknown'].map((name) => signed(bytesOf[name]));
  const strokes = [ints(30), ints(30), ints(10)].map((stroke) => stroke.map((x) => [x + 500, 77]));
  for (const list of [...bytes, ints(65), strokes, { ...ints(65) }, [[[ints(65)]]]]) {
    for (const space of [undefined, 1]) {
      const json = JSON.stringify({ a: list, b: 1 }, null, space);
      t.is(JSON.stringify(JSON.parse(stripImages(json))), '{"a":null,"b":1}');
      t.true(isSuspect(Buffer.from(json), 0, json.length));
      t.is(stripImages(JSON.stringify([JSON.stringify(list)])), '[null]');
    }
  }
  t.is(stripImages(JSON.stringify([[ints(65), 'x'], 2])), '[[null,"x"],2]');
  const kept = [ints(64), [ints(40), 'x', ints(40)], ints(70).map((n) => n + 0.5), ints(70).map((n) => n + 100_000)];
  for (const list of kept) t.is(stripImages(JSON.stringify(list)), JSON.stringify(list));
});

test('a name that speaks of signing loses an object, a list and a long string, and keeps a word', (t) => {
  const long = 'x '.repeat(40);
  t.is(
    stripImages(`{"ondertekening": {"a": 1}, "signedBy": [1], "strokes": ["a"], "ondertekendDoor": "${long}"}`),
    '{"ondertekening": null, "signedBy": null, "strokes": null, "ondertekendDoor": null}',
  );
  const kept = '{"ondertekendOp": "2024-05-01", "ondertekendDoor": "Jan", "signed": true, "ondertekening": 4}';
  t.is(stripImages(kept), kept);
});

test('base64 with spaces, in chunks and encoded twice, and hexadecimal with spaces are recognised', (t) => {
  const spaced = (text: string, length: number): string =>
    text.match(new RegExp(`.{1,${length}}`, 'g'))?.join(' ') ?? '';
  for (const name of ['png', 'jpeg', 'gif', 'webp'] as const) {
    const base64 = bytesOf[name]?.toString('base64') ?? '';
    const forms = [spaced(base64, 4), spaced(base64, 8), wrap(base64, '\t'), Buffer.from(base64).toString('base64')];
    if (name !== 'webp') forms.push(spaced(bytesOf[name]?.toString('hex') ?? '', 2));
    for (const form of forms) {
      t.true(holdsImage(form), form.slice(0, 60));
      t.true(isSuspect(Buffer.from(form), 0, form.length), form.slice(0, 60));
      const json = JSON.stringify({ a: [form, 'b'] });
      t.is(stripImages(json), '{"a":[null,"b"]}');
      t.true(isSuspect(Buffer.from(json), 0, json.length));
    }
    for (const size of [4, 8, 60, 300]) {
      for (const space of [undefined, 1]) {
        const json = JSON.stringify({ a: base64.match(new RegExp(`.{1,${size}}`, 'g')), b: ['x', 'y'] }, null, space);
        t.deepEqual(JSON.parse(stripImages(json)), { a: null, b: ['x', 'y'] }, `${name} ${size}`);
        t.true(isSuspect(Buffer.from(json), 0, json.length));
      }
    }
  }
  const ids = JSON.stringify(Array.from({ length: 60 }, () => '0b0e7c7e-1c5e-4a57-9d0b-4c6f1f1f1f01'));
  t.is(stripImages(ids), ids);
});

test('a bare string, number or word is a value too', (t) => {
  t.is(stripImages(JSON.stringify(images[0])), 'null');
  for (const json of ['"tekening"', '12.50', 'true', 'null', '[]', '{}']) t.is(stripImages(json), json);
});

test('text that is not JSON comes back as null when it may hold an image, and never throws', (t) => {
  for (const json of [`"${images[0]}`, '{"handtekening": ', '{"handtekening": [1', String.raw`{"\u00zz": 1}`])
    t.is(stripImages(json), 'null');
  fc.assert(fc.property(fc.string(), (text) => typeof stripImages(text) === 'string'));
});

test('values nested deeper than any call stack are stripped', (t) => {
  const deep = (inner: string) => '[{"a": '.repeat(50_000) + inner + '}]'.repeat(50_000);
  t.is(stripImages(deep('"<svg viewBox"')), deep('null'));
  t.is(stripImages(`{"paraaf": ${deep('1')}}`), '{"paraaf": null}');
});

/** A JSON document as jsonb prints it, and what must be left of it. */
interface Doc {
  stored: string;
  kept: string;
}

const same = (json: string): Doc => ({ stored: json, kept: json });
const scalar = fc.oneof(
  fc.constantFrom('12.50', '12345678901234567890', '-0.000', '1e-400', '0', 'true', 'false', 'null', '137').map(same),
  fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom(...harmless)).map((text) => same(JSON.stringify(text))),
);
const image = fc
  .tuple(fc.constantFrom(...images), fc.boolean())
  .map(([text, slashes]) => JSON.stringify(text).replaceAll('/', slashes ? '\\/' : '/'))
  .map((stored) => ({ stored, kept: 'null' }));
const name = fc.oneof(fc.string(), fc.constantFrom('omschrijving', 'uitgevoerdOp', 'tekening', 'a"b\\'));

function docs(leaf: fc.Arbitrary<Doc>, names: fc.Arbitrary<string>): fc.Arbitrary<Doc> {
  return fc.letrec<{ doc: Doc }>((tie) => ({
    doc: fc.oneof(
      { depthSize: 'medium', withCrossShrink: true },
      leaf,
      fc.array(tie('doc'), { maxLength: 5 }).map((items) => ({
        stored: `[${items.map(({ stored }) => stored).join(', ')}]`,
        kept: `[${items.map(({ kept }) => kept).join(', ')}]`,
      })),
      fc.array(fc.tuple(names, tie('doc')), { maxLength: 5 }).map((members) => ({
        stored: `{${members.map(([key, { stored }]) => `${JSON.stringify(key)}: ${stored}`).join(', ')}}`,
        kept: `{${members.map(([key, { stored, kept }]) => `${JSON.stringify(key)}: ${keptUnder(key, stored, kept)}`).join(', ')}}`,
      })),
    ),
  })).doc;
}

const keptUnder = (key: string, stored: string, kept: string): string =>
  isSignatureName(key) && stored !== 'true' && stored !== 'false' ? 'null' : kept;

test('a document without images comes back as it was, to the last digit', (t) => {
  fc.assert(
    fc.property(docs(scalar, name), ({ stored }) => {
      t.is(stripImages(stored), stored);
    }),
    { numRuns: 500 },
  );
});

test('of a document with images and signatures at any depth all is left but those', (t) => {
  const names = fc.oneof(name, fc.constantFrom('handtekening', 'klantSignature', 'paraaf'));
  fc.assert(
    fc.property(docs(fc.oneof(scalar, image), names), ({ stored, kept }) => {
      t.is(stripImages(stored), kept);
    }),
    { numRuns: 500 },
  );
});

test('a word is no base64 only because it is long', (t) => {
  const holdsSealed = sealedTexts([{ cipher: 'none', encoding: 'base64' }]);
  for (const [value, isSealed] of [
    ['gefactureerd', false],
    ['zonder bijzonderheden', false],
    ['was TmVkZXJsYW5kZXI= eerst', true],
    ['was abcd=TmVkZXJsYW5kZXIs', true],
    [Buffer.from('Jan').toString('base64'), true],
  ] as const)
    t.is(holdsSealed(value), isSealed, value);
});

interface Case {
  readonly codec: Codec;
  readonly sealed: readonly string[];
}

const bytes = (count: number): Buffer => randomBytes(count);
const gcm = { cipher: 'aes-256-gcm', layout: ['nonce12', 'data', 'tag16'] } as const;
const smallest = 28; // nonce and tag of an empty text

const cases: Readonly<Record<string, Case>> = {
  'a prefix with a version and a key id': {
    codec: { ...gcm, encoding: 'base64', prefix: 'enc:v2:{keyId}:' },
    sealed: ['enc:v2:k1:AA==', 'ENC:V2:k1:AA==', 'was enc:v2:k1:AA==', 'enc:v3:k1:AA=='],
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
  ...['', 'Daikin', 'ERQ125AV1', 'J004321', 'gepland', 'done', 'WB-2026-000123', '2026-11-21'],
  ...['0b6f1a3e-9c1d-4c55-8a57-0d2f1e9b7c44', 'De koelcel van de keuken lekt; morgen terugkomen.', 'reënt'],
];

for (const [name, { codec, sealed }] of Object.entries(cases)) {
  test(`stored values are found in texts: ${name}`, (t) => {
    const holdsSealed = sealedTexts([codec]);
    for (const value of sealed) t.true(holdsSealed(value), value);
  });

  test(`plain texts are not taken for stored values: ${name}`, (t) => {
    const holdsSealed = sealedTexts([codec]);
    const isModule = codec.cipher === 'module'; // its text can be like a UUID
    for (const text of plain.filter((each) => !isModule || !/\S{16}/.test(each))) t.false(holdsSealed(text), text);
  });
}

test('a codec that stores texts as they are hides none, and without codecs nothing is hidden', (t) => {
  for (const codecs of [[], [{ cipher: 'none', encoding: 'text' }]] as Codec[][]) {
    const holdsSealed = sealedTexts(codecs);
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
  for (const value of structured) t.true(looksStructured(value), value);
});

test('words, dates, codes and prose are not taken for structured data', (t) => {
  const codes = words(`
    in_uitvoering 2019-03-10 2021-05-10T14:03:12.120Z WB-2026-000123 ERQ125AV1 R449A BI10240000
    0b0e7c7e-1c5e-4a57-9d0b-4c6f1f1f1f01`);
  const prose = ['Kelder (links)', 'Koelcel, vriescel en toonbank', 'Café Zoë – 1e verdieping', "'t Hoekje", ''];
  prose.push('Storing "hoge druk"\nkamer 7', 'Dak "noord"\\12', '2018-03-25 01:00:00+02');
  prose.push('Druk 18/4,2 bar < 20 & 80% vochtigheid; geen "lek".', 'Let op: filter vervangen, daarna drukken meten.');
  for (const value of [...codes, ...prose]) t.false(looksStructured(value), value);
});

test('a long text is judged in time that grows with its length', (t) => {
  const began = performance.now();
  for (const piece of [',', '(,', 'a: ', '"', ' ', '\n', ',a', ');', 'a\n-', "' ", '\\', 'a '])
    for (const start of ['', '(', '"', 'a']) looksStructured(start + piece.repeat(100_000));
  t.true(performance.now() - began < limitMs(5000));
});
