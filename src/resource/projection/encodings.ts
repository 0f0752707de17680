/** Returns the number of bytes, -1 for text of another form. `into` must have room for `bytesMax`. */
type Decode = (from: Buffer, start: number, end: number, into: Buffer, at: number) => number;

export type EncodingName = 'text' | 'base64' | 'base64url' | 'hex' | 'bytea';

interface StoredEncoding {
  readonly decode: Decode;
  readonly bytesMax: (textBytes: number) => number;
}

const notBase64 = 0x80;
const sextets = new Uint8Array(256).fill(notBase64);
for (const [value, character] of [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'].entries())
  sextets[character.charCodeAt(0)] = value;

const padding = 0x3d; // "="

/** Encodings in which a value has one form: no line breaks, no spaces, unused bits zero. */
export const encodings: Readonly<Record<EncodingName, StoredEncoding>> = {
  text: { decode: (from, start, end, into, at) => from.copy(into, at, start, end), bytesMax: (textBytes) => textBytes },
  /** RFC 4648 §4 with padding. */
  base64: { decode: decodeBase64, bytesMax: (textBytes) => Math.ceil(textBytes / 4) * 3 },
  /** RFC 4648 §5, padded or not. */
  base64url: { decode: decodeBase64Url, bytesMax: (textBytes) => Math.ceil(textBytes / 4) * 3 },
  /** RFC 4648 §8, in either case. */
  hex: { decode: decodeHex, bytesMax: (textBytes) => textBytes >> 1 },
  /** bytea_output = hex (PostgreSQL, 8.4.1). */
  bytea: {
    decode: (from, start, end, into, at) =>
      from.toString('latin1', start, Math.min(end, start + 2)) === '\\x'
        ? decodeHex(from, start + 2, end, into, at)
        : -1,
    bytesMax: (textBytes) => textBytes >> 1,
  },
};

/** Decodes from `start` to the end; null for text of another form. */
export function decodeWith(name: EncodingName, from: Buffer, start = 0): Buffer | null {
  const { decode, bytesMax } = encodings[name];
  const bytes = Buffer.alloc(bytesMax(from.length));
  const length = decode(from, start, from.length, bytes, 0);
  return length < 0 ? null : bytes.subarray(0, length);
}

function decodeHex(from: Buffer, start: number, end: number, into: Buffer, at: number): number {
  const digits = from.toString('latin1', start, end);
  const length = into.write(digits, at, 'hex'); // stops at the first character that is no digit
  return length * 2 === digits.length ? length : -1;
}

/** Compares with the text that the bytes encode to, because Node also decodes text that is not canonical. */
function decodeBase64Url(from: Buffer, start: number, end: number, into: Buffer, at: number): number {
  const padded = from.toString('latin1', start, end);
  const bare = padded.replace(/={1,2}$/, '');
  if (bare !== padded && padded.length % 4 !== 0) return -1;
  const length = into.write(bare, at, 'base64url');
  return into.toString('base64url', at, at + length) === bare ? length : -1;
}

/** Accepts canonical text only. Is faster on short values than Buffer.write plus a comparison, which a strict check would need. */
function decodeBase64(from: Uint8Array, start: number, end: number, into: Uint8Array, at: number): number {
  if (((end - start) & 3) !== 0) return -1;
  if (end === start) return 0;
  const pads = from[end - 1] !== padding ? 0 : from[end - 2] !== padding ? 1 : 2;
  const wholeEnd = pads === 0 ? end : end - 4;
  let seen = 0; // bit 7 marks characters that are not base64
  let out = at;
  for (let i = start; i < wholeEnd; i += 4) {
    const v0 = sextets[from[i] as number] as number;
    const v1 = sextets[from[i + 1] as number] as number;
    const v2 = sextets[from[i + 2] as number] as number;
    const v3 = sextets[from[i + 3] as number] as number;
    seen |= v0 | v1 | v2 | v3;
    into[out] = (v0 << 2) | (v1 >> 4);
    into[out + 1] = (v1 << 4) | (v2 >> 2);
    into[out + 2] = (v2 << 6) | v3;
    out += 3;
  }
  if (pads > 0) {
    const v0 = sextets[from[wholeEnd] as number] as number;
    const v1 = sextets[from[wholeEnd + 1] as number] as number;
    const v2 = pads === 2 ? 0 : (sextets[from[wholeEnd + 2] as number] as number);
    const unused = pads === 2 ? v1 & 15 : v2 & 3;
    seen |= v0 | v1 | v2 | (unused === 0 ? 0 : notBase64);
    into[out] = (v0 << 2) | (v1 >> 4);
    out += 1;
    if (pads === 1) into[out++] = (v1 << 4) | (v2 >> 2);
  }
  return (seen & notBase64) === 0 ? out - at : -1;
}
