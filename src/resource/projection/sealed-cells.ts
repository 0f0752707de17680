import { createDecipheriv, type KeyObject } from 'node:crypto';
import { Row } from '../../postgres/row.js';
import {
  type Codec,
  type CodecOptions,
  DecodeError,
  type EncodedColumn,
  type EncodedRows,
  headerReader,
  headOf,
  type RowDecoder,
  rowKeyId,
  templatePieces,
} from './codec.js';
import { encodingOf } from './encodings.js';
import { isText, type JsonBytes } from './json-bytes.js';
import type { Keyring } from './keyring.js';
import { type SealLayout, type SealPart, sealLayout } from './seal-layout.js';

/** The row whose cells are opened, and its ids. */
interface Place {
  workspace: string;
  id: string;
  row: Row;
}

/** Text of a piece of the template for a cell; null when it is a column that is NULL. */
type PieceText = (place: Place, column: string) => string | null;

/** Makes the function that fills in a template of associated data, such as "{workspace}|{table}|{column}|{id}"; null when a column in it is NULL. */
function aadTemplate(aad: string, { table, others }: EncodedRows): PieceText {
  const ids = new Map<string, PieceText>([
    ['workspace', ({ workspace }) => workspace],
    ['table', () => table],
    ['column', (_, column) => column],
    ['id', ({ id }) => id],
  ]);
  const texts = templatePieces(aad).map((piece, i): PieceText => {
    if (i % 2 === 0) return () => piece;
    const at = others?.get(piece) as number;
    return ids.get(piece) ?? (({ row }) => row.text(at));
  });
  return (place, column) => {
    let filled = '';
    for (const textOf of texts) {
      const text = textOf(place, column);
      if (text === null) return null;
      filled += text;
    }
    return filled;
  };
}

/** The beginning of a stored value, and the key that sealed it. */
interface SealHeader {
  readonly bytes: Uint8Array;
  readonly key: KeyObject;
}

/** Finds the keys that stored values name. */
class SealHeaders {
  readonly #keyring: Keyring;
  readonly #head: Buffer;
  readonly #read: ReturnType<typeof headerReader>;
  #last: SealHeader | null = null;
  #lastKeyId: string | null = null;

  constructor(codec: Codec, keyring: Keyring) {
    this.#keyring = keyring;
    this.#head = Buffer.from(headOf(codec));
    this.#read = headerReader(codec);
  }

  /** The header of a value that is not NULL; `rowKeyId` is the id of the row's key when no prefix holds it. Throws DecodeError. */
  headerOf(row: Row, at: number, rowKeyId: string | null): SealHeader {
    const last = this.#last;
    if (last !== null && rowKeyId === this.#lastKeyId && row.beginsWith(at, last.bytes)) return last;
    const header = row.beginsWith(at, this.#head) ? this.#read(row.text(at) as string) : null;
    if (header === null) throw new DecodeError('bad_format');
    const key = this.#keyring.get(header.keyId ?? rowKeyId ?? '');
    if (key === undefined) throw new DecodeError('unknown_key');
    this.#lastKeyId = rowKeyId;
    this.#last = { bytes: Buffer.from(header.text), key };
    return this.#last;
  }
}

/**
 * Decrypts AES-256-GCM cells, one by one, by node:crypto. A codec describes how values are stored: prefix, encoding and layout,
 * key and associated data (AAD). With the cell in the AAD, a value copied from another cell does not decode. The prefix of
 * older values needs no protection: a value with AAD that is relabelled fails its tag.
 */
export class SealedCells implements RowDecoder {
  readonly #columns: readonly EncodedColumn[];
  readonly #encoding: ReturnType<typeof encodingOf>;
  readonly #layout: SealLayout;
  readonly #headers: SealHeaders;
  readonly #keyIdOf: (row: Row) => string | null;
  readonly #aadOf: PieceText | null;
  readonly #place: Place = { workspace: '', id: '', row: new Row() };
  /** The decoded bytes of a value; nonce and tag are copied out of them, because a view of each costs more. */
  #bytes = Buffer.alloc(256);
  readonly #nonce: Buffer;
  readonly #tag: Buffer;
  readonly #options: { readonly authTagLength: number };

  /** Throws an Error when the layout lacks a part. */
  constructor(codec: Codec, { keyring }: CodecOptions, rows: EncodedRows) {
    const layout = sealLayout(codec.layout ?? []);
    if (layout === null) throw new Error(`The layout of the codec of ${rows.table} lacks a part or repeats one.`);
    this.#columns = rows.columns;
    this.#encoding = encodingOf(codec.encoding);
    this.#layout = layout;
    this.#headers = new SealHeaders(codec, keyring);
    this.#keyIdOf = rowKeyId(codec, rows);
    this.#aadOf = codec.aad === undefined ? null : aadTemplate(codec.aad, rows);
    this.#nonce = Buffer.alloc(layout.nonce.bytes);
    this.#tag = Buffer.alloc(layout.tag.bytes);
    this.#options = { authTagLength: layout.tag.bytes };
  }

  startRow(row: Row, workspace: string, id: string): void {
    const place = this.#place;
    place.row = row;
    place.workspace = workspace;
    place.id = id;
  }

  writeCell(index: number, json: JsonBytes): void {
    const { row } = this.#place;
    const { name, at } = this.#columns[index] as EncodedColumn;
    const { bytes: header, key } = this.#headers.headerOf(row, at, this.#keyIdOf(row));
    const dataBytes = this.#read(row, at, header.length);
    const aad = this.#aadOf?.(this.#place, name);
    if (dataBytes < 0 || aad === null) throw new DecodeError('bad_format');
    const opened = this.#open(key, dataBytes, aad);
    if (opened === null) throw new DecodeError('bad_tag');
    if (!isText(opened, 0, opened.length)) throw new DecodeError('bad_utf8');
    json.string(opened, 0, opened.length);
  }

  /** Decodes the value behind its header; returns the number of bytes of its ciphertext, negative when it has another form. */
  #read({ bytes, starts, ends }: Row, at: number, headerBytes: number): number {
    const [start, end] = [(starts[at] as number) + headerBytes, ends[at] as number];
    const room = this.#encoding.bytesMax(end - start);
    if (room > this.#bytes.length) this.#bytes = Buffer.alloc(room * 2);
    return this.#encoding.decode(bytes, start, end, this.#bytes, 0) - this.#layout.overheadBytes;
  }

  /** Decrypts the bytes that were read; null when the tag is wrong. */
  #open(key: KeyObject, dataBytes: number, aad: string | undefined): Buffer | null {
    const { nonce, data, tag } = this.#layout;
    this.#copy(nonce, dataBytes, this.#nonce);
    this.#copy(tag, dataBytes, this.#tag);
    const decipher = createDecipheriv('aes-256-gcm', key, this.#nonce, this.#options);
    if (aad !== undefined) decipher.setAAD(Buffer.from(aad));
    decipher.setAuthTag(this.#tag);
    const opened = decipher.update(this.#bytes.subarray(data.at, data.at + dataBytes));
    try {
      decipher.final();
      return opened;
    } catch {
      return null;
    }
  }

  #copy({ at, behindData }: SealPart, dataBytes: number, into: Buffer): void {
    const start = at + behindData * dataBytes;
    for (let i = 0; i < into.length; i++) into[i] = this.#bytes[start + i] as number;
  }
}
