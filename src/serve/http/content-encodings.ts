import type { Duplex } from 'node:stream';
import { constants, createBrotliCompress, createGzip } from 'node:zlib';

export interface Encoding {
  readonly name: string;
  readonly bytes: number;
  readonly compressor: () => Duplex;
}

/** br has a window of 256 KB: with its default of 4 MB, 75 slow clients took 340 MB. */
const params = { [constants.BROTLI_PARAM_QUALITY]: 1, [constants.BROTLI_PARAM_LGWIN]: 18 };

/** Encodings in order of preference. */
const encodings: readonly Encoding[] = [
  { name: 'br', bytes: 655_360, compressor: () => createBrotliCompress({ params }) },
  { name: 'gzip', bytes: 393_216, compressor: () => createGzip({ level: 3 }) },
];

/** Chooses the largest weight (RFC 9110 §12.5.3); undefined for identity. A weight that is no number refuses. */
export function chooseEncoding(header = ''): Encoding | undefined {
  const weights = new Map<string, number>();
  for (const entry of header.toLowerCase().split(',')) {
    const [name = '', ...parameters] = entry.replaceAll(/\s/g, '').split(';');
    weights.set(name, Number(parameters.findLast((parameter) => parameter.startsWith('q='))?.slice(2) ?? 1));
  }
  let chosen: Encoding | undefined;
  let best = weights.get('identity') ?? 0;
  for (const encoding of encodings) {
    const weight = weights.get(encoding.name) ?? weights.get('*') ?? 0;
    if (weight > best || (weight === best && weight > 0 && chosen === undefined)) [chosen, best] = [encoding, weight];
  }
  return chosen;
}

export async function compress(body: string | Buffer, { compressor }: Encoding): Promise<Buffer> {
  const stream = compressor();
  stream.end(body);
  return Buffer.concat(await stream.toArray());
}
