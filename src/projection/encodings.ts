import { decodeBase64 } from './base64.js';

/**
 * Writes the bytes that `text` holds from `start` to its end into `into` at `at`, and returns their number; -1 when the text
 * is of another form. `into` must have room for `bytesMax` of the text's length.
 */
type Decode = (text: string, start: number, into: Buffer, at: number) => number;

interface Encoding {
  readonly decode: Decode;
  /** The most bytes that a text of so many characters can hold. */
  readonly bytesMax: (characters: number) => number;
}

/** The table of encodings. A value has one form in each: no line breaks, no blanks, unused bits zero. */
export const encodings = {
  /** The text is the value. */
  text: {
    decode: (text, start, into, at) => into.write(text.slice(start), at),
    bytesMax: (characters) => characters * 3,
  },
  /** RFC 4648 §4, padded. */
  base64: { decode: decodeBase64, bytesMax: (characters) => Math.ceil(characters / 4) * 3 },
  /** RFC 4648 §5, padded or not. */
  base64url: { decode: decodeBase64Url, bytesMax: (characters) => Math.ceil(characters / 4) * 3 },
  /** RFC 4648 §8, in either case. */
  hex: { decode: decodeHex, bytesMax: (characters) => characters >> 1 },
  /** A bytea column with bytea_output = hex, PostgreSQL's default (PostgreSQL, 8.4.1). */
  bytea: {
    decode: (text, start, into, at) => (text.startsWith('\\x', start) ? decodeHex(text, start + 2, into, at) : -1),
    bytesMax: (characters) => characters >> 1,
  },
} as const satisfies Readonly<Record<string, Encoding>>;

export type EncodingName = keyof typeof encodings;

/** The row of an encoding. */
export function encodingOf(name: EncodingName): Encoding {
  return encodings[name];
}

function decodeHex(text: string, start: number, into: Buffer, at: number): number {
  const digits = start === 0 ? text : text.slice(start);
  const length = into.write(digits, at, 'hex'); // stops at the first character that is no digit
  return length * 2 === digits.length ? length : -1;
}

/** Node decodes more than is canonical; only a text that its bytes encode to is. */
function decodeBase64Url(text: string, start: number, into: Buffer, at: number): number {
  const padded = start === 0 ? text : text.slice(start);
  const bare = padded.replace(/={1,2}$/, '');
  if (bare !== padded && padded.length % 4 !== 0) return -1;
  const length = into.write(bare, at, 'base64url');
  return into.toString('base64url', at, at + length) === bare ? length : -1;
}
