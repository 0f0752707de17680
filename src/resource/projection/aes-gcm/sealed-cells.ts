import type { KeyObject } from 'node:crypto';
import { Row } from '../../../postgres/row.js';
import {
  type Codec,
  type CodecOptions,
  DecodeError,
  type DecodeReason,
  type EncodedColumn,
  type EncodedRows,
  headerReader,
  headOf,
  type RowDecoder,
  rowKeyId,
  templatePieces,
} from '../codec.js';
import { encodingOf } from '../encodings.js';
import { isText, type JsonBytes } from '../json-bytes.js';
import type { Keyring } from '../keyring.js';
import {
  AadHash,
  cipherBytesMax,
  fitsGcmKey,
  GcmKey,
  openNative,
  type SealLayout,
  sealLayout,
  startOf,
} from './gcm-key.js';

/** Text of a piece of the template for a cell; null when it is a column that is NULL. */
type PieceText = (workspace: string, column: string, id: string, row: Row) => string | null;

/** Placeholders that have the same text in all rows of a workspace. */
const constants: Readonly<Record<string, (table: string) => PieceText>> = {
  workspace: () => (workspace) => workspace,
  table: (table) => () => table,
  column: () => (_, column) => column,
};

/**
 * The associated data of cells, from a template such as "{workspace}|{table}|{column}|{id}": per column a prefix, the same
 * for all rows of a workspace, and a suffix, which begins with the first placeholder that depends on the row.
 */
export class AadTemplate {
  /** Whether the suffix is the same for all columns of a row. */
  readonly isSuffixShared: boolean;
  readonly #prefix: readonly PieceText[];
  readonly #suffix: readonly PieceText[];

  constructor(aad: string, { table, others }: EncodedRows) {
    const pieces = templatePieces(aad);
    const texts = pieces.map((piece, i): PieceText => {
      if (i % 2 === 0) return () => piece;
      const constant = constants[piece];
      if (constant !== undefined) return constant(table);
      if (piece === 'id') return (_, __, id) => id;
      const at = others?.get(piece) as number;
      return (_, __, ___, row) => row.text(at);
    });
    const first = pieces.findIndex((piece, i) => i % 2 === 1 && constants[piece] === undefined);
    const prefixEnd = first < 0 ? pieces.length : first;
    this.#prefix = texts.slice(0, prefixEnd);
    this.#suffix = texts.slice(prefixEnd).filter((_, i) => pieces[prefixEnd + i] !== '');
    this.isSuffixShared = !pieces.some((piece, i) => i % 2 === 1 && i > prefixEnd && piece === 'column');
  }

  prefixOf(workspace: string, column: string): string {
    return this.#prefix.map((text) => text(workspace, column, '', new Row())).join('');
  }

  /** Null when a column in it is NULL. */
  suffixOf(workspace: string, column: string, id: string, row: Row): string | null {
    let suffix = '';
    for (const piece of this.#suffix) {
      const text = piece(workspace, column, id, row);
      if (text === null) return null;
      suffix += text;
    }
    return suffix;
  }
}

/** A key of the keyring, for so many queued messages. `gcm` and `aad` are made when first used: native decryption never does. */
class SealKey {
  #gcm: GcmKey | null = null;
  #aad: AadHash | null = null;

  constructor(
    readonly object: KeyObject,
    private readonly messages: number,
  ) {}

  get gcm(): GcmKey {
    this.#gcm ??= new GcmKey(this.object, this.messages);
    return this.#gcm;
  }

  get aad(): AadHash {
    this.#aad ??= new AadHash(this.gcm.hash);
    return this.#aad;
  }
}

/** The beginning of a stored value, and the key that sealed it. */
interface SealHeader {
  readonly bytes: Uint8Array;
  readonly key: SealKey;
}

