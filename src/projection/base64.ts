const invalid = 0x80;

/** Value of each ASCII character of base64 (RFC 4648 §4). */
const values = new Uint8Array(128).fill(invalid);
for (const [value, character] of [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'].entries()) {
  values[character.charCodeAt(0)] = value;
}

const padding = 0x3d; // "="

/**
 * Decodes canonical base64 (RFC 4648 §4: padded, no line breaks, unused bits zero), which `text` holds from `start` to its end,
 * into `into` at `at`. Returns the number of bytes, or -1 for other text. `into` must have room for three bytes per four
 * characters. On short values faster than Buffer.write plus a comparison, which a strict check would need.
 */
export function decodeBase64(text: string, start: number, into: Uint8Array, at: number): number {
  const length = text.length;
  if (((length - start) & 3) !== 0) return -1;
  if (length === start) return 0;
  const pads = text.charCodeAt(length - 1) !== padding ? 0 : text.charCodeAt(length - 2) !== padding ? 1 : 2;
  const wholeEnd = pads === 0 ? length : length - 4;
  let seen = 0; // high bits of characters that are not ASCII, bit 7 of those that are not base64
  let out = at;
  for (let i = start; i < wholeEnd; i += 4) {
    const [c0, c1, c2, c3] = [
      text.charCodeAt(i),
      text.charCodeAt(i + 1),
      text.charCodeAt(i + 2),
      text.charCodeAt(i + 3),
    ];
    const v0 = values[c0 & 127] as number;
    const v1 = values[c1 & 127] as number;
    const v2 = values[c2 & 127] as number;
    const v3 = values[c3 & 127] as number;
    seen |= v0 | v1 | v2 | v3 | ((c0 | c1 | c2 | c3) & ~127);
    into[out] = (v0 << 2) | (v1 >> 4);
    into[out + 1] = (v1 << 4) | (v2 >> 2);
    into[out + 2] = (v2 << 6) | v3;
    out += 3;
  }
  if (pads > 0) {
    const [c0, c1, c2] = [text.charCodeAt(wholeEnd), text.charCodeAt(wholeEnd + 1), text.charCodeAt(wholeEnd + 2)];
    const v0 = values[c0 & 127] as number;
    const v1 = values[c1 & 127] as number;
    const v2 = pads === 2 ? 0 : (values[c2 & 127] as number);
    const unused = pads === 2 ? v1 & 15 : v2 & 3;
    seen |= v0 | v1 | v2 | ((c0 | c1 | c2) & ~127) | (unused === 0 ? 0 : invalid);
    into[out] = (v0 << 2) | (v1 >> 4);
    out += 1;
    if (pads === 1) into[out++] = (v1 << 4) | (v2 >> 2);
  }
  return (seen & ~127) === 0 ? out - at : -1;
}
