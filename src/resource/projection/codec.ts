import type { KeyObject } from 'node:crypto';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Row } from '../../postgres/row.js';
import type { EncodingName } from './encodings.js';
import type { JsonBytes } from './json-bytes.js';
import type { Keyring } from './keyring.js';

/** How a stored text is encoded, as config/codecs.json and definitions describe it; config/resource.schema.json explains each key. */
export interface Codec {
  readonly cipher: 'none' | 'aes-256-gcm' | 'module';
  readonly encoding: EncodingName;
  /** Text before the encoded bytes, at most once with "{keyId}"; absent: there is none. */
  readonly prefix?: string;
  /** Id of the only key, or the column that holds the id; absent: the prefix holds it. */
  readonly keyId?: string | { readonly column: string };
  /** Order and sizes of nonce, ciphertext and tag in the bytes. */
  readonly layout?: readonly string[];
  /** Template of the associated data (AAD); absent: there is none. */
  readonly aad?: string;
  /** The codec of older values, which begin otherwise; read as long as DECODE_LEGACY is true. */
  readonly older?: Codec;
}

/** Text before the key id in the prefix of a codec; '' without any. */
export const headOf = ({ prefix = '' }: Pick<Codec, 'prefix'>): string => templatePieces(prefix)[0] as string;

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

/** A row whose cells are decoded, and its ids as text. */
export interface PresentRow {
  readonly row: Row;
  readonly workspace: string;
  readonly id: string;
}

/** Writes the text of a cell, which is not NULL, as a JSON string. Throws DecodeError before it writes a byte. */
export type CellWriter = (json: JsonBytes, column: EncodedColumn, present: PresentRow) => void;

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
  /** Positions of the columns, of which some hold key ids or parts of the associated data, by name. */
  readonly others?: ReadonlyMap<string, number>;
}

/** Dependencies of the codecs. */
export interface CodecOptions {
  readonly keyring: Keyring;
  /** Whether older values, of which another codec is named, are still read. */
  readonly legacy: boolean;
  /** The function of CODEC_MODULE; absent: the setting is empty. */
  readonly decode?: DecodeFunction | undefined;
}

const placeholder = /\{([^{}]*)\}/;

/** "a{b}c" → ["a", "b", "c"]: texts at even places, the names of placeholders at odd ones. */
export function templatePieces(template: string): string[] {
  return template.split(placeholder);
}

/** Placeholders of an AAD template that are no columns of the row. */
const aadPlaceholders: readonly string[] = ['workspace', 'table', 'column', 'id'];

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

/** The beginning of a stored value, up to the encoded bytes. */
export interface StoredHeader {
  readonly text: string;
  /** Id of the key in it; null when it holds none. */
  readonly keyId: string | null;
}

/** Makes the function that finds the header of a stored value; null when it has another form. */
export function headerReader({ prefix = '' }: Pick<Codec, 'prefix'>): (stored: string) => StoredHeader | null {
  const [head = '', name, tail = ''] = templatePieces(prefix);
  return (stored) => {
    const keyEnd = name === undefined ? head.length : stored.indexOf(tail, head.length);
    if (!stored.startsWith(head) || keyEnd < 0) return null;
    const keyId = name === undefined ? null : stored.slice(head.length, keyEnd);
    return { text: stored.slice(0, keyEnd + tail.length), keyId };
  };
}

/** Reasons why a stored value cannot be decoded: codes, which are logged and counted, as the value must not be. */
export const decodeReasons = ['bad_format', 'unknown_key', 'legacy_refused', 'bad_tag', 'bad_utf8', 'module'] as const;
export type DecodeReason = (typeof decodeReasons)[number];

/** A stored value could not be decoded. Has the reason, and no part of the value. */
export class DecodeError extends Error {
  override readonly name = 'DecodeError';
  constructor(readonly reason: DecodeReason) {
    super(reason);
  }
}

/** The cell that a codec module decodes. Ids are texts. */
export interface CellContext {
  readonly workspace: string;
  readonly table: string;
  readonly column: string;
  readonly id: string;
  /** From the prefix, the column or the definition, as the codec says; null when it names no key. */
  readonly keyId: string | null;
  /** The keys of DATA_KEYS. */
  readonly keys: { get(id: string): KeyObject | undefined };
}

/** The default export of a codec module: returns the text of a cell, or throws. Bytes, or the text where the encoding is text. */
export type DecodeFunction = (stored: Buffer | string, context: CellContext) => string;

/**
 * Imports the ES module at `path` (relative to the working directory) and returns its default export; undefined when the path
 * is empty. Throws an Error that says what is wrong with the module.
 */
export async function loadCodecModule(path: string): Promise<DecodeFunction | undefined> {
  if (path === '') return undefined;
  const loaded = await import(pathToFileURL(resolve(path)).href).catch((error: Error) => {
    throw new Error(`${resolve(path)} cannot be loaded: ${error.message}`);
  });
  const decode: unknown = loaded.default;
  if (typeof decode !== 'function') throw new Error(`${path} has no function as its default export`);
  if (decode.constructor.name !== 'Function')
    throw new Error(`the function of ${path} is asynchronous or a generator: it must return the text itself`);
  return decode as DecodeFunction;
}
