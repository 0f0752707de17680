/** The texts of a row's columns, in the order of the select list; null for NULL. */
export type TextRow = readonly (string | null)[];

const columnsAtFirst = 32;

/**
 * A row within the bytes that PostgreSQL sent (DataRow, PostgreSQL 55.7), in text format. It copies no bytes, and makes a
 * string only on request. Valid only during the call that receives it, because the next row is read into the same object.
 */
export class Row {
  bytes: Buffer = Buffer.alloc(0);
  /** Where the value of each column begins and ends in `bytes`; an end of -1 is NULL. */
  starts = new Int32Array(columnsAtFirst);
  ends = new Int32Array(columnsAtFirst);
  columns = 0;

  /** Reads the message whose content, after type and length, begins at `at`. */
  read(bytes: Buffer, at: number): this {
    const columns = bytes.readUInt16BE(at);
    this.#makeRoom(columns);
    const { starts, ends } = this;
    let next = at + 2;
    for (let i = 0; i < columns; i++) {
      const size = bytes.readInt32BE(next);
      next += 4;
      starts[i] = next;
      ends[i] = size < 0 ? -1 : next + size;
      if (size > 0) next += size;
    }
    this.bytes = bytes;
    this.columns = columns;
    return this;
  }

  /** Makes a row of texts. */
  static of(texts: TextRow): Row {
    const row = new Row();
    row.#makeRoom(texts.length);
    row.columns = texts.length;
    row.bytes = Buffer.from(texts.join(''));
    let next = 0;
    for (const [i, text] of texts.entries()) {
      row.starts[i] = next;
      next += text === null ? 0 : Buffer.byteLength(text);
      row.ends[i] = text === null ? -1 : next;
    }
    return row;
  }

  isNull(column: number): boolean {
    return (this.ends[column] as number) < 0;
  }

  /** Whether the value of a column, which is not NULL, is these bytes. */
  equals(column: number, value: Uint8Array): boolean {
    return (
      (this.ends[column] as number) - (this.starts[column] as number) === value.length && this.beginsWith(column, value)
    );
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
