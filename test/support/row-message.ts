import type { TextRow } from '../../src/postgres/row.js';

export function messageOf(type: string, body: Buffer): Buffer {
  const header = Buffer.alloc(5);
  header.write(type);
  header.writeUInt32BE(body.length + 4, 1);
  return Buffer.concat([header, body]);
}

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
