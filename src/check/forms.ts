import type { Codec } from '../projection/codec.js';
import { type EncodingName, encodingOf } from '../projection/encodings.js';
import { holdsImage } from '../projection/images.js';

/** The form of a column's values, as a sample shows it. */
export type Form =
  | { readonly kind: 'plain'; readonly isLong: boolean }
  | { readonly kind: 'image' | 'digest' | 'unknown bytes' }
  /** The text in base64, without a key. */
  | { readonly kind: 'base64' }
  /** Encrypted, as it seems: bytes without form behind a prefix, which can hold the key's id. */
  | {
      readonly kind: 'sealed';
      readonly codec: Pick<Codec, 'encoding' | 'prefix'>;
      /** Of older values of the same form. */
      readonly olderPrefix?: string;
      readonly keyIds: string[];
    };

/** A tenth of the values can be damaged. */
const shareMin = 0.9;
const sealedBytesMin = 28; // a nonce of 12 bytes and a tag of 16
const longCharacters = 80;

/** Recognizes the form of a text or bytea column by its values. */
export function formOf(values: readonly string[], isBytea: boolean): Form {
  if (values.length === 0) return isBytea ? { kind: 'unknown bytes' } : { kind: 'plain', isLong: false };
  const images = values.filter((value) => holdsImage(value)).length;
  if (images > values.length / 2) return { kind: 'image' };
  if (isBytea) return sealedForm(values, 'bytea', {}) ?? { kind: isDigest(values) ? 'digest' : 'unknown bytes' };
  const sealed = behindPrefix(values) ?? bare(values);
  if (sealed) return sealed;
  const isBase64 = mostly(decodeAll(values, 'base64'), (bytes) => bytes.length > 3 && isText(bytes));
  if (isBase64 && values.some((value) => value.length >= 8 && /[A-Z].*[a-z]|[0-9=]/.test(value)))
    return { kind: 'base64' };
  return { kind: 'plain', isLong: images > 0 || values.some(({ length }) => length > longCharacters) };
}

function bare(values: readonly string[]): Form | undefined {
  for (const encoding of ['hex', 'base64', 'base64url'] as const) {
    const form = sealedForm(values, encoding, {});
    if (form) return form;
  }
  return undefined;
}

/** Words of letters and digits, each with a character that ends it, before base64: "enc:v2:k1:…". */
const prefixed = /^((?:[A-Za-z0-9_.-]{1,40}[:$|!])+)([A-Za-z0-9+/_=-]+)$/;

function behindPrefix(values: readonly string[]): Form | undefined {
  const parts = values.flatMap((value) => {
    const [, prefix, payload] = prefixed.exec(value) ?? [];
    return prefix !== undefined && payload !== undefined ? [{ words: wordsOf(prefix), payload }] : [];
  });
  if (parts.length < values.length * shareMin) return undefined;
  const payloads = parts.map(({ payload }) => payload);
  const [first] = parts;
  if (first === undefined || parts.some(({ words }) => words.length !== first.words.length)) return undefined;
  const last = first.words.length - 1;
  const hasKeyId = last > 0; // the last of several words
  const heads = [...new Set(parts.map(({ words }) => (hasKeyId ? words.slice(0, -1) : words).join('')))].sort();
  if (heads.length > 2) return undefined;
  const tail = hasKeyId ? `{keyId}${(first.words[last] as string).slice(-1)}` : '';
  const keyIds = hasKeyId ? [...new Set(parts.map(({ words }) => (words[last] as string).slice(0, -1)))].sort() : [];
  const [older, newer] = heads.length === 2 ? heads : [undefined, heads[0]];
  const prefix = { prefix: `${newer}${tail}` };
  const form =
    sealedForm(payloads, 'base64', prefix) ??
    sealedForm(payloads, 'hex', prefix) ??
    sealedForm(payloads, 'base64url', prefix);
  const olderPrefix = older === undefined ? {} : { olderPrefix: `${older}${tail}` };
  return form?.kind === 'sealed' ? { ...form, ...olderPrefix, keyIds } : undefined;
}

/** "enc:v2:k1:" → ["enc:", "v2:", "k1:"]. */
function wordsOf(prefix: string): string[] {
  return prefix.match(/[^:$|!]+[:$|!]/g) ?? [];
}

function sealedForm(
  values: readonly string[],
  encoding: 'base64' | 'base64url' | 'hex' | 'bytea',
  prefix: Pick<Codec, 'prefix'>,
): Form | undefined {
  const isSealed = (bytes: Buffer): boolean => bytes.length >= sealedBytesMin && !isText(bytes);
  const decoded = decodeAll(values, encoding);
  if (!mostly(decoded, isSealed) || isDigest(values)) return undefined;
  return { kind: 'sealed', codec: { encoding, ...prefix }, keyIds: [] };
}

/** Digests have the length of a known hash; texts that are sealed differ in length. */
function isDigest(values: readonly string[]): boolean {
  const hashes = values.map((value) => value.replace(/^\\x/, '')).filter((value) => /^[0-9a-f]{32,128}$/i.test(value));
  const [length = 0, ...others] = new Set(hashes.map((value) => value.length));
  return hashes.length >= values.length * shareMin && others.length === 0 && [32, 40, 64, 96, 128].includes(length);
}

function mostly<T>(values: readonly (T | undefined)[], holds: (value: T) => boolean): boolean {
  const count = values.filter((value) => value !== undefined && holds(value)).length;
  return count > 0 && count >= values.length * shareMin;
}

/** The bytes of each value; undefined for one of another form. */
function decodeAll(values: readonly string[], encoding: EncodingName): (Buffer | undefined)[] {
  const { decode, bytesMax } = encodingOf(encoding);
  return values.map((value) => {
    const stored = Buffer.from(value);
    const bytes = Buffer.alloc(bytesMax(stored.length));
    const length = decode(stored, 0, stored.length, bytes, 0);
    return length < 0 ? undefined : bytes.subarray(0, length);
  });
}

/** Whether the bytes are printable text in UTF-8. */
function isText(bytes: Buffer): boolean {
  const text = bytes.toString('utf8');
  return Buffer.from(text).equals(bytes) && !/[\p{Cc}\p{Cn}\p{Co}]/u.test(text.replace(/[\t\r\n]/g, ''));
}

const address = /[\w.+-]{1,64}@[\w-]+(\.[\w-]+)*\.[a-z]{2,}/i;

/** Whether most values hold an e-mail address. */
export function areAddresses(values: readonly string[]): boolean {
  return values.filter((value) => value.includes('@') && address.test(value)).length > values.length / 2;
}
