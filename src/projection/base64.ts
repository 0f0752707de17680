const invalid = 0x80;

/** Value of each character of base64 (RFC 4648 §4), by its byte. */
const values = new Uint8Array(256).fill(invalid);
for (const [value, character] of [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'].entries()) {
  values[character.charCodeAt(0)] = value;
}

const padding = 0x3d; // "="

/**
 * Decodes canonical base64 (RFC 4648 §4: padded, no line breaks, unused bits zero), which stands in `from` between
 * `start` and `end`, into `into` at `at`. Returns the number of bytes, or -1 for other text. `into` must have room for three bytes per four
 * characters. On short values faster than Buffer.write plus a comparison, which a strict check would need.
 */
export function decodeBase64(from: Uint8Array, start: number, end: number, into: Uint8Array, at: number): number {
  if (((end - start) & 3) !== 0) return -1;
  if (end === start) return 0;
  const pads = from[end - 1] !== padding ? 0 : from[end - 2] !== padding ? 1 : 2;
  const wholeEnd = pads === 0 ? end : end - 4;
  let seen = 0; // bit 7 of characters that are not base64
  let out = at;
  for (let i = start; i < wholeEnd; i += 4) {
    const v0 = values[from[i] as number] as number;
    const v1 = values[from[i + 1] as number] as number;
    const v2 = values[from[i + 2] as number] as number;
    const v3 = values[from[i + 3] as number] as number;
    seen |= v0 | v1 | v2 | v3;
    into[out] = (v0 << 2) | (v1 >> 4);
    into[out + 1] = (v1 << 4) | (v2 >> 2);
    into[out + 2] = (v2 << 6) | v3;
    out += 3;
  }
  if (pads > 0) {
    const v0 = values[from[wholeEnd] as number] as number;
    const v1 = values[from[wholeEnd + 1] as number] as number;
    const v2 = pads === 2 ? 0 : (values[from[wholeEnd + 2] as number] as number);
    const unused = pads === 2 ? v1 & 15 : v2 & 3;
    seen |= v0 | v1 | v2 | (unused === 0 ? 0 : invalid);
    into[out] = (v0 << 2) | (v1 >> 4);
    out += 1;
    if (pads === 1) into[out++] = (v1 << 4) | (v2 >> 2);
  }
  return (seen & invalid) === 0 ? out - at : -1;
}
