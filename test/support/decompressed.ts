import { brotliDecompressSync, gunzipSync } from 'node:zlib';

export const listEncodings: readonly string[] = ['br', 'gzip'];

const decoders: Readonly<Record<string, (bytes: Buffer) => Buffer>> = { br: brotliDecompressSync, gzip: gunzipSync };

/** Removes the content coding of a body. An empty one stays: HEAD names the encoding that GET would have. Throws when it is damaged. */
export function decompressed(body: Buffer, encoding = 'identity'): Buffer {
  return body.length === 0 ? body : (decoders[encoding]?.(body) ?? body);
}
