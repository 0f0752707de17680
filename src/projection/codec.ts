import type { Row } from '../db/row.js';
import type { DecodeFunction } from './codec-module.js';
import type { EncodingName } from './encodings.js';
import type { JsonBytes } from './json-bytes.js';
import type { Keyring } from './keyring.js';

/** How a stored text is encoded, as config/codecs.json and definitions describe it; config/resource.schema.json explains each key. */
export interface Codec {
  readonly cipher: 'none' | 'aes-256-gcm' | 'module';
  readonly encoding: EncodingName;
  /** Text before the encoded bytes, at most once with "{keyId}"; absent: there is none. */
  readonly prefix?: string;
  /** Prefix of values without associated data, read as long as DECODE_LEGACY is true. */
  readonly legacyPrefix?: string;
  /** Id of the only key, or the column that holds the id; absent: the prefix holds it. */
  readonly keyId?: string | { readonly column: string };
  /** Order and sizes of nonce, ciphertext and tag in the bytes. */
  readonly layout?: readonly string[];
  /** Template of the associated data (AAD); absent: there is none. */
  readonly aad?: string;
  /** Name of the codec of older values, which begin otherwise; read as long as DECODE_LEGACY is true. */
  readonly older?: string;
}

/** Text before a key id in the prefixes of a codec, where it has any. */
export function headsOf({ prefix, legacyPrefix }: Codec): string[] {
  return [prefix, legacyPrefix].flatMap((template) =>
    template === undefined ? [] : templatePieces(template)[0] || [],
  );
}

/** "enc:v2:" → "enc:v": another version of a format begins with it, too. */
export function formatOf(head: string): string {
  const name = head.replace(/\d+[^\p{L}\d]*$/u, '');
  return name.length < formatMin ? head : name;
}

/** A shorter prefix stands in plain texts, too. */
export const formatMin = 3;

/** Decodes the encoded cells of rows, a row at a time. */
export interface RowDecoder {
  /** Sets the present row, which must not change until its cells are written. `workspace` and `id` are ids as text. */
  readonly startRow: (row: Row, workspace: string, id: string) => void;
  /** Writes the text of a cell of that row as a JSON string, by the index of its column. Throws DecodeError before it writes a byte. */
  readonly writeCell: (column: number, json: JsonBytes) => void;
}

/** A column to decode, and its position in the rows. */
export interface EncodedColumn {
  readonly name: string;
  readonly at: number;
}

/** The rows that a decoder reads. */
export interface EncodedRows {
  /** The app's table, as associated data name it. */
  readonly table: string;
  /** The columns to decode. */
  readonly columns: readonly EncodedColumn[];
  /** Positions of the columns that hold key ids or parts of the associated data, by name. */
  readonly others?: ReadonlyMap<string, number>;
}

/** How sealed cells are decrypted: those of a row together (docs/decisions/0006-own-gcm.md), or each by node:crypto. */
export type DecryptMode = 'batched' | 'native';

/** Dependencies of the codecs. */
export interface CodecOptions {
  readonly keyring: Keyring;
  /** Whether values with a legacy prefix, which have no associated data, are still read. */
  readonly legacy: boolean;
  readonly decrypt: DecryptMode;
  /** Called when batched decryption refused a cell that node:crypto opened. */
  readonly reportMismatch: (cell: { readonly table: string; readonly column: string; readonly row: string }) => void;
  /** The function of CODEC_MODULE; absent: the setting is empty. */
  readonly decode?: DecodeFunction | undefined;
}

const placeholder = /\{([^{}]*)\}/;

/** "a{b}c" → ["a", "b", "c"]: texts at even places, the names of placeholders at odd ones. */
export function templatePieces(template: string): string[] {
  return template.split(placeholder);
}

/** Placeholders of an AAD template that are no columns of the row. */
export const aadPlaceholders: readonly string[] = ['workspace', 'table', 'column', 'id'];

/** The columns of a row that a codec reads beside the encoded ones: the key id's and those in its associated data. */
export function codecColumns({ keyId, aad = '' }: Codec): string[] {
  const inAad = templatePieces(aad).filter((name, i) => i % 2 === 1 && !aadPlaceholders.includes(name));
  return [...(typeof keyId === 'object' ? [keyId.column] : []), ...inAad];
}

/** The id of the key of a row's cells where no prefix holds it: the definition's, or that of its column. */
export function rowKeyId({ keyId }: Codec, { others }: EncodedRows): (row: Row) => string | null {
  if (typeof keyId !== 'object') return () => keyId ?? null;
  const at = others?.get(keyId.column) as number;
  return (row) => row.text(at);
}
