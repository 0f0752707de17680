import type { KeyObject } from 'node:crypto';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Row } from '../../postgres/row.js';
import type { EncodingName } from './encodings.js';
import type { JsonBytes } from './json-bytes.js';
import type { Keyring } from './keyring.js';

/** config/resource.schema.json explains each key. */
export interface Codec {
  readonly cipher: 'none' | 'aes-256-gcm' | 'module';
  readonly encoding: EncodingName;
  /** Has "{keyId}" at most once; absent: no prefix. */
  readonly prefix?: string;
  /** The only key, or the column with the id; absent: the prefix has it. */
  readonly keyId?: string | { readonly column: string };
  /** Order and sizes of nonce, ciphertext and tag. */
  readonly layout?: readonly string[];
  /** Template of the associated data (AAD); absent: none. */
  readonly aad?: string;
  /** Codec of values with another prefix, while DECODE_LEGACY is true. */
  readonly older?: Codec;
}

export const getHead = ({ prefix = '' }: Pick<Codec, 'prefix'>): string => splitTemplate(prefix)[0] as string;

/** Cuts "enc:v2:" to "enc:v", with which another version of the format begins, too. */
export function getFormat(head: string): string {
  const name = head.replace(/\d+[^\p{L}\d]*$/u, '');
  return name.length < formatMin ? head : name;
}

/** A shorter prefix also occurs in plain texts. */
const formatMin = 3;

export interface PresentRow {
  readonly row: Row;
  readonly workspace: string;
  readonly id: string;
}

/** Appends a JSON string of a cell that is not NULL. Throws DecodeError. */
export type CellAppender = (json: JsonBytes, column: EncodedColumn, present: PresentRow) => void;

export interface EncodedColumn {
  readonly name: string;
  readonly at: number;
}

export interface EncodedRows {
  readonly table: string;
  readonly columns: readonly EncodedColumn[];
  /** Columns with key ids or parts of the associated data. */
  readonly otherColumns?: ReadonlyMap<string, number>;
}

export interface CodecOptions {
  readonly keyring: Keyring;
  readonly legacy: boolean;
  /** Function of CODEC_MODULE; absent: the setting is empty. */
  readonly decode?: DecodeFunction | undefined;
}

const placeholder = /\{([^{}]*)\}/;

/** Splits "a{b}c" into ["a", "b", "c"]: placeholders are at odd places. */
export function splitTemplate(template: string): string[] {
  return template.split(placeholder);
}

const aadPlaceholders: readonly string[] = ['workspace', 'table', 'column', 'id'];

/** Lists the columns to read beside the encoded one: key ids and associated data. */
export function listCodecColumns({ keyId, aad = '' }: Codec): string[] {
  const inAad = splitTemplate(aad).filter((name, i) => i % 2 === 1 && !aadPlaceholders.includes(name));
  return [...(typeof keyId === 'object' ? [keyId.column] : []), ...inAad];
}

export function makeKeyIdReader({ keyId }: Codec, { otherColumns: others }: EncodedRows): (row: Row) => string | null {
  if (typeof keyId !== 'object') return () => keyId ?? null;
  const at = others?.get(keyId.column) as number;
  return (row) => row.getText(at);
}

export interface StoredHeader {
  readonly text: string;
  readonly keyId: string | null;
}

/** Returns null for a value of another form. */
export function makeHeaderReader({ prefix = '' }: Pick<Codec, 'prefix'>): (stored: string) => StoredHeader | null {
  const [head = '', name, tail = ''] = splitTemplate(prefix);
  return (stored) => {
    const keyEnd = name === undefined ? head.length : stored.indexOf(tail, head.length);
    if (!stored.startsWith(head) || keyEnd < 0) return null;
    const keyId = name === undefined ? null : stored.slice(head.length, keyEnd);
    return { text: stored.slice(0, keyEnd + tail.length), keyId };
  };
}

/** Reasons to log and count; the value itself must not be logged. */
export const decodeReasons = ['bad_format', 'unknown_key', 'legacy_refused', 'bad_tag', 'bad_utf8', 'module'] as const;
export type DecodeReason = (typeof decodeReasons)[number];

/** Names no part of the value. */
export class DecodeError extends Error {
  override readonly name = 'DecodeError';
  constructor(readonly reason: DecodeReason) {
    super(reason);
  }
}

export interface CellContext {
  readonly workspace: string;
  readonly table: string;
  readonly column: string;
  readonly id: string;
  /** Null if the codec names no key. */
  readonly keyId: string | null;
  readonly keys: { get(id: string): KeyObject | undefined };
}

/** Returns the text of a cell, or throws. Gets text if the encoding is text. */
export type DecodeFunction = (stored: Buffer | string, context: CellContext) => string;

/** Imports a module's default export, by a path relative to the working directory; undefined for ''. Throws the module's fault. */
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
