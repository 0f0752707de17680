import type { Random } from './random.js';

/** A greyscale picture: one byte per pixel, 0 is black, row after row. */
export interface Bitmap {
  width: number;
  height: number;
  pixels: Buffer;
}

/** A signature: black strokes of a pen on white paper. */
export function scribble(draw: Random, width: number, height: number, strokes: number): Bitmap {
  const pixels = Buffer.alloc(width * height, 0xff);
  const dot = (x: number, y: number) => {
    for (const [dx, dy] of [
      [0, 0],
      [1, 0],
      [0, 1],
      [1, 1],
    ] as const) {
      // biome-ignore format: a square pen
      const column = Math.round(x) + dx;
      const row = Math.round(y) + dy;
      if (column >= 0 && column < width && row >= 0 && row < height) pixels[row * width + column] = 0;
    }
  };
  const point = () => ({ x: width * (0.1 + draw.below(800) / 1000), y: height * (0.1 + draw.below(800) / 1000) });
  let from = point();
  for (let stroke = 0; stroke < strokes; stroke++) {
    const [bend, to] = [point(), point()];
    const steps = 2 * Math.max(width, height);
    for (let step = 0; step <= steps; step++) {
      const t = step / steps;
      const [a, b, c] = [(1 - t) ** 2, 2 * t * (1 - t), t ** 2];
      dot(a * from.x + b * bend.x + c * to.x, a * from.y + b * bend.y + c * to.y);
    }
    from = to;
  }
  return { width, height, pixels };
}

/** The same picture as a scanner sees it: the paper has a grain, so that it hardly compresses. */
export function scanned(draw: Random, bitmap: Bitmap): Bitmap {
  return {
    ...bitmap,
    pixels: bitmap.pixels.map((value) => (value === 0 ? draw.below(40) : 255 - draw.below(12))) as Buffer,
  };
}
