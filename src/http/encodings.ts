import type { Duplex } from 'node:stream';
import * as zlib from 'node:zlib';

/** A content coding of responses (RFC 9110 §8.4.1). */
export interface Encoding {
  readonly name: string;
  /** Memory of a compressor with its streams, in bytes. */
  readonly bytes: number;
  readonly compressor: () => Duplex;
}

/** The part of node:zlib that came with Node 22.15. */
interface Zstd {
  readonly createZstdCompress?: (options: { readonly params: Readonly<Record<number, number>> }) => Duplex;
}
const { createZstdCompress } = zlib as Zstd;
/** Parameters of zstd.h. */
const [zstdLevel, zstdWindowLog] = [100, 101];
const { BROTLI_PARAM_QUALITY: brotliQuality, BROTLI_PARAM_LGWIN: brotliWindowLog } = zlib.constants;

/** Windows of br and zstd have 256 KB, because each slow client holds a compressor for minutes: with brotli's own 4 MB, 75 of them took 340 MB. */
const windowLog = 18;

/**
 * The encodings that lists can have; details are always identity, as their ETag is strong. `bytes` holds for every level that the
 * setting `compression` allows.
 */
const encodings: Readonly<Record<string, { bytes: number; make: ((level: number) => Duplex) | undefined }>> = {
  zstd: {
    bytes: 655_360,
    make:
      createZstdCompress &&
      ((level) => createZstdCompress({ params: { [zstdLevel]: level, [zstdWindowLog]: windowLog } })),
  },
  br: {
    bytes: 655_360,
    make: (level) => zlib.createBrotliCompress({ params: { [brotliQuality]: level, [brotliWindowLog]: windowLog } }),
  },
  gzip: { bytes: 393_216, make: (level) => zlib.createGzip({ level }) },
};

/** The encodings of the setting `compression`, such as "zstd:1 gzip:3", in its order; without zstd where Node has none. */
export function encodingsOf(compression: string): Encoding[] {
  return compression.split(' ').flatMap((entry) => {
    const [name = '', level] = entry.split(':');
    const { bytes = 0, make } = encodings[name] ?? {};
    return make === undefined ? [] : [{ name, bytes, compressor: () => make(Number(level)) }];
  });
}

/** Encodings that `*` stands for. A client that names none can seldom read zstd: Prism sends `*` and reads gzip and br. */
const anyEncoding: readonly string[] = ['br', 'gzip'];

/**
 * The offered encoding with the largest weight in Accept-Encoding, and of equal ones the first; undefined for identity
 * (RFC 9110 §12.5.3). A weight that is not a number refuses.
 */
export function chooseEncoding<E extends { readonly name: string }>(
  header: string | undefined,
  offered: readonly E[],
): E | undefined {
  const weights = new Map<string, number>();
  for (const entry of (header ?? '').toLowerCase().split(',')) {
    const [name = '', ...parameters] = entry.replaceAll(/\s/g, '').split(';');
    weights.set(name, Number(parameters.findLast((parameter) => parameter.startsWith('q='))?.slice(2) ?? 1));
  }
  let chosen: E | undefined;
  let best = weights.get('identity') ?? 0;
  for (const encoding of offered) {
    const weight = weights.get(encoding.name) ?? (anyEncoding.includes(encoding.name) ? weights.get('*') : 0) ?? 0;
    if (weight > best || (weight === best && weight > 0 && chosen === undefined)) [chosen, best] = [encoding, weight];
  }
  return chosen;
}

/** The body, compressed. */
export async function compressed(body: string | Buffer, { compressor }: Encoding): Promise<Buffer> {
  const stream = compressor();
  stream.end(body);
  return Buffer.concat(await stream.toArray());
}
