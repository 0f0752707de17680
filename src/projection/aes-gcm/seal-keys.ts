import type { KeyObject } from 'node:crypto';
import type { CodecOptions } from '../codecs.js';
import type { DecodeReason } from '../decode-error.js';
import { AadHash } from './aad-hash.js';
import { GcmKey } from './gcm-key.js';

/** A key of the keyring. `gcm` and `aad` are made when first used: native decryption never does. */
export class SealKey {
  readonly object: KeyObject;
  readonly #columns: number;
  #gcm: GcmKey | null = null;
  #aad: AadHash | null = null;

  constructor(object: KeyObject, columns: number) {
    this.object = object;
    this.#columns = columns;
  }

  get gcm(): GcmKey {
    this.#gcm ??= new GcmKey(this.object, this.#columns);
    return this.#gcm;
  }

  get aad(): AadHash {
    this.#aad ??= new AadHash(this.gcm.hash);
    return this.#aad;
  }
}

/** The beginning of a stored value, up to and including the colon behind the key id. */
export interface SealHeader {
  readonly text: string;
  readonly key: SealKey;
  /** Whether the value has associated data, which names the cell for which it was sealed. */
  readonly bound: boolean;
}

const versionLength = 'enc:v2:'.length;

/** The keys that stored values name, for rows with so many sealed columns. */
export class SealKeys {
  readonly #keys: ReadonlyMap<string, SealKey>;
  readonly #legacy: boolean;
  #last: SealHeader | null = null;

  constructor({ keyring, legacy }: CodecOptions, columns: number) {
    this.#keys = new Map(keyring.ids.map((id) => [id, new SealKey(keyring.get(id) as KeyObject, columns)]));
    this.#legacy = legacy;
  }

  /** The header of a stored value, or the reason why it cannot be opened. */
  headerOf(stored: string): SealHeader | DecodeReason {
    if (this.#last !== null && stored.startsWith(this.#last.text)) return this.#last;
    const bound = stored.startsWith('enc:v2:');
    if (!bound && !stored.startsWith('enc:v1:')) return 'bad_format';
    const keyEnd = stored.indexOf(':', versionLength);
    if (keyEnd < 0) return 'bad_format';
    if (!bound && !this.#legacy) return 'legacy_refused';
    const key = this.#keys.get(stored.slice(versionLength, keyEnd));
    if (key === undefined) return 'unknown_key';
    this.#last = { text: stored.slice(0, keyEnd + 1), key, bound };
    return this.#last;
  }

  /** Sets, by column, the part of the associated data before a row's id. */
  setAadPrefixes(prefixes: readonly Uint8Array[]): void {
    for (const { aad } of this.#keys.values()) aad.setPrefixes(prefixes);
  }

  /** Drops the messages that a row left in the queue because one of its cells could not be read. */
  clearQueues(): void {
    for (const { gcm } of this.#keys.values()) gcm.clearQueue();
  }
}
