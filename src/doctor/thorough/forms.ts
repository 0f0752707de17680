import { decodeWith, type EncodingName } from '../../resource/projection/encodings.js';
import { holdsImage } from '../../resource/projection/images.js';

export type Form =
  | { readonly kind: 'plain'; readonly isLong: boolean }
  | { readonly kind: 'image' | 'digest' | 'unknown bytes' }
  | { readonly kind: 'base64' }
  /** Bytes without a form, also after a prefix such as "enc:v2:k1:". */
  | { readonly kind: 'sealed' };

/** A tenth of the values can be damaged. */
const shareMin = 0.9;
const sealedBytesMin = 28; // a nonce of 12 bytes and a tag of 16
const longCharacters = 80;

export function guessForm(values: readonly string[], isBytea: boolean): Form {
  if (values.length === 0) return isBytea ? { kind: 'unknown bytes' } : { kind: 'plain', isLong: false };
  const images = values.filter((value) => holdsImage(value)).length;
  if (images > values.length / 2) return { kind: 'image' };
  if (values.filter(isSealedDocument).length >= values.length * shareMin) return { kind: 'sealed' };
  if (isSealed(values, isBytea ? ['bytea'] : ['hex', 'base64', 'base64url'])) return { kind: 'sealed' };
  if (isBytea) return { kind: isDigest(values) ? 'digest' : 'unknown bytes' };
  const isBase64 = holdsMostly(values, 'base64', (bytes) => bytes.length > 3 && isPrintable(bytes));
  if (isBase64 && values.some((value) => value.length >= 8 && /[A-Z].*[a-z]|[0-9=]/.test(value)))
    return { kind: 'base64' };
  return { kind: 'plain', isLong: images > 0 || values.some(({ length }) => length > longCharacters) };
}

/** Words before base64: "enc:v2:k1:…". */
const prefixed = /^(?:[A-Za-z0-9_.-]{1,40}[:$|!])+([A-Za-z0-9+/_=-]+)$/;

/** Recognizes data beside the nonce in hexadecimal digits or in JSON, which can be in base64, and known armours. */
export function isSealedDocument(text: string): boolean {
  const isKnown =
    /^(-----BEGIN PGP MESSAGE|age-encryption\.org|gAAAA[\w-]{60}|[0-9a-f]{24,}([:.$|][0-9a-f]{16,})+$)/i.test(text);
  if (isKnown) return true;
  const json = text.startsWith('{') ? text : (decodeWith('base64', Buffer.from(text))?.toString() ?? '');
  return (
    /^\{.*"(iv|nonce)"\s*:\s*"[\w+/=-]{8,}"/s.test(json) &&
    /"(p|ct|data|value|content|payload|cipher\w*|encrypted\w*)"\s*:\s*"/i.test(json)
  );
}

const randomMin = 8;

/** Returns false for codes, keys and links: texts of one word, each once and in no order. */
export function areRandom(values: readonly string[]): boolean {
  const texts = values.map((value) => value.replaceAll(/[_=+/-]/g, ''));
  if (
    values.length < randomMin ||
    new Set(values).size < values.length ||
    !texts.every((text) => /^[a-z\d]{6,200}$/i.test(text))
  )
    return false;
  const all = texts.join(' ');
  const share = (form: RegExp): number => (all.match(form)?.length ?? 0) / all.length;
  if (texts.every((text) => /^\d{6,8}$/.test(text))) {
    const numbers = texts.map(Number);
    return Math.max(...numbers) - Math.min(...numbers) > numbers.length * 1000;
  }
  const changes = share(changesOfKind);
  return changes > 0.25 || (share(/\d/g) === 0 && share(/[aeiouy]/gi) < 0.25);
}

/** The expression matches between small letters, capital letters and digits. */
const changesOfKind = /(?<=[a-z])[A-Z\d]|(?<=[A-Z])[a-z\d]|(?<=\d)[A-Za-z]/g;

function isSealed(values: readonly string[], encodings: readonly EncodingName[]): boolean {
  const payloads = values.flatMap((value) => prefixed.exec(value)?.[1] ?? []);
  const texts = payloads.length < values.length * shareMin ? values : payloads;
  const hasNoForm = (bytes: Buffer): boolean => bytes.length >= sealedBytesMin && !isPrintable(bytes);
  return !isDigest(texts) && encodings.some((encoding) => holdsMostly(texts, encoding, hasNoForm));
}

/** Recognizes digests by the length of a known hash; sealed texts differ in length. */
function isDigest(values: readonly string[]): boolean {
  const hashes = values.map((value) => value.replace(/^\\x/, '')).filter((value) => /^[0-9a-f]{32,128}$/i.test(value));
  const [length = 0, ...others] = new Set(hashes.map((value) => value.length));
  return hashes.length >= values.length * shareMin && others.length === 0 && [32, 40, 64, 96, 128].includes(length);
}

function holdsMostly(values: readonly string[], encoding: EncodingName, holds: (bytes: Buffer) => boolean): boolean {
  const bytes = values.flatMap((value) => decodeWith(encoding, Buffer.from(value)) ?? []);
  const count = bytes.filter(holds).length;
  return count > 0 && count >= values.length * shareMin;
}

function isPrintable(bytes: Buffer): boolean {
  const text = bytes.toString('utf8');
  return Buffer.from(text).equals(bytes) && !/[\p{Cc}\p{Cn}\p{Co}]/u.test(text.replace(/[\t\r\n]/g, ''));
}
