import { createCipheriv, createSecretKey, randomBytes } from 'node:crypto';
import test from 'ava';
import { Row } from '../../src/db/row.js';
import { codecPresets } from '../../src/definition/load.js';
import { GcmKey, Ghash } from '../../src/projection/aes-gcm/gcm-key.js';
import { verifyKeys } from '../../src/projection/aes-gcm/verify-keys.js';
import type { Codec } from '../../src/projection/codec.js';
import { compileCodec } from '../../src/projection/codecs.js';
import { JsonBytes } from '../../src/projection/json-bytes.js';
import { parseKeyring } from '../../src/projection/keyring.js';

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
