import * as zlib from 'node:zlib';

/** Absent before Node 22.15. */
const { zstdDecompressSync } = zlib as { readonly zstdDecompressSync?: (bytes: Buffer) => Buffer };

/** The content codings of lists, in the gateway's order. */
export const listEncodings = [...(zstdDecompressSync ? ['zstd'] : []), 'br', 'gzip'];

const decoders: Readonly<Record<string, ((bytes: Buffer) => Buffer) | undefined>> = {
  zstd: zstdDecompressSync,
  br: zlib.brotliDecompressSync,
  gzip: zlib.gunzipSync,
};

/** The body without its content coding; as it is when it is empty: HEAD names the encoding that GET would have. Throws when it is damaged. */
export function decompressed(body: Buffer, encoding = 'identity'): Buffer {
  return body.length === 0 ? body : (decoders[encoding]?.(body) ?? body);
}
