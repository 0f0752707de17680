import { decoded, type EncodingName } from '../../resource/projection/encodings.js';
import { holdsImage } from '../../resource/projection/images.js';

export type Form =
  | { readonly kind: 'plain'; readonly isLong: boolean }
  | { readonly kind: 'image' | 'digest' | 'unknown bytes' }
  | { readonly kind: 'base64' }
  /** Bytes without form, also after a prefix such as "enc:v2:k1:". */
  | { readonly kind: 'sealed' };

/** A tenth of the values can be damaged. */
const shareMin = 0.9;
const sealedBytesMin = 28; // a nonce of 12 bytes and a tag of 16
const longCharacters = 80;

export function formOf(values: readonly string[], isBytea: boolean): Form {
  if (values.length === 0) return isBytea ? { kind: 'unknown bytes' } : { kind: 'plain', isLong: false };
  const images = values.filter((value) => holdsImage(value)).length;
  if (images > values.length / 2) return { kind: 'image' };
  if (isSealed(values, isBytea ? ['bytea'] : ['hex', 'base64', 'base64url'])) return { kind: 'sealed' };
  if (isBytea) return { kind: isDigest(values) ? 'digest' : 'unknown bytes' };
  const isBase64 = mostly(values, 'base64', (bytes) => bytes.length > 3 && isText(bytes));
  if (isBase64 && values.some((value) => value.length >= 8 && /[A-Z].*[a-z]|[0-9=]/.test(value)))
    return { kind: 'base64' };
  return { kind: 'plain', isLong: images > 0 || values.some(({ length }) => length > longCharacters) };
}

/** Words before base64: "enc:v2:k1:…". */
const prefixed = /^(?:[A-Za-z0-9_.-]{1,40}[:$|!])+([A-Za-z0-9+/_=-]+)$/;

function isSealed(values: readonly string[], encodings: readonly EncodingName[]): boolean {
  const payloads = values.flatMap((value) => prefixed.exec(value)?.[1] ?? []);
  const texts = payloads.length < values.length * shareMin ? values : payloads;
  const hasNoForm = (bytes: Buffer): boolean => bytes.length >= sealedBytesMin && !isText(bytes);
  return !isDigest(texts) && encodings.some((encoding) => mostly(texts, encoding, hasNoForm));
}

/** Digests have the length of a known hash; texts that are sealed differ in length. */
function isDigest(values: readonly string[]): boolean {
  const hashes = values.map((value) => value.replace(/^\\x/, '')).filter((value) => /^[0-9a-f]{32,128}$/i.test(value));
  const [length = 0, ...others] = new Set(hashes.map((value) => value.length));
  return hashes.length >= values.length * shareMin && others.length === 0 && [32, 40, 64, 96, 128].includes(length);
}

function mostly(values: readonly string[], encoding: EncodingName, holds: (bytes: Buffer) => boolean): boolean {
  const bytes = values.flatMap((value) => decoded(encoding, Buffer.from(value)) ?? []);
  const count = bytes.filter(holds).length;
  return count > 0 && count >= values.length * shareMin;
}

function isText(bytes: Buffer): boolean {
  const text = bytes.toString('utf8');
  return Buffer.from(text).equals(bytes) && !/[\p{Cc}\p{Cn}\p{Co}]/u.test(text.replace(/[\t\r\n]/g, ''));
}
