import type { TextRow } from '../../src/postgres/row.js';

/** A message of the given type as PostgreSQL sends it (PostgreSQL 55.2). */
export function messageOf(type: string, body: Buffer): Buffer {
  const header = Buffer.alloc(5);
  header.write(type);
  header.writeUInt32BE(body.length + 4, 1);
  return Buffer.concat([header, body]);
}

/** The message of a row (DataRow, PostgreSQL 55.7). */
export function rowMessage(texts: TextRow): Buffer {
  const count = Buffer.alloc(2);
  count.writeUInt16BE(texts.length);
  const columns = texts.flatMap((text) => {
    const size = Buffer.alloc(4);
    size.writeInt32BE(text === null ? -1 : Buffer.byteLength(text));
    return [size, Buffer.from(text ?? '')];
  });
  return messageOf('D', Buffer.concat([count, ...columns]));
}
