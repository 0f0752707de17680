import { decodeBase64 } from '../base64.js';
import type { CodecOptions, EncodedColumn, RowDecoder, StoredRow } from '../codecs.js';
import { DecodeError, type DecodeReason } from '../decode-error.js';
import { isText, type JsonBytes } from '../json-bytes.js';
import { cipherBytesMax, ivBytes, openNative, tagBytes } from './gcm-key.js';
import { type SealHeader, SealKeys } from './seal-keys.js';

/** A column, and its cell in the row at hand. */
interface Cell {
  readonly column: EncodedColumn;
  readonly index: number;
  /** Where iv ‖ ciphertext ‖ tag is put, and then the text. */
  readonly slot: number;
  /** Null when there is nothing to open: the cell is empty, or it is known why not. */
  header: SealHeader | null;
  cipherBytes: number;
  /** Where its key stream begins. */
  stream: number;
  /** Where its text is, once it is opened. */
  opened: Buffer;
  textStart: number;
  textEnd: number;
  reason: DecodeReason | null;
}

const slotBytes = ivBytes + cipherBytesMax + tagBytes;
/** Values of more characters, for which a decipher of their own is no matter, are opened by Node's GCM. */
const encodedLengthMax = Math.floor(slotBytes / 3) * 4;
/** In place of `cipherBytes`. */
const tooLong = -1;

/**
 * AES-256-GCM, the cells of a row together. Stored: "enc:v2:<key id>:<base64 of iv(12) ‖ ciphertext ‖ tag(16)>",
 * authenticated together with the place it stands in, "<workspace>|<table>|<column>|<row>", so that a value copied from
 * another cell does not decode. "enc:v1:…" is the same without that binding. The version is no secret and needs no
 * protection of its own: a v2 value relabelled v1 fails its tag.
 */
export class SealedCells implements RowDecoder {
  readonly #keys: SealKeys;
  readonly #table: string;
  readonly #cells: readonly Cell[];
  readonly #bytes: Buffer;
  #prefixes: readonly Buffer[] = [];
  #row: StoredRow = { text: () => null };
  #workspace: string | null = null;
  #id = '';
  #idBytes = Buffer.alloc(128);
  #opened = false;

  constructor(options: CodecOptions, table: string, columns: readonly EncodedColumn[]) {
    this.#keys = new SealKeys(options, columns.length);
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

  take(row: StoredRow, workspace: string, id: string): void {
    if (workspace !== this.#workspace) {
      this.#prefixes = this.#cells.map(({ column }) => Buffer.from(`${workspace}|${this.#table}|${column.name}|`));
      this.#keys.enter(this.#prefixes);
      this.#workspace = workspace;
    }
    this.#row = row;
    this.#id = id;
    this.#opened = false;
  }

  write(column: number, json: JsonBytes): void {
    if (!this.#opened) this.#openAll();
    const { reason, opened, textStart, textEnd } = this.#cells[column] as Cell;
    if (reason !== null) throw new DecodeError(reason);
    json.string(opened, textStart, textEnd);
  }

  /** Reads all cells, has the key stream of all made at once, and opens them. */
  #openAll(): void {
    this.#keys.forget();
    if (this.#idBytes.length < this.#id.length * 3) this.#idBytes = Buffer.alloc(this.#id.length * 3);
    const idLength = this.#idBytes.write(this.#id);
    const cells = this.#cells;
    for (let i = 0; i < cells.length; i++) {
      const cell = cells[i] as Cell;
      const stored = this.#row.text(cell.column.at);
      cell.header = null;
      if (stored !== null) cell.reason = this.#read(cell, stored);
    }
    for (let i = 0; i < cells.length; i++) {
      const { header } = cells[i] as Cell;
      if (header?.key.gcm.run()) header.key.aad.row(this.#idBytes, idLength);
    }
    for (let i = 0; i < cells.length; i++) {
      const cell = cells[i] as Cell;
      if (cell.header !== null) cell.reason = this.#open(cell, cell.header);
    }
    this.#opened = true;
  }

  /** Brings the bytes of a cell into its slot and asks for its key stream. */
  #read(cell: Cell, stored: string): DecodeReason | null {
    const header = this.#keys.headerOf(stored);
    if (typeof header === 'string') return header;
    const start = header.text.length;
    if (stored.length - start > encodedLengthMax) {
      cell.cipherBytes = tooLong;
    } else {
      cell.cipherBytes = decodeBase64(stored, start, this.#bytes, cell.slot) - ivBytes - tagBytes;
      if (cell.cipherBytes < 0) return 'bad_format';
      cell.stream = header.key.gcm.queue(this.#bytes, cell.slot, cell.cipherBytes);
    }
    cell.header = header;
    return null;
  }

  #open(cell: Cell, header: SealHeader): DecodeReason | null {
    const { cipherBytes } = cell;
    if (cipherBytes === tooLong) return this.#openLong(cell, header);
    const { gcm, aad } = header.key;
    const start = cell.slot + ivBytes;
    let associatedBytes = 0;
    if (header.bound) associatedBytes = aad.start(cell.index);
    else gcm.hash.start();
    if (!gcm.open(this.#bytes, start, cipherBytes, cell.stream, associatedBytes)) return 'bad_tag';
    return found(cell, this.#bytes, start, start + cipherBytes);
  }

  #openLong(cell: Cell, { text, key, bound }: SealHeader): DecodeReason | null {
    const stored = this.#row.text(cell.column.at) as string;
    const sealed = Buffer.allocUnsafe(stored.length);
    const length = decodeBase64(stored, text.length, sealed, 0);
    if (length < 0) return 'bad_format';
    const place = bound ? Buffer.concat([this.#prefixes[cell.index] as Buffer, Buffer.from(this.#id)]) : undefined;
    const opened = openNative(key.object, sealed.subarray(0, length), place);
    if (opened === null) return 'bad_tag';
    return found(cell, opened, 0, opened.length);
  }
}

function found(cell: Cell, bytes: Buffer, start: number, end: number): DecodeReason | null {
  cell.opened = bytes;
  cell.textStart = start;
  cell.textEnd = end;
  return isText(bytes, start, end) ? null : 'bad_utf8';
}
