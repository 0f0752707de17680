import { deflateSync } from 'node:zlib';

/** A greyscale picture: one byte per pixel, 0 is black, row after row. */
export interface Bitmap {
  readonly width: number;
  readonly height: number;
  readonly pixels: Uint8Array;
}

/** A greyscale PNG (ISO/IEC 15948). `level` is that of zlib; 0 stores the pixels as they are. */
export function png({ width, height, pixels }: Bitmap, level: number): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.writeUInt8(8, 8); // bits per pixel; the zeros that follow mean greyscale, deflate, no filter, not interlaced
  const lines = Buffer.alloc((width + 1) * height);
  for (let row = 0; row < height; row++)
    lines.set(pixels.subarray(row * width, (row + 1) * width), row * (width + 1) + 1);
  const magic = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1');
  return Buffer.concat([magic, chunk('IHDR', header), chunk('IDAT', deflateSync(lines, { level })), chunk('IEND')]);
}

function chunk(type: string, data = Buffer.alloc(0)): Buffer {
  const framed = Buffer.alloc(data.length + 12);
  framed.writeUInt32BE(data.length, 0);
  framed.write(type, 4, 'latin1');
  framed.set(data, 8);
  framed.writeUInt32BE(crc32(framed.subarray(4, -4)), data.length + 8);
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
