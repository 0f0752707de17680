import type { KeyObject } from 'node:crypto';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Row } from '../postgres/row.js';
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

/** The beginning of a stored value, up to the encoded bytes. */
export interface StoredHeader {
  readonly text: string;
  /** Id of the key in it; null when it holds none. */
  readonly keyId: string | null;
  /** Whether it is the legacy prefix. */
  readonly isLegacy: boolean;
}

/** Makes the function that finds the header of a stored value, or the reason why there is none. */
export function headerReader(
  { prefix = '', legacyPrefix }: Pick<Codec, 'prefix' | 'legacyPrefix'>,
  allowLegacy: boolean,
): (stored: string) => StoredHeader | DecodeReason {
  const forms = [prefix, ...(legacyPrefix === undefined ? [] : [legacyPrefix])].map((template, i) => {
    const [head = '', keyId, tail = ''] = templatePieces(template);
    return { head, hasKeyId: keyId !== undefined, tail, isLegacy: i > 0 };
  });
  return (stored) => {
    const form = forms.find(({ head }) => stored.startsWith(head));
    if (form === undefined) return 'bad_format';
    const { head, hasKeyId, tail, isLegacy } = form;
    const keyEnd = hasKeyId ? stored.indexOf(tail, head.length) : head.length;
    if (keyEnd < 0) return 'bad_format';
    if (isLegacy && !allowLegacy) return 'legacy_refused';
    const keyId = hasKeyId ? stored.slice(head.length, keyEnd) : null;
    return { text: stored.slice(0, keyEnd + tail.length), keyId, isLegacy };
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

const loadMaxMs = 10_000;

/**
 * Imports the ES module at `path` (relative to the working directory) and returns its default export; undefined when the path
 * is empty. Throws an Error that says what is wrong with the module.
 */
export async function loadCodecModule(path: string): Promise<DecodeFunction | undefined> {
  if (path === '') return undefined;
  const decode = await defaultExportOf(resolve(path));
  if (typeof decode !== 'function') throw new Error(`${path} has no function as its default export`);
  if (decode.constructor.name !== 'Function')
    throw new Error(`the function of ${path} is asynchronous or a generator: it must return the text itself`);
  return decode as DecodeFunction;
}

async function defaultExportOf(path: string): Promise<unknown> {
  const late = new AbortController();
  const timeout = new Promise<never>((_, reject) => {
    const timer = setTimeout(() => reject(new Error(`${path} was not loaded within ${loadMaxMs / 1000} s`)), loadMaxMs);
    late.signal.addEventListener('abort', () => clearTimeout(timer));
  });
  try {
    const loaded: { readonly default?: unknown } = await Promise.race([import(pathToFileURL(path).href), timeout]);
    return loaded.default;
  } catch (error) {
    throw new Error(`${path} cannot be loaded: ${(error as Error).message}`);
  } finally {
    late.abort();
  }
}
