import { Row } from '../../db/row.js';
import {
  type Codec,
  type CodecOptions,
  type EncodedColumn,
  type EncodedRows,
  type RowDecoder,
  rowKeyId,
} from '../codec.js';
import { DecodeError, type DecodeReason } from '../decode-error.js';
import { encodingOf } from '../encodings.js';
import { isText, type JsonBytes } from '../json-bytes.js';
import { AadTemplate } from './aad-template.js';
import { cipherBytesMax, fitsGcmKey, openNative } from './gcm-key.js';
import { type SealHeader, type SealKey, SealKeys } from './seal-keys.js';
import { type SealLayout, sealLayout, startOf } from './seal-layout.js';

/** A column, and its cell in a row. */
interface Cell {
  readonly column: EncodedColumn;
  readonly index: number;
  /** Position of its bytes, in the order of the layout, in the buffer that all cells share. */
  readonly slot: number;
  /** Null when there is nothing to open: the cell is empty, or the reason of its failure is known. */
  header: SealHeader | null;
  cipherBytes: number;
  /** Position of its key stream. */
  stream: number;
  /** Buffer and range of its text, once it is opened. */
  opened: Buffer;
  textStart: number;
  textEnd: number;
  reason: DecodeReason | null;
}

/** Rows whose key streams are made at once: a call of the cipher costs as much for one row as for eight. */
const rowsMax = 8;

/** In place of `cipherBytes`. */
const notBatched = -1;

/**
 * Decrypts AES-256-GCM, the cells of a row, and of those behind it that have arrived, together. A codec says how values are stored: their prefix, encoding and layout,
 * their key and their associated data (AAD). With the cell in it, a value copied from another cell does not decode. A legacy
 * prefix needs no protection of its own: a value with AAD that is relabelled fails its tag.
 *
 * node:crypto decides: it tries each cell that the batched decryption refused, and a difference is reported. With `decrypt: 'native'`, or a nonce or tag of an unusual length, node:crypto opens every cell.
 */
export class SealedCells implements RowDecoder {
  readonly #options: CodecOptions;
  readonly #encoding: ReturnType<typeof encodingOf>;
  readonly #layout: SealLayout;
  readonly #aad: AadTemplate | null;
  readonly #keys: SealKeys;
  readonly #keyIdOf: (row: Row) => string | null;
  readonly #isBatched: boolean;
  readonly #table: string;
  /** The cells of the queued rows. */
  readonly #rows: readonly (readonly Cell[])[];
  /** Where each queued row ends. */
  readonly #ends: number[] = [];
  /** The row object through which they were queued, and its piece. */
  #queuedBy: Row | null = null;
  #piece = 0;
  /** The cells of the present row. */
  #cells: readonly Cell[];
  readonly #ahead = new Row();
  readonly #bytes: Buffer;
  readonly #slotBytes: number;
  #aadPrefixes: readonly Buffer[] = [];
  #row = new Row();
  #workspace: string | null = null;
  #id = '';
  /** End of the associated data of the row's cells, where it is the same for all of them; a length of -1: a column in it is NULL. */
  #suffix = Buffer.alloc(128);
  #suffixBytes = 0;
  /** The key that has the suffix of the present row. */
  #suffixKey: SealKey | null = null;
  #isOpened = false;

