import type { KeyObject } from 'node:crypto';
import type { CodecOptions } from '../codecs.js';
import type { DecodeReason } from '../decode-error.js';
import { AadHash } from './aad-hash.js';
import { GcmKey } from './gcm-key.js';

/** A key of the keyring, ready to open the cells of a row. */
export interface SealKey {
  readonly object: KeyObject;
  readonly gcm: GcmKey;
  readonly aad: AadHash;
}

/** What a stored value begins with, up to and including the colon behind the key id. */
export interface SealHeader {
  readonly text: string;
  readonly key: SealKey;
  /** Whether the value is bound to its place. */
  readonly bound: boolean;
}

const versionLength = 'enc:v2:'.length;

/** The keys that stored values name, for the cells of `columns` columns at a time. */
export class SealKeys {
  readonly #keys: ReadonlyMap<string, SealKey>;
  readonly #legacy: boolean;
  #last: SealHeader | null = null;

  constructor({ keyring, legacy }: CodecOptions, columns: number) {
    this.#keys = new Map(keyring.ids.map((id) => [id, sealKey(keyring.get(id) as KeyObject, columns)]));
    this.#legacy = legacy;
  }

  /** What the value begins with, or why it cannot be opened. */
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

  /** Takes what stands before a row's id in the places of the columns. */
  enter(prefixes: readonly Uint8Array[]): void {
    for (const { aad } of this.#keys.values()) aad.enter(prefixes);
  }

  /** Forgets what a row left behind that could not be opened. */
  forget(): void {
    for (const { gcm } of this.#keys.values()) gcm.forget();
  }
}

function sealKey(object: KeyObject, columns: number): SealKey {
  const gcm = new GcmKey(object, columns);
  return { object, gcm, aad: new AadHash(gcm.hash) };
}