/** The keys that stored values name, for so many cells at a time. */
export class SealKeys {
  readonly #keys: ReadonlyMap<string, SealKey>;
  readonly #head: Buffer;
  readonly #read: ReturnType<typeof headerReader>;
  #last: SealHeader | null = null;
  #lastKeyId: string | null = null;

  constructor(codec: Codec, keyring: Keyring, cells: number) {
    this.#keys = new Map(keyring.ids.map((id) => [id, new SealKey(keyring.get(id) as KeyObject, cells)]));
    this.#head = Buffer.from(headOf(codec));
    this.#read = headerReader(codec);
  }

  /**
   * The header of a stored value, in a column that is not NULL, or the reason why it cannot be opened. `rowKeyId` is the id of the row's key where no prefix
   * holds it, else null.
   */
  headerOf(row: Row, at: number, rowKeyId: string | null): SealHeader | DecodeReason {
    const last = this.#last;
    if (last !== null && rowKeyId === this.#lastKeyId && row.beginsWith(at, last.bytes)) return last;
    if (!row.beginsWith(at, this.#head)) return 'bad_format'; // without making a string of an older value
    const header = this.#read(row.text(at) as string);
    if (header === null) return 'bad_format';
    const key = this.#keys.get(header.keyId ?? rowKeyId ?? '');
    if (key === undefined) return 'unknown_key';
    const found = { bytes: Buffer.from(header.text), key };
    this.#last = found;
    this.#lastKeyId = rowKeyId;
    return found;
  }

  /** Sets, by column, the part of the associated data before a row's id. */
  setAadPrefixes(prefixes: readonly Uint8Array[]): void {
    for (const { aad } of this.#keys.values()) aad.setPrefixes(prefixes);
  }

  /** Makes the key streams of all queued messages. */
  makeKeyStreams(): void {
    for (const { gcm } of this.#keys.values()) gcm.makeKeyStreams();
  }

  /** Drops the messages that a row left in the queue because one of its cells could not be read. */
  clearQueues(): void {
    for (const { gcm } of this.#keys.values()) gcm.clearQueue();
  }
}

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
 * their key and their associated data (AAD). With the cell in it, a value copied from another cell does not decode. The prefix of
 * older values needs no protection of its own: a value with AAD that is relabelled fails its tag.
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
    this.#keys = new SealKeys(codec, options.keyring, columns.length * rowsMax);
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
      if (this.#isBatched && this.#aad !== null) this.#keys.setAadPrefixes(this.#aadPrefixes);
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
  #startHash(cell: Cell, { key }: SealHeader): number {
    if (this.#aad?.isSuffixShared) {
      if (this.#suffixKey === null) this.#writeSuffix();
      if (this.#suffixKey !== key) key.aad.setSuffix(this.#suffix, Math.max(0, this.#suffixBytes));
      this.#suffixKey = key;
      return this.#suffixBytes < 0 ? -1 : key.aad.startHash(cell.index);
    }
    const { hash } = key.gcm;
    hash.start();
    const aad = this.#aadOf(cell);
    if (!aad) return aad === null ? -1 : 0;
    hash.update(aad, 0, aad.length);
    return aad.length;
  }

  /** Null when a column in it is NULL; undefined where the codec has none. */
  #aadOf({ column, index }: Cell): Buffer | null | undefined {
    if (this.#aad === null) return undefined;
    const suffix = this.#suffixOf(column.name);
    return suffix === null ? null : Buffer.concat([this.#aadPrefixes[index] as Buffer, Buffer.from(suffix)]);
  }

  #openNatively(cell: Cell, { bytes: header, key }: SealHeader): DecodeReason | null {
    const { bytes, starts, ends } = this.#row;
    const [start, end] = [starts[cell.column.at] as number, ends[cell.column.at] as number];
    const sealed = Buffer.allocUnsafe(this.#encoding.bytesMax(end - start));
    const length = this.#encoding.decode(bytes, start + header.length, end, sealed, 0);
    if (length < this.#layout.overheadBytes) return 'bad_format';
    const aad = this.#aadOf(cell);
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
