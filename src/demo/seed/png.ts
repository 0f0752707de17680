import { deflateSync } from 'node:zlib';
import type { Bitmap } from './bitmap.js';

const magic = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

/** A greyscale PNG (ISO/IEC 15948). `level` is that of zlib; 0 stores the pixels as they are. */
export function png({ width, height, pixels }: Bitmap, level: number): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.writeUInt8(8, 8); // bits per pixel; the zeros that follow mean greyscale, deflate, no filter, not interlaced
  const lines = Buffer.alloc((width + 1) * height);
  for (let row = 0; row < height; row++) {
    pixels.copy(lines, row * (width + 1) + 1, row * width, (row + 1) * width);
  }
  return Buffer.concat([
    magic,
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(lines, { level })),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const framed = Buffer.alloc(body.length + 8);
  framed.writeUInt32BE(data.length, 0);
  body.copy(framed, 4);
  framed.writeUInt32BE(crc32(body), body.length + 4);
  return framed;
}

/** CRC-32 for PNG; not every Node 20 has zlib.crc32. */
function crc32(data: Buffer): number {
  let crc = 0xffffffff;
  for (const byte of data) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return (crc ^ 0xffffffff) >>> 0;
}
