import { createCipheriv, createSecretKey, type KeyObject, randomBytes } from 'node:crypto';
import test from 'ava';
import fc from 'fast-check';
import { Row } from '../../src/postgres/row.js';
import { codecPresets } from '../../src/resource/definition/load.js';
import { AadHash, cipherBytesMax, GcmKey, Ghash, openNative } from '../../src/resource/projection/aes-gcm/gcm-key.js';
import { verifyKeys } from '../../src/resource/projection/aes-gcm/verify-keys.js';
import type { Codec } from '../../src/resource/projection/codec.js';
import { compileCodec } from '../../src/resource/projection/codecs.js';
import { JsonBytes } from '../../src/resource/projection/json-bytes.js';
import { parseKeyring } from '../../src/resource/projection/keyring.js';

interface Message {
  readonly iv: Buffer;
  readonly associated: Buffer;
  /** Ciphertext ‖ tag. */
  readonly sealed: Buffer;
}

/** Opens one message; null when it is refused, and then its bytes have stayed as they were. */
function open(key: GcmKey, { iv, associated, sealed }: Message): Buffer | null {
  const bytes = Buffer.concat([iv, sealed]);
  const length = sealed.length - 16;
  const stream = key.queue(bytes, 0, length);
  key.makeKeyStreams();
  key.hash.start();
  key.hash.update(associated, 0, associated.length);
  if (key.open(bytes, 12, length, 12 + length, stream, associated.length)) return bytes.subarray(12, 12 + length);
  if (!bytes.subarray(12).equals(sealed)) throw new Error('something of a refused message was decrypted');
  return null;
}

