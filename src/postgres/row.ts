/** The same bytes twice, because a DataView reads a word in one instruction, and a Buffer puts it together from bytes. */
export interface WordSource {
  readonly bytes: Buffer;
  readonly words: DataView;
}

export function viewWords({ buffer, byteOffset, length }: Buffer): DataView {
  return new DataView(buffer, byteOffset, length);
}

export type TextRow = readonly (string | null)[];

const noBytes = Buffer.alloc(0);
const noWords = viewWords(noBytes);
const columnsAtFirst = 32;
export const dataRow = 0x44;
/** The length counts itself but not the type. */
const headerBytes = 5;

/** Returns where the message ends. If its length has not arrived, this is one byte beyond the bytes. */
export function findMessageEnd({ bytes, words }: WordSource, at: number): number {
  return at + headerBytes > bytes.length ? bytes.length + 1 : at + 1 + words.getUint32(at + 1);
}

/** Points into the bytes of a DataRow (PostgreSQL 55.7, text format), valid only during the call: the next row reuses the object. */
export class Row {
  bytes: Buffer = noBytes;
  words: DataView = noWords;
  /** Positions of the columns in `bytes`; an end of -1 is NULL. */
  starts = new Int32Array(columnsAtFirst);
  ends = new Int32Array(columnsAtFirst);
  columns = 0;

  startPiece(bytes: Buffer): void {
    this.bytes = bytes;
    this.words = viewWords(bytes);
  }

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

  static make(texts: TextRow): Row {
    const row = new Row();
    row.#makeRoom(texts.length);
    row.columns = texts.length;
    const joined = texts.join('');
    row.bytes = Buffer.from(joined);
    row.words = viewWords(row.bytes);
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

  /** Compares in a loop, because a call into Node costs more for short values. */
  beginsWith(column: number, prefix: Uint8Array): boolean {
    const { bytes } = this;
    const start = this.starts[column] as number;
    if ((this.ends[column] as number) - start < prefix.length) return false;
    for (let i = 0; i < prefix.length; i++) if (bytes[start + i] !== prefix[i]) return false;
    return true;
  }

  getText(column: number): string | null {
    const end = this.ends[column] as number;
    return end < 0 ? null : this.bytes.toString('utf8', this.starts[column], end);
  }

  getTexts(): TextRow {
    return Array.from({ length: this.columns }, (_, column) => this.getText(column));
  }

  #makeRoom(columns: number): void {
    if (columns <= this.starts.length) return;
    this.starts = new Int32Array(columns);
    this.ends = new Int32Array(columns);
  }
}