  /** Throws an Error when the layout lacks a part. */
  constructor(codec: Codec, options: CodecOptions, rows: EncodedRows) {
    const { columns, table } = rows;
    const layout = sealLayout(codec.layout ?? []);
    if (layout === null) throw new Error(`The layout of the codec of ${table} lacks a part or repeats one.`);
    this.#options = options;
    this.#layout = layout;
    this.#encoding = encodingOf(codec.encoding);
    this.#aad = codec.aad === undefined ? null : new AadTemplate(codec.aad, rows);
    this.#keys = new SealKeys(codec, options, columns.length * rowsMax);
    this.#keyIdOf = rowKeyId(codec, rows);
    this.#isBatched = options.decrypt === 'batched' && fitsGcmKey(layout);
    this.#table = table;
    const slotBytes = layout.overheadBytes + cipherBytesMax;
    this.#slotBytes = slotBytes;
    this.#bytes = Buffer.alloc(rowsMax * columns.length * slotBytes);
    this.#rows = Array.from({ length: rowsMax }, (_, row) =>
      columns.map((column, index) => ({
        column,
        index,
        slot: (row * columns.length + index) * slotBytes,
        header: null,
        cipherBytes: 0,
        stream: 0,
        opened: this.#bytes,
        textStart: 0,
        textEnd: 0,
        reason: null,
      })),
    );
    this.#cells = this.#rows[0] as readonly Cell[];
  }

  startRow(row: Row, workspace: string, id: string): void {
    if (workspace !== this.#workspace) {
      const prefixOf = (column: string): string => this.#aad?.prefixOf(workspace, column) ?? '';
      this.#aadPrefixes = this.#cells.map(({ column }) => Buffer.from(prefixOf(column.name)));
      if (this.#isBatched) this.#keys.setAadPrefixes(this.#aadPrefixes);
      this.#workspace = workspace;
    }
    this.#row = row;
    this.#id = id;
    this.#isOpened = false;
  }

  writeCell(column: number, json: JsonBytes): void {
    if (!this.#isOpened) this.#openAll();
    const { reason, opened, textStart, textEnd } = this.#cells[column] as Cell;
    if (reason !== null) throw new DecodeError(reason);
    json.string(opened, textStart, textEnd);
  }

  /** Opens the cells of the present row. */
  #openAll(): void {
    const row = this.#row;
    const isSamePiece = this.#isBatched && this.#queuedBy === row && this.#piece === row.piece;
    let queued = isSamePiece ? this.#ends.indexOf(row.end) : -1;
    if (queued < 0) {
      this.#queueRows(row);
      queued = 0;
    }
    this.#ends[queued] = -1; // the cells are decrypted in place, so a row can be opened once
    const cells = this.#rows[queued] as readonly Cell[];
    this.#cells = cells;
    this.#suffixKey = null;
    for (let i = 0; i < cells.length; i++) {
      const cell = cells[i] as Cell;
      if (cell.header !== null) cell.reason = this.#open(cell, cell.header);
    }
    this.#isOpened = true;
  }

  /** Reads the cells of the row and of those behind it, and makes their key streams at once. */
  #queueRows(row: Row): void {
    this.#ends.length = 0;
    if (this.#isBatched) this.#keys.clearQueues();
    this.#readCells(row);
    if (!this.#isBatched) return;
    let before = row;
    while (this.#ends.length < rowsMax && this.#ahead.readBehind(before)) {
      before = this.#ahead;
      this.#readCells(before);
    }
    this.#queuedBy = row;
    this.#piece = row.piece;
    this.#keys.makeKeyStreams();
  }

  #readCells(row: Row): void {
    const cells = this.#rows[this.#ends.length] as readonly Cell[];
    this.#ends.push(row.end);
    const keyId = this.#keyIdOf(row);
    for (let i = 0; i < cells.length; i++) {
      const cell = cells[i] as Cell;
      cell.header = null;
      if (!row.isNull(cell.column.at)) cell.reason = this.#read(cell, row, keyId);
    }
  }

  /** Decodes a cell into its slot and queues it, unless node:crypto opens it. */
  #read(cell: Cell, row: Row, keyId: string | null): DecodeReason | null {
    const { at } = cell.column;
    const header = this.#keys.headerOf(row, at, keyId);
    if (typeof header === 'string') return header;
    const [start, end] = [(row.starts[at] as number) + header.bytes.length, row.ends[at] as number];
    // node:crypto opens longer values, for which the cost of a decipher is small in proportion.
    if (!this.#isBatched || this.#encoding.bytesMax(end - start) > this.#slotBytes) {
      cell.cipherBytes = notBatched;
    } else {
      const { nonce, overheadBytes } = this.#layout;
      cell.cipherBytes = this.#encoding.decode(row.bytes, start, end, this.#bytes, cell.slot) - overheadBytes;
      if (cell.cipherBytes < 0) return 'bad_format';
      const iv = cell.slot + startOf(nonce, cell.cipherBytes);
      cell.stream = header.key.gcm.queue(this.#bytes, iv, cell.cipherBytes);
    }
    cell.header = header;
    return null;
  }

  #writeSuffix(): void {
    const suffix = this.#suffixOf('');
    if (suffix !== null && this.#suffix.length < suffix.length * 3) this.#suffix = Buffer.alloc(suffix.length * 3);
    this.#suffixBytes = suffix === null ? -1 : this.#suffix.write(suffix);
  }

  #suffixOf(column: string): string | null {
    return (this.#aad as AadTemplate).suffixOf(this.#workspace as string, column, this.#id, this.#row);
  }

  #open(cell: Cell, header: SealHeader): DecodeReason | null {
    const { cipherBytes, slot } = cell;
    if (cipherBytes === notBatched) return this.#openNatively(cell, header);
    const aadBytes = this.#startHash(cell, header);
    if (aadBytes < 0) return 'bad_format';
    const { data, tag } = this.#layout;
    const start = slot + data.at;
    const tagStart = slot + startOf(tag, cipherBytes);
    if (header.key.gcm.open(this.#bytes, start, cipherBytes, tagStart, cell.stream, aadBytes)) {
      return setText(cell, this.#bytes, start, start + cipherBytes);
    }
    const reason = this.#openNatively(cell, header);
    if (reason !== 'bad_tag') {
      this.#options.reportMismatch({ table: this.#table, column: cell.column.name, row: this.#id });
    }
    return reason;
  }

  /** Starts the hash of a cell with its associated data; returns their length in bytes, -1 when a column in them is NULL. */
  #startHash(cell: Cell, { key, bound }: SealHeader): number {
    if (bound && this.#aad?.isSuffixShared) {
      if (this.#suffixKey === null) this.#writeSuffix();
      if (this.#suffixKey !== key) key.aad.setSuffix(this.#suffix, Math.max(0, this.#suffixBytes));
      this.#suffixKey = key;
      return this.#suffixBytes < 0 ? -1 : key.aad.startHash(cell.index);
    }
    const { hash } = key.gcm;
    hash.start();
    if (!bound) return 0;
    const aad = this.#aadOf(cell);
    if (aad === null) return -1;
    hash.update(aad, 0, aad.length);
    return aad.length;
  }

  #aadOf({ column, index }: Cell): Buffer | null {
    const suffix = this.#suffixOf(column.name);
    return suffix === null ? null : Buffer.concat([this.#aadPrefixes[index] as Buffer, Buffer.from(suffix)]);
  }

  #openNatively(cell: Cell, { bytes: header, key, bound }: SealHeader): DecodeReason | null {
    const { bytes, starts, ends } = this.#row;
    const [start, end] = [starts[cell.column.at] as number, ends[cell.column.at] as number];
    const sealed = Buffer.allocUnsafe(this.#encoding.bytesMax(end - start));
    const length = this.#encoding.decode(bytes, start + header.length, end, sealed, 0);
    if (length < this.#layout.overheadBytes) return 'bad_format';
    const aad = bound ? this.#aadOf(cell) : undefined;
    if (aad === null) return 'bad_format';
    const opened = openNative(key.object, sealed.subarray(0, length), aad, this.#layout);
    if (opened === null) return 'bad_tag';
    return setText(cell, opened, 0, opened.length);
  }
}

function setText(cell: Cell, bytes: Buffer, start: number, end: number): DecodeReason | null {
  cell.opened = bytes;
  cell.textStart = start;
  cell.textEnd = end;
  return isText(bytes, start, end) ? null : 'bad_utf8';
}
