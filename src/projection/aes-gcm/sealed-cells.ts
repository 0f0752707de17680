import { decodeBase64 } from '../base64.js';
import type { CodecOptions, EncodedColumn, RowDecoder, StoredRow } from '../codecs.js';
import { DecodeError, type DecodeReason } from '../decode-error.js';
import { isText, type JsonBytes } from '../json-bytes.js';
import { cipherBytesMax, ivBytes, openNative, tagBytes } from './gcm-key.js';
import { type SealHeader, SealKeys } from './seal-keys.js';

/** A column, and its cell in the present row. */
interface Cell {
  readonly column: EncodedColumn;
  readonly index: number;
  /** Position of its iv ‖ ciphertext ‖ tag, and then of its text, in the buffer that all cells share. */
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

const slotBytes = ivBytes + cipherBytesMax + tagBytes;
/** node:crypto opens longer values, for which the cost of a decipher is small in proportion. */
const batchedLengthMax = Math.floor(slotBytes / 3) * 4;
/** In place of `cipherBytes`. */
const notBatched = -1;

/**
 * Decrypts AES-256-GCM, the cells of a row together. Stored: "enc:v2:<key id>:<base64 of iv(12) ‖ ciphertext ‖ tag(16)>",
 * with the cell as associated data (AAD), "<workspace>|<table>|<column>|<row>", so that a value copied from another cell
 * does not decode. "enc:v1:…" is the same without associated data. The version needs no protection of its own: a v2
 * value relabelled v1 fails its tag.
 *
 * node:crypto decides: it tries each cell that the batched decryption refused, and a difference is reported. With
 * `decrypt: 'native'` node:crypto opens every cell.
 */
export class SealedCells implements RowDecoder {
  readonly #options: CodecOptions;
  readonly #keys: SealKeys;
  readonly #isBatched: boolean;
  readonly #table: string;
  readonly #cells: readonly Cell[];
  readonly #bytes: Buffer;
  #aadPrefixes: readonly Buffer[] = [];
  #row: StoredRow = { text: () => null };
  #workspace: string | null = null;
  #id = '';
  #idBytes = Buffer.alloc(128);
  #isOpened = false;

  constructor(options: CodecOptions, table: string, columns: readonly EncodedColumn[]) {
    this.#options = options;
    this.#keys = new SealKeys(options, columns.length);
    this.#isBatched = options.decrypt === 'batched';
    this.#table = table;
    this.#bytes = Buffer.alloc(columns.length * slotBytes);
    this.#cells = columns.map((column, index) => ({
      column,
      index,
      slot: index * slotBytes,
      header: null,
      cipherBytes: 0,
      stream: 0,
      opened: this.#bytes,
      textStart: 0,
      textEnd: 0,
      reason: null,
    }));
  }

  startRow(row: StoredRow, workspace: string, id: string): void {
    if (workspace !== this.#workspace) {
      this.#aadPrefixes = this.#cells.map(({ column }) => Buffer.from(`${workspace}|${this.#table}|${column.name}|`));
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

  /** Reads all cells, makes their key streams at once, and opens them. */
  #openAll(): void {
    if (this.#isBatched) this.#keys.clearQueues();
    const cells = this.#cells;
    for (let i = 0; i < cells.length; i++) {
      const cell = cells[i] as Cell;
      const stored = this.#row.text(cell.column.at);
      cell.header = null;
      if (stored !== null) cell.reason = this.#read(cell, stored);
    }
    if (this.#isBatched) this.#makeKeyStreams();
    for (let i = 0; i < cells.length; i++) {
      const cell = cells[i] as Cell;
      if (cell.header !== null) cell.reason = this.#open(cell, cell.header);
    }
    this.#isOpened = true;
  }

  /** Decodes a cell into its slot and queues it, unless it is to be opened by node:crypto. */
  #read(cell: Cell, stored: string): DecodeReason | null {
    const header = this.#keys.headerOf(stored);
    if (typeof header === 'string') return header;
    const start = header.text.length;
    if (!this.#isBatched || stored.length - start > batchedLengthMax) {
      cell.cipherBytes = notBatched;
    } else {
      cell.cipherBytes = decodeBase64(stored, start, this.#bytes, cell.slot) - ivBytes - tagBytes;
      if (cell.cipherBytes < 0) return 'bad_format';
      cell.stream = header.key.gcm.queue(this.#bytes, cell.slot, cell.cipherBytes);
    }
    cell.header = header;
    return null;
  }

  #makeKeyStreams(): void {
    if (this.#idBytes.length < this.#id.length * 3) this.#idBytes = Buffer.alloc(this.#id.length * 3);
    const idLength = this.#idBytes.write(this.#id);
    const cells = this.#cells;
    for (let i = 0; i < cells.length; i++) {
      const { header } = cells[i] as Cell;
      if (header?.key.gcm.makeKeyStreams()) header.key.aad.setRowId(this.#idBytes, idLength);
    }
  }

  #open(cell: Cell, header: SealHeader): DecodeReason | null {
    const { cipherBytes } = cell;
    if (cipherBytes === notBatched) return this.#openNatively(cell, header);
    const { gcm, aad } = header.key;
    const start = cell.slot + ivBytes;
    let aadBytes = 0;
    if (header.bound) aadBytes = aad.startHash(cell.index);
    else gcm.hash.start();
    if (gcm.open(this.#bytes, start, cipherBytes, cell.stream, aadBytes)) {
      return setText(cell, this.#bytes, start, start + cipherBytes);
    }
    const reason = this.#openNatively(cell, header);
    if (reason !== 'bad_tag') {
      this.#options.reportMismatch({ table: this.#table, column: cell.column.name, row: this.#id });
    }
    return reason;
  }

  #openNatively(cell: Cell, { text, key, bound }: SealHeader): DecodeReason | null {
    const stored = this.#row.text(cell.column.at) as string;
    const sealed = Buffer.allocUnsafe(stored.length);
    const length = decodeBase64(stored, text.length, sealed, 0);
    if (length < ivBytes + tagBytes) return 'bad_format';
    const aad = bound ? Buffer.concat([this.#aadPrefixes[cell.index] as Buffer, Buffer.from(this.#id)]) : undefined;
    const opened = openNative(key.object, sealed.subarray(0, length), aad);
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
