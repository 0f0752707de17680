import { deflateSync } from 'node:zlib';
import type pg from 'pg';
import { readProject } from '../../src/base/paths.js';
import { type Random, random } from './random.js';

/**
 * Fills the session's table seed_signatures (kind, n from 0, image as base64):
 * plain: 20–60 KB of a PNG whose pixels are stored uncompressed, so that PostgreSQL compresses it to some 3 KB;
 * scan: as large, but it does not compress;
 * initials and photo, from images.json: PNG and JPEG of under 1 KB, for the places where signatures hide.
 */
export async function loadSignatures(client: pg.Client): Promise<void> {
  const images: Record<string, string[]> = {
    plain: Array.from({ length: 40 }, (_, n) => plain(random(`handtekening/plain/${n}`)).toString('base64')),
    scan: Array.from({ length: 8 }, (_, n) => scan(random(`handtekening/scan/${n}`)).toString('base64')),
    ...(JSON.parse(readProject('sql/apps/first/seed/images.json')) as Record<'initials' | 'photo', string[]>),
  };
  const rows = Object.entries(images).flatMap(([kind, all]) => all.map((image, n) => ({ kind, n, image })));
  const text = 'insert into seed_signatures select * from jsonb_populate_recordset(null::seed_signatures, $1)';
  await client.query(text, [JSON.stringify(rows)]);
}

function plain(draw: Random): Buffer {
  return png(scribble(draw, 190 + draw.below(100), 110 + draw.below(40), 14), 0);
}

/** The paper of a scan has a grain, so that it hardly compresses. */
function scan(draw: Random): Buffer {
  const bitmap = scribble(draw, 300 + draw.below(80), 130 + draw.below(40), 7);
  const grain = (value: number): number => (value === 0 ? draw.below(40) : 255 - draw.below(12));
  return png({ ...bitmap, pixels: bitmap.pixels.map(grain) }, 6);
}

/** A signature: strokes of a black pen, two pixels wide, on white paper. */
function scribble(draw: Random, width: number, height: number, strokes: number): Bitmap {
  const pixels = new Uint8Array(width * height).fill(0xff);
  const point = () => ({ x: width * (0.1 + draw.below(800) / 1000), y: height * (0.1 + draw.below(800) / 1000) });
  const steps = 2 * Math.max(width, height);
  let from = point();
  for (let stroke = 0; stroke < strokes; stroke++) {
    const [bend, to] = [point(), point()];
    for (let step = 0; step <= steps; step++) {
      const t = step / steps;
      const [a, b, c] = [(1 - t) ** 2, 2 * t * (1 - t), t ** 2];
      const column = Math.round(a * from.x + b * bend.x + c * to.x);
      const row = Math.round(a * from.y + b * bend.y + c * to.y);
      // The points keep a tenth of the size away from the edges, so the pen stays on the paper.
      for (const at of [0, 1]) pixels.fill(0, (row + at) * width + column, (row + at) * width + column + 2);
    }
    from = to;
  }
  return { width, height, pixels };
}

/** A greyscale picture: one byte per pixel, 0 is black, row after row. */
export interface Bitmap {
  readonly width: number;
  readonly height: number;
  readonly pixels: Uint8Array;
}

/** A greyscale PNG (ISO/IEC 15948). `level` is that of zlib; 0 stores the pixels as they are. */
function png({ width, height, pixels }: Bitmap, level: number): Buffer {
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
