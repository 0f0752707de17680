import type { Bitmap } from './bitmap.js';

/**
 * A coarse greyscale baseline JPEG (ITU-T T.81): one value per block of 8 × 8 pixels, so that two tiny Huffman tables
 * are all it needs. Width and height are multiples of 8.
 */
export function jpeg({ width, height, pixels }: Bitmap): Buffer {
  const bits: string[] = [];
  let previous = 0;
  for (let top = 0; top < height; top += 8) {
    for (let left = 0; left < width; left += 8) {
      const level = blockMean(pixels, width, left, top) - 128;
      // A quantizer of 8 makes the stored coefficient the mean itself. After it, "0" ends the block.
      bits.push(`${coefficient(level - previous)}0`);
      previous = level;
    }
  }
  return Buffer.concat([
    Buffer.from([0xff, 0xd8]),
    segment(0xe0, [...Buffer.from('JFIF\0', 'latin1'), 1, 1, 0, 0, 1, 0, 1, 0, 0]),
    segment(0xdb, [0, ...Array<number>(64).fill(8)]),
    segment(0xc0, [8, height >> 8, height & 0xff, width >> 8, width & 0xff, 1, 1, 0x11, 0]),
    segment(0xc4, [0x00, ...codeLengths(4, 12), 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]),
    segment(0xc4, [0x10, ...codeLengths(1, 1), 0]),
    segment(0xda, [1, 1, 0x00, 0, 63, 0]),
    packed(bits.join('')),
    Buffer.from([0xff, 0xd9]),
  ]);
}

function blockMean(pixels: Buffer, width: number, left: number, top: number): number {
  let sum = 0;
  for (let row = top; row < top + 8; row++) {
    for (let column = left; column < left + 8; column++) sum += pixels.readUInt8(row * width + column);
  }
  return Math.round(sum / 64);
}

/** Category in four bits, then that many bits of the difference; negative ones as T.81 F.1.2.1 has them. */
function coefficient(difference: number): string {
  const size = difference === 0 ? 0 : Math.floor(Math.log2(Math.abs(difference))) + 1;
  const value = difference < 0 ? difference + 2 ** size - 1 : difference;
  return size.toString(2).padStart(4, '0') + (size ? value.toString(2).padStart(size, '0') : '');
}

function codeLengths(length: number, count: number): number[] {
  return Array.from({ length: 16 }, (_, at) => (at + 1 === length ? count : 0));
}

function segment(marker: number, content: readonly number[]): Buffer {
  const length = content.length + 2;
  return Buffer.from([0xff, marker, length >> 8, length & 0xff, ...content]);
}

/** Bits to bytes, filled up with ones; a byte of ones is followed by a zero byte. */
function packed(bits: string): Buffer {
  const bytes: number[] = [];
  for (let at = 0; at < bits.length; at += 8) {
    const byte = Number.parseInt(bits.slice(at, at + 8).padEnd(8, '1'), 2);
    bytes.push(byte, ...(byte === 0xff ? [0] : []));
  }
  return Buffer.from(bytes);
}
