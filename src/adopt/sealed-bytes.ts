import { createDecipheriv } from 'node:crypto';
import { sealLayout, startOf } from '../projection/aes-gcm/gcm-key.js';
import { type Codec, templatePieces } from '../projection/codec.js';
import { type EncodingName, encodingOf } from '../projection/encodings.js';
import type { Keyring } from '../projection/keyring.js';

/** The bytes of each value; undefined for one of another form. */
export function decodeAll(values: readonly string[], encoding: EncodingName, start = 0): (Buffer | undefined)[] {
  const { decode, bytesMax } = encodingOf(encoding);
  return values.map((value) => {
    const stored = Buffer.from(value.slice(start));
    const bytes = Buffer.alloc(bytesMax(stored.length));
    const length = decode(stored, 0, stored.length, bytes, 0);
    return length < 0 ? undefined : bytes.subarray(0, length);
  });
}

/** Whether the bytes are printable text in UTF-8. */
export function isText(bytes: Buffer): boolean {
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
