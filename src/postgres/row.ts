/** Bytes that can be read by words of four, at any position: a DataView does so in one instruction, where a Buffer puts bytes together. */
export interface WordSource {
  readonly bytes: Buffer;
  readonly words: DataView;
}

/** Words over all bytes of a buffer. */
export function wordsOf({ buffer, byteOffset, length }: Buffer): DataView {
  return new DataView(buffer, byteOffset, length);
}

/** The texts of a row's columns, in the order of the select list; null for NULL. */
export type TextRow = readonly (string | null)[];

const noBytes = Buffer.alloc(0);
const noWords = wordsOf(noBytes);
const columnsAtFirst = 32;
/** Type of the message that holds a row, "D". */
export const dataRow = 0x44;
/** The type, and the length that counts itself but not the type. */
const headerBytes = 5;

/** The end of the message that begins at `at`; one byte beyond the bytes when its length has not arrived. */
export function messageEnd({ bytes, words }: WordSource, at: number): number {
  return at + headerBytes > bytes.length ? bytes.length + 1 : at + 1 + words.getUint32(at + 1);
}

/**
 * A row within the bytes that PostgreSQL sent (DataRow, PostgreSQL 55.7), in text format. It copies no bytes, and makes a
 * string only on request. Valid only during the call that receives it, because the next row is read into the same object.
 */
export class Row {
  bytes: Buffer = noBytes;
  /** The same bytes, to be read by words. */
  words: DataView = noWords;
  /** Where the value of each column begins and ends in `bytes`; an end of -1 is NULL. */
  starts = new Int32Array(columnsAtFirst);
  ends = new Int32Array(columnsAtFirst);
  columns = 0;

  startPiece(bytes: Buffer): void {
    this.bytes = bytes;
    this.words = wordsOf(bytes);
  }

  /** Reads the message of a row that begins at `start` in the piece. */
  read(start: number): this {
    const { words } = this;
    const at = start + headerBytes;
    const columns = words.getUint16(at);
    this.#makeRoom(columns);
    const { starts, ends } = this;
    let next = at + 2;
    for (let i = 0; i < columns; i++) {
      const size = words.getInt32(next);
      next += 4;
      starts[i] = next;
      ends[i] = size < 0 ? -1 : next + size;
      if (size > 0) next += size;
    }
    this.columns = columns;
    return this;
  }

  /** Makes a row of texts. */
  static of(texts: TextRow): Row {
    const row = new Row();
    row.#makeRoom(texts.length);
    row.columns = texts.length;
    const joined = texts.join('');
    row.bytes = Buffer.from(joined);
    row.words = wordsOf(row.bytes);
    const isAscii = row.bytes.length === joined.length;
    let next = 0;
    for (let i = 0; i < texts.length; i++) {
      const text = texts[i] as string | null;
      row.starts[i] = next;
      if (text !== null) next += isAscii ? text.length : Buffer.byteLength(text);
      row.ends[i] = text === null ? -1 : next;
    }
    return row;
  }

  isNull(column: number): boolean {
    return (this.ends[column] as number) < 0;
  }

  /** Whether the value of a column, which is not NULL, begins with these bytes. Values and beginnings are short: a call into Node costs more. */
  beginsWith(column: number, beginning: Uint8Array): boolean {
    const { bytes } = this;
    const start = this.starts[column] as number;
    if ((this.ends[column] as number) - start < beginning.length) return false;
    for (let i = 0; i < beginning.length; i++) if (bytes[start + i] !== beginning[i]) return false;
    return true;
  }

  text(column: number): string | null {
    const end = this.ends[column] as number;
    return end < 0 ? null : this.bytes.toString('utf8', this.starts[column], end);
  }

  texts(): TextRow {
    return Array.from({ length: this.columns }, (_, column) => this.text(column));
  }

  #makeRoom(columns: number): void {
    if (columns <= this.starts.length) return;
    this.starts = new Int32Array(columns);
    this.ends = new Int32Array(columns);
  }
}
