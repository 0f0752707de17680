import { type Cipher, createCipheriv, createDecipheriv, type KeyObject } from 'node:crypto';
import { Ghash } from './ghash.js';
import { type SealLayout, startOf, usualLayout } from './seal-layout.js';

const ivBytes = 12;
const tagBytes = 16;
const blockBytes = 16;

/** Whether messages of this layout can be opened by a GcmKey. */
export function fitsGcmKey({ nonce, tag }: SealLayout): boolean {
  return nonce.bytes === ivBytes && tag.bytes === tagBytes;
}

/** The longest ciphertext that a GcmKey opens; the counter of a message then fits one byte. Longer: openNative. */
export const cipherBytesMax = 1024;
const blocksMax = 1 + cipherBytesMax / blockBytes;

/**
 * AES-256-GCM decryption (NIST SP 800-38D §7.2; 96-bit IV, 128-bit tag) of many short messages under one key.
 *
 * node:crypto needs a decipher per message, 3 to 4 µs each, and a decipher cannot be given another IV. Here one ECB cipher
 * lives as long as the key and encrypts the counter blocks (§6.5) of several messages in one call; GHASH is the gateway's own.
 * With base64 and JSON about 0.75 µs a message. Figures and the other ways that were tried: docs/decisions/0006-own-gcm.md.
 *
 * AES itself stays OpenSSL's, constant in time. GHASH's table look-ups are not: a program that shares the processor's
 * caches may learn the hash subkey. With it an attacker can forge a value but not read any, and must
 * be able to write to the app's table to store it. Over the network only the time of a whole page can be measured. Tags are compared in
 * constant time, and a message whose tag is wrong is not decrypted (§7.2, step 8).
 */
export class GcmKey {
  /** Must hold the hash of the associated data, padded, when `open` is called. */
  readonly hash: Ghash;
  readonly #cipher: Cipher;
  readonly #counters: Buffer;
  #stream: Uint8Array = new Uint8Array();
  #blocks = 0;

  /** `messages` is the largest number of queued messages. */
  constructor(key: KeyObject, messages: number) {
    this.#cipher = createCipheriv('aes-256-ecb', key, null).setAutoPadding(false);
    this.hash = new Ghash(this.#cipher.update(Buffer.alloc(blockBytes)));
    this.#counters = Buffer.alloc(messages * blocksMax * blockBytes);
  }

  /** Queues a message whose IV begins at `iv` in `bytes`; returns the position of its key stream. Throws RangeError. */
  queue(bytes: Uint8Array, iv: number, cipherBytes: number): number {
    const counters = this.#counters;
    const first = this.#blocks * blockBytes;
    const blocks = 1 + Math.ceil(cipherBytes / blockBytes);
    if (blocks > blocksMax || first + blocks * blockBytes > counters.length) throw new RangeError('the queue is full');
    let at = first;
    for (let block = 1; block <= blocks; block++, at += blockBytes) {
      for (let i = 0; i < ivBytes; i++) counters[at + i] = bytes[iv + i] as number;
      counters[at + 15] = block; // bytes 12 to 14 stay zero
    }
    this.#blocks += blocks;
    return first;
  }

  /** Drops the queued messages. */
  clearQueue(): void {
    this.#blocks = 0;
  }

  /** Makes the key streams of the queued messages, in one call of the cipher. */
  makeKeyStreams(): void {
    if (this.#blocks === 0) return;
    this.#stream = this.#cipher.update(this.#counters.subarray(0, this.#blocks * blockBytes));
    this.#blocks = 0;
  }

  /**
   * Decrypts the ciphertext at `start` in place, when the tag at `tag` is that of the associated data in `hash` and the
   * ciphertext. Returns whether it was; when not, `bytes` are as they were.
   */
  open(
    bytes: Uint8Array,
    start: number,
    cipherBytes: number,
    tag: number,
    stream: number,
    associatedBytes: number,
  ): boolean {
    const { hash } = this;
    const keyStream = this.#stream;
    const end = start + cipherBytes;
    if (stream + blockBytes + cipherBytes > keyStream.length || Math.max(end, tag + tagBytes) > bytes.length) {
      throw new RangeError('the message is not the queued one');
    }
    hash.update(bytes, start, end);
    hash.finish(associatedBytes, cipherBytes);
    let difference = 0;
    for (let i = 0; i < tagBytes; i++) {
      difference |= (bytes[tag + i] as number) ^ (keyStream[stream + i] as number) ^ (hash.bytes[i] as number);
    }
    if (difference !== 0) return false;
    for (let i = start, at = stream + blockBytes; i < end; i++, at++) {
      bytes[i] = (bytes[i] as number) ^ (keyStream[at] as number);
    }
    return true;
  }
}

/** Opens a message of any length by Node's own GCM; null when the tag is wrong. */
export function openNative(
  key: KeyObject,
  sealed: Uint8Array,
  associated: Uint8Array | undefined,
  layout: SealLayout = usualLayout,
): Buffer | null {
  const dataBytes = sealed.length - layout.overheadBytes;
  const part = (start: number, bytes: number): Uint8Array => sealed.subarray(start, start + bytes);
  const { nonce, data, tag } = layout;
  const decipher = createDecipheriv('aes-256-gcm', key, part(startOf(nonce, dataBytes), nonce.bytes), {
    authTagLength: tag.bytes,
  });
  if (associated !== undefined) decipher.setAAD(associated);
  decipher.setAuthTag(part(startOf(tag, dataBytes), tag.bytes));
  const opened = decipher.update(part(data.at, dataBytes));
  try {
    decipher.final();
    return opened;
  } catch {
    return null;
  }
}
