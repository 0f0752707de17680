import { createDecipheriv } from 'node:crypto';
import { sealLayout, startOf } from '../projection/aes-gcm/gcm-key.js';
import { type Codec, templatePieces } from '../projection/codec.js';
import { type EncodingName, encodingOf } from '../projection/encodings.js';
import { holdsImage } from '../projection/images.js';
import type { Keyring } from '../projection/keyring.js';
import { isNamed } from './names.js';

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

/** Digests all have the length of a known hash; texts that are sealed differ in length. */
function isDigest(values: readonly string[]): boolean {
  const hexOf = (value: string): string => value.replace(/^\\x/, '');
  const lengths = new Set(values.map((value) => hexOf(value).length));
  return (
    lengths.size === 1 &&
    values.every((value) => /^([0-9a-f]{2}){16,64}$/i.test(hexOf(value))) &&
    [32, 40, 64, 96, 128].includes(hexOf(values[0] as string).length)
  );
}

function mostly<T>(values: readonly (T | undefined)[], holds: (value: T) => boolean): boolean {
  const count = values.filter((value) => value !== undefined && holds(value)).length;
  return count > 0 && count >= values.length * shareMin;
}

/** The bytes of each value; undefined for one of another form. */
function decodeAll(values: readonly string[], encoding: EncodingName, start = 0): (Buffer | undefined)[] {
  const { decode, bytesMax } = encodingOf(encoding);
  return values.map((value) => {
    const stored = Buffer.from(value.slice(start));
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

/** A sealed cell and all that its associated data can name. */
export interface SealedCell {
  readonly value: string;
  /** From its column or the prefix; absent: it is tried with every key. */
  readonly keyId?: string;
  readonly names: Readonly<Record<'workspace' | 'table' | 'column' | 'id', string>>;
}

/** How cells were opened: the keys that a codec lacks, and the texts. */
export interface Opened {
  readonly codec: Pick<Codec, 'layout' | 'aad'>;
  readonly keyId: string;
  readonly texts: string[];
}

const layouts: readonly (readonly string[])[] = ['nonce12', 'nonce16'].flatMap((nonce) => [
  [nonce, 'data', 'tag16'],
  [nonce, 'tag16', 'data'],
  ['tag16', nonce, 'data'],
  ['data', 'tag16', nonce],
  ['data', nonce, 'tag16'],
  ['tag16', 'data', nonce],
]);

/** Names in the order in which apps put them into associated data; RECORD is the table's name in the singular. */
const aadNames = [
  ['{id}'],
  ['{workspace}'],
  ['{workspace}', '{id}'],
  ['{table}', '{id}'],
  ['RECORD', '{id}'],
  ['{column}', '{id}'],
  ['{id}', '{column}'],
  ['{table}', '{column}', '{id}'],
  ['RECORD', '{column}', '{id}'],
  ['{workspace}', '{table}', '{id}'],
  ['{workspace}', 'RECORD', '{id}'],
  ['{workspace}', '{table}', '{column}', '{id}'],
];
const separators = [':', '|', '/', '.'];
const cellsTried = 3;

/** Opens cells with the keys at hand by trying layouts and associated data; undefined when none of them fits. */
export function openCells(
  cells: readonly SealedCell[],
  { encoding, prefix = '' }: Pick<Codec, 'encoding' | 'prefix'>,
  keyring: Keyring,
  record: string,
): Opened | undefined {
  const templates = [
    undefined,
    ...new Set(aadNames.flatMap((names) => separators.map((by) => names.join(by).replace('RECORD', record)))),
  ];
  const bytesOf = (cell: SealedCell): Buffer | undefined => {
    const start = prefix.replace('{keyId}', cell.keyId ?? '').length;
    return decodeAll([cell.value], encoding, start)[0];
  };
  for (const cell of cells.slice(0, cellsTried)) {
    const bytes = bytesOf(cell);
    if (bytes === undefined) continue;
    for (const keyId of cell.keyId === undefined ? keyring.ids : [cell.keyId])
      for (const layout of layouts)
        for (const aad of templates) {
          if (open(bytes, keyring, keyId, layout, aadOf(aad, cell)) === undefined) continue;
          const texts = cells.flatMap((each) => {
            const found = bytesOf(each);
            return (found && open(found, keyring, each.keyId ?? keyId, layout, aadOf(aad, each))) ?? [];
          });
          return { codec: { layout, ...(aad !== undefined && { aad }) }, keyId, texts };
        }
  }
  return undefined;
}

function aadOf(template: string | undefined, { names }: SealedCell): Buffer | undefined {
  if (template === undefined) return undefined;
  const pieces = templatePieces(template);
  return Buffer.from(pieces.map((piece, i) => (i % 2 === 0 ? piece : names[piece as keyof typeof names])).join(''));
}

function open(
  bytes: Buffer,
  keyring: Keyring,
  keyId: string,
  layout: readonly string[],
  aad: Buffer | undefined,
): string | undefined {
  const key = keyring.get(keyId);
  const places = sealLayout(layout);
  if (key === undefined || places === null) return undefined;
  const dataBytes = bytes.length - places.overheadBytes;
  if (dataBytes < 0) return undefined;
  const part = (name: 'nonce' | 'tag' | 'data'): Buffer => {
    const start = startOf(places[name], dataBytes);
    return bytes.subarray(start, start + (name === 'data' ? dataBytes : places[name].bytes));
  };
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, part('nonce'), { authTagLength: places.tag.bytes });
    if (aad !== undefined) decipher.setAAD(aad);
    decipher.setAuthTag(part('tag'));
    return Buffer.concat([decipher.update(part('data')), decipher.final()]).toString('utf8');
  } catch {
    return undefined; // another key, layout or AAD
  }
}

/** Whether the name speaks of personal data or of secrets. */
export const isPersonal = (name: string): boolean =>
  isNamed('contact', name) || isNamed('birth', name) || isNamed('secret', name);

/** Whether the value has a member of such a name, at any depth and in texts that are JSON; one that says yes or no tells nothing. */
export function hasPersonal(value: unknown): boolean {
  if (typeof value === 'string') return /^\s*[[{]/.test(value) && hasPersonal(parsed(value));
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(value).some(
    ([name, member]) => (isPersonal(name) && typeof member !== 'boolean') || hasPersonal(member),
  );
}

/** Why no field shows a column, by its values; undefined: one does. */
export function reasonByValues(values: readonly string[]): string | undefined {
  const addresses = values.filter((value) => value.includes('@') && address.test(value)).length;
  if (addresses > values.length / 2) return 'e-mail addresses, by the values';
  if (values.some(isPersonalDocument)) return 'documents with personal data, by the names of their members';
  return undefined;
}

const address = /[\w.+-]{1,64}@[\w-]+(\.[\w-]+)*\.[a-z]{2,}/i;

/** How documents begin, and the names of their members: JSON that the sample has cut, hstore, YAML, XML, and PHP's own form. */
const documents: readonly (readonly [begins: RegExp, names: RegExp])[] = [
  [/^\s*[[{]/, /"([^"\\]{1,100})"\s*:(?!\s*(?:true|false)\b)/g],
  [/^"[^"]*"=>/, /"([^"\\]{1,100})"=>/g],
  [/^---\s/, /^[ \t-]*:?["']?(\w[\w .-]{0,100}?)["']?:(?!\s*(?:true|false)\b)/gm],
  [/^\s*</, /<([\w.-]{1,100})/g],
  [/^[aO]:\d+:/, /s:\d+:"([^"]{1,100})";(?!b:)/g],
];

function isPersonalDocument(text: string): boolean {
  const [, names] = documents.find(([begins]) => begins.test(text)) ?? [];
  if (names === undefined) return false;
  const value = parsed(text);
  return value === undefined ? [...text.matchAll(names)].some(([, name = '']) => isPersonal(name)) : hasPersonal(value);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
