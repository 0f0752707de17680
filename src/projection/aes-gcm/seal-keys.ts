import type { KeyObject } from 'node:crypto';
import type { Row } from '../../db/row.js';
import { type Codec, type CodecOptions, templatePieces } from '../codec.js';
import type { DecodeReason } from '../decode-error.js';
import { headerReader } from '../stored-header.js';
import { AadHash } from './aad-hash.js';
import { GcmKey } from './gcm-key.js';

/** A key of the keyring. `gcm` and `aad` are made when first used: native decryption never does. */
export class SealKey {
  readonly object: KeyObject;
  readonly #messages: number;
  #gcm: GcmKey | null = null;
  #aad: AadHash | null = null;

  /** `messages` is the largest number of queued messages. */
  constructor(object: KeyObject, messages: number) {
    this.object = object;
    this.#messages = messages;
  }

  get gcm(): GcmKey {
    this.#gcm ??= new GcmKey(this.object, this.#messages);
    return this.#gcm;
  }

  get aad(): AadHash {
    this.#aad ??= new AadHash(this.gcm.hash);
    return this.#aad;
  }
}

/** The beginning of a stored value, and the key that sealed it. */
export interface SealHeader {
  readonly bytes: Uint8Array;
  readonly key: SealKey;
  /** Whether the value has associated data. */
  readonly bound: boolean;
}

/** The keys that stored values name, for so many cells at a time. */
export class SealKeys {
  readonly #keys: ReadonlyMap<string, SealKey>;
  readonly #read: ReturnType<typeof headerReader>;
  readonly #hasAad: boolean;
  /** Whether a value of today begins with the header of a legacy one, as "enc:2:" does with "enc:". */
  readonly #isHidden: boolean;
  #last: SealHeader | null = null;
  #lastKeyId: string | null = null;

  constructor(codec: Codec, { keyring, legacy }: CodecOptions, cells: number) {
    this.#keys = new Map(keyring.ids.map((id) => [id, new SealKey(keyring.get(id) as KeyObject, cells)]));
    this.#read = headerReader(codec, legacy);
    this.#hasAad = codec.aad !== undefined;
    const [head = ''] = templatePieces(codec.prefix ?? '');
    const [legacyHead = ''] = templatePieces(codec.legacyPrefix ?? '');
    this.#isHidden = head.startsWith(legacyHead);
  }

  /**
   * The header of a stored value, in a column that is not NULL, or the reason why it cannot be opened. `rowKeyId` is the id of the row's key where no prefix
   * holds it, else null.
   */
  headerOf(row: Row, at: number, rowKeyId: string | null): SealHeader | DecodeReason {
    const last = this.#last;
    if (last !== null && rowKeyId === this.#lastKeyId && row.beginsWith(at, last.bytes)) return last;
    const header = this.#read(row.text(at) as string);
    if (typeof header === 'string') return header;
    const key = this.#keys.get(header.keyId ?? rowKeyId ?? '');
    if (key === undefined) return 'unknown_key';
    const found = { bytes: Buffer.from(header.text), key, bound: this.#hasAad && !header.isLegacy };
    if (header.isLegacy && this.#isHidden) return found;
    this.#last = found;
    this.#lastKeyId = rowKeyId;
    return found;
  }

  /** Sets, by column, the part of the associated data before a row's id. */
  setAadPrefixes(prefixes: readonly Uint8Array[]): void {
    for (const { aad } of this.#keys.values()) aad.setPrefixes(prefixes);
  }

  /** Makes the key streams of all queued messages. */
  makeKeyStreams(): void {
    for (const { gcm } of this.#keys.values()) gcm.makeKeyStreams();
  }

  /** Drops the messages that a row left in the queue because one of its cells could not be read. */
  clearQueues(): void {
    for (const { gcm } of this.#keys.values()) gcm.clearQueue();
  }
}
