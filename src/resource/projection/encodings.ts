/**
 * Writes the bytes that the text in `from` between `start` and `end` stands for into `into` at `at`, and returns their
 * number; -1 when the text is of another form. `into` must have room for `bytesMax` of the text's length.
 */
type Decode = (from: Buffer, start: number, end: number, into: Buffer, at: number) => number;

interface Encoding {
  readonly decode: Decode;
  /** The most bytes that a text of so many bytes of UTF-8 can stand for. */
  readonly bytesMax: (textBytes: number) => number;
}

/** The table of encodings. A value has one form in each: no line breaks, no spaces, unused bits zero. */
export const encodings = {
  /** The text is the value. */
  text: {
    decode: (from, start, end, into, at) => from.copy(into, at, start, end),
    bytesMax: (textBytes) => textBytes,
  },
  /** RFC 4648 §4, padded. */
  base64: { decode: decodeBase64, bytesMax: (textBytes) => Math.ceil(textBytes / 4) * 3 },
  /** RFC 4648 §5, padded or not. */
  base64url: { decode: decodeBase64Url, bytesMax: (textBytes) => Math.ceil(textBytes / 4) * 3 },
  /** RFC 4648 §8, in either case. */
  hex: { decode: decodeHex, bytesMax: (textBytes) => textBytes >> 1 },
  /** A bytea column with bytea_output = hex, PostgreSQL's default (PostgreSQL, 8.4.1). */
  bytea: {
    decode: (from, start, end, into, at) =>
      from.toString('latin1', start, Math.min(end, start + 2)) === '\\x'
        ? decodeHex(from, start + 2, end, into, at)
        : -1,
    bytesMax: (textBytes) => textBytes >> 1,
  },
} as const satisfies Readonly<Record<string, Encoding>>;

export type EncodingName = keyof typeof encodings;

/** The row of an encoding. */
export function encodingOf(name: EncodingName): Encoding {
  return encodings[name];
}

function decodeHex(from: Buffer, start: number, end: number, into: Buffer, at: number): number {
  const digits = from.toString('latin1', start, end);
  const length = into.write(digits, at, 'hex'); // stops at the first character that is no digit
  return length * 2 === digits.length ? length : -1;
}

/** Node decodes more than is canonical; only a text that its bytes encode to is. */
function decodeBase64(from: Buffer, start: number, end: number, into: Buffer, at: number): number {
  const text = from.toString('latin1', start, end);
  const length = into.write(text, at, 'base64');
  return into.toString('base64', at, at + length) === text ? length : -1;
}

function decodeBase64Url(from: Buffer, start: number, end: number, into: Buffer, at: number): number {
  const padded = from.toString('latin1', start, end);
  const bare = padded.replace(/={1,2}$/, '');
  if (bare !== padded && padded.length % 4 !== 0) return -1;
  const length = into.write(bare, at, 'base64url');
  return into.toString('base64url', at, at + length) === bare ? length : -1;
}