function seal(key: KeyObject, plain: Uint8Array, associated: Uint8Array): Message {
  const iv = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(associated);
  const sealed = Buffer.concat([cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
  return { iv, associated: Buffer.from(associated), sealed };
}

const long = 'feffe9928665731c6d6a8f9467308308'.repeat(2);
const text =
  'd9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b391aafd255';
const sealedText =
  '522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662898015ad';

const nist = {
  key: 'f5a2b27c74355872eb3ef6c5feafaa740e6ae990d9d48c3bd9bb8235e589f010',
  blockKey: '31bdadd96698c204aa9ce1448ea94ae1fb4a9a0b3c9d773b51bb1822666b8f22',
  bothKey: '92e11dcdaa866f5ce790fd24501f92509aacf4cb8b1339d50c9c1240935dd08b',
};
const [zeroKey, zeroIv, iv] = ['00'.repeat(32), '00'.repeat(12), 'cafebabefacedbaddecaf888'];
const associated16 = 'feedfacedeadbeeffeedfacedeadbeefabaddad2';

/**
 * McGrew and Viega, "The Galois/Counter Mode of Operation", appendix B: those with a 256-bit key and a 96-bit IV. NIST CAVP,
 * gcmDecrypt256.rsp and gcmEncryptExtIV256.rsp: the first of each length with a 96-bit IV and a 128-bit tag.
 */
const published: readonly (readonly [
  name: string,
  key: string,
  iv: string,
  aad: string,
  plain: string,
  sealed: string,
])[] = [
  ['McGrew and Viega 13', zeroKey, zeroIv, '', '', '530f8afbc74536b9a963b4f1c4cb738b'],
  [
    'McGrew and Viega 14',
    zeroKey,
    zeroIv,
    '',
    '00'.repeat(16),
    'cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919',
  ],
  ['McGrew and Viega 15', long, iv, '', text, `${sealedText}b094dac5d93471bdec1a502270e3cc6c`],
  [
    'McGrew and Viega 16',
    long,
    iv,
    associated16,
    text.slice(0, 120),
    `${sealedText.slice(0, 120)}76fc6ece0f4e1768cddf8853bb2d551b`,
  ],
  ['gcmDecrypt256, no text', nist.key, '58d2240f580a31c1d24948e9', '', '', '15e051a5e4a5f5da6cea92e2ebee5bac'],
  [
    'gcmEncryptExtIV256, a block of text',
    nist.blockKey,
    '0d18e06c7c725ac9e362e1ce',
    '',
    '2db5168e932556f8089a0622981d017d',
    'fa4362189661d163fcd6a56d8bf0405ad636ac1bbedd5cc3ee727dc2ab4a9489',
  ],
  [
    'gcmEncryptExtIV256, a block of text and of associated data',
    nist.bothKey,
    'ac93a1a6145299bde902f21a',
    '1e0889016f67601c8ebea4943bc23ad6',
    '2d71bcfa914e4ac045b2aa60955fad24',
    '8995ae2e6df3dbf96fac7b7137bae67feca5aa77d51d4a0a14d9c51e1da474ab',
  ],
];

for (const [name, ...vector] of published) {
  test(`published vector ${name} is opened`, (t) => {
    const [raw, iv, associated, plain, sealed] = vector.map((hex) => Buffer.from(hex, 'hex')) as Buffer[] as [
      ...[Buffer, Buffer, Buffer, Buffer, Buffer],
    ];
    const key = createSecretKey(raw);
    t.deepEqual(open(new GcmKey(key, 1), { iv, associated, sealed }), plain);
    t.deepEqual(openNative(key, Buffer.concat([iv, sealed]), associated), plain);
  });
}

test("what node's own GCM seals is opened, whatever its length and associated data", (t) => {
  const bytes = (maxLength: number) => fc.uint8Array({ maxLength, size: 'max' });
  fc.assert(
    fc.property(bytes(300), bytes(200), fc.uint8Array({ minLength: 32, maxLength: 32 }), (plain, associated, raw) => {
      const key = createSecretKey(raw);
      const message = seal(key, plain, associated);
      t.deepEqual(open(new GcmKey(key, 1), message), Buffer.from(plain));
    }),
    { numRuns: 300 },
  );
});

test('every length up to the longest is opened, under one key after another message', (t) => {
  const key = createSecretKey(randomBytes(32));
  const gcm = new GcmKey(key, 1);
  for (let length = 0; length <= cipherBytesMax; length++) {
    const plain = randomBytes(length);
    t.true(open(gcm, seal(key, plain, randomBytes(length % 100)))?.equals(plain), `${length} bytes`);
  }
});

test('every single-bit flip of IV, associated data, ciphertext and tag is refused, and nothing of it decrypted', (t) => {
  const key = createSecretKey(randomBytes(32));
  const gcm = new GcmKey(key, 1);
  for (const [plainBytes, associatedBytes] of [
    [0, 0],
    [1, 17],
    [16, 16],
    [47, 88],
  ] as const) {
    const message = seal(key, randomBytes(plainBytes), randomBytes(associatedBytes));
    for (const part of ['iv', 'associated', 'sealed'] as const) {
      for (let bit = 0; bit < message[part].length * 8; bit++) {
        const flipped = Buffer.from(message[part]);
        flipped.writeUInt8(flipped.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
        t.is(open(gcm, { ...message, [part]: flipped }), null, `${part}, bit ${bit}`);
      }
    }
    t.not(open(gcm, message), null);
  }
});

test('bytes that move between associated data and ciphertext are refused', (t) => {
  const key = createSecretKey(randomBytes(32));
  const gcm = new GcmKey(key, 1);
  const { iv, sealed } = seal(key, Buffer.alloc(16, 7), Buffer.alloc(0));
  t.is(open(gcm, { iv, associated: sealed.subarray(0, 16), sealed: sealed.subarray(16) }), null);
  t.is(open(gcm, { iv, associated: Buffer.alloc(16), sealed }), null);
});

test('messages that are queued together are each opened with their own key stream', (t) => {
  const key = createSecretKey(randomBytes(32));
  const plains = [5, 0, 1024, 16, 33].map((length) => randomBytes(length));
  const gcm = new GcmKey(key, plains.length);
  const queued = plains.map((plain) => {
    const { iv, sealed } = seal(key, plain, Buffer.alloc(0));
    const bytes = Buffer.concat([iv, sealed]);
    return { plain, bytes, stream: gcm.queue(bytes, 0, plain.length) };
  });
  gcm.makeKeyStreams();
  for (const { plain, bytes, stream } of queued) {
    gcm.hash.start();
    t.true(gcm.open(bytes, 12, plain.length, 12 + plain.length, stream, 0));
    t.true(bytes.subarray(12, 12 + plain.length).equals(plain));
  }
});

test('more than was provided for is refused before anything is opened', (t) => {
  const key = new GcmKey(createSecretKey(randomBytes(32)), 2);
  const bytes = Buffer.alloc(2000);
  t.throws(() => key.queue(bytes, 0, cipherBytesMax + 1), { instanceOf: RangeError });
  key.queue(bytes, 0, cipherBytesMax);
  const stream = key.queue(bytes, 0, cipherBytesMax);
  t.throws(() => key.queue(bytes, 0, 0), { instanceOf: RangeError });
  t.throws(() => key.open(bytes, 12, 0, 12, stream, 0), { instanceOf: RangeError }, 'its key stream is not made yet');
  key.makeKeyStreams();
  t.throws(() => key.open(bytes, 12, cipherBytesMax + 16, cipherBytesMax + 28, stream, 0), { instanceOf: RangeError });
  t.throws(() => key.open(bytes.subarray(0, 1000), 12, 980, 992, stream, 0), { instanceOf: RangeError });
  t.false(key.open(bytes, 12, cipherBytesMax, 12 + cipherBytesMax, stream, 0));
});

test('the hash of associated data is that of the whole, whatever the lengths of prefixes and ids', (t) => {
  const { hash } = new GcmKey(createSecretKey(randomBytes(32)), 1);
  const aad = new AadHash(hash);
  const lengths = fc.array(fc.integer({ min: 0, max: 70 }), { minLength: 1, maxLength: 8 });
  fc.assert(
    fc.property(lengths, lengths, (prefixLengths, idLengths) => {
      const prefixes = prefixLengths.map((length) => randomBytes(length));
      aad.setPrefixes(prefixes);
      for (const length of idLengths) {
        const id = randomBytes(length);
        aad.setSuffix(id, length);
        for (const [column, prefix] of prefixes.entries()) {
          t.is(aad.startHash(column), prefix.length + length);
          const found = Buffer.from(hash.bytes);
          const whole = Buffer.concat([prefix, id]);
          hash.start();
          hash.update(whole, 0, whole.length);
          t.deepEqual(found, Buffer.from(hash.bytes));
        }
      }
    }),
  );
});

// The batched decryption is right, so these tests break it: they put a fault into it and see that node:crypto is believed.

const raw = randomBytes(32);
const keyring = parseKeyring(JSON.stringify({ k1: raw.toString('base64'), k2: randomBytes(32).toString('base64') }));

function withFault<T, K extends keyof T>(prototype: T, method: K, faulty: T[K], run: () => void): void {
  const whole = prototype[method];
  prototype[method] = faulty;
  try {
    run();
  } finally {
    prototype[method] = whole;
  }
}

/** A GHASH that counts the associated data a byte too long. */
const { finish } = Ghash.prototype;
function wrongFinish(this: Ghash, associatedBytes: number, cipherBytes: number): void {
  finish.call(this, associatedBytes + 1, cipherBytes);
}

test.serial(
  'a cell that only node:crypto opens is shown and reported, a damaged one is refused and not reported',
  (t) => {
    const reported: unknown[] = [];
    const reportMismatch = (cell: unknown): unknown => reported.push(cell);
    const options = { keyring, legacy: true, decrypt: 'batched', reportMismatch } as const;
    const codec = codecPresets()['aes-256-gcm'] as Codec;
    const decoder = compileCodec(codec, options, { table: 'klanten', columns: [{ name: 'naam', at: 0 }] });
    const iv = randomBytes(12);
    const cipher = createCipheriv('aes-256-gcm', createSecretKey(raw), iv).setAAD(Buffer.from('w|klanten|naam|7'));
    const sealed = Buffer.concat([iv, cipher.update('Jansen'), cipher.final(), cipher.getAuthTag()]).toString('base64');
    const decoded = (id: string): string => {
      const json = new JsonBytes(9);
      decoder.startRow(Row.of([`enc:v2:k1:${sealed}`]), 'w', id);
      decoder.writeCell(0, json);
      return json.toString();
    };
    withFault(Ghash.prototype, 'finish', wrongFinish, () => {
      t.is(decoded('7'), '"Jansen"');
      t.deepEqual(reported, [{ table: 'klanten', column: 'naam', row: '7' }]);
      t.throws(() => decoded('8'), { message: 'bad_tag' });
      t.is(reported.length, 1);
    });
    t.is(decoded('7'), '"Jansen"');
    t.is(reported.length, 1);
  },
);

test.serial(
  'keys are verified before any value is decrypted, and a difference is an error without key material',
  (t) => {
    verifyKeys(keyring);
    const expectRefusal = (): void => {
      const { message } = t.throws(() => verifyKeys(keyring));
      t.regex(
        message,
        /^Decryption \(batched\) under key "k1" differs from node:crypto's for a message of \d+ bytes\./,
      );
    };
    withFault(Ghash.prototype, 'finish', wrongFinish, expectRefusal);
    withFault(GcmKey.prototype, 'open', () => true, expectRefusal);
    withFault(GcmKey.prototype, 'open', () => false, expectRefusal);
    const { open, queue } = GcmKey.prototype;
    for (let skipped = 0; skipped < 16; skipped++) {
      /** Compares all bytes of the tag but one: it is tried with each value. */
      const careless: typeof open = function (this: GcmKey, bytes, start, cipherBytes, tag, stream, associatedBytes) {
        const state = this.hash.save();
        for (let value = 0; value < 256; value++) {
          bytes[tag + skipped] = value;
          this.hash.startFrom(state, new Int32Array(4));
          if (open.call(this, bytes, start, cipherBytes, tag, stream, associatedBytes)) return true;
        }
        return false;
      };
      withFault(GcmKey.prototype, 'open', careless, expectRefusal);
    }
    function wrongCounter(this: GcmKey, bytes: Uint8Array, iv: number, cipherBytes: number): number {
      return queue.call(this, bytes, iv, cipherBytes) + (cipherBytes === 257 ? 16 : 0);
    }
    withFault(GcmKey.prototype, 'queue', wrongCounter, expectRefusal);
  },
);
