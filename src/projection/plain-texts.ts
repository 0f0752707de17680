import { sealLayout } from './aes-gcm/gcm-key.js';
import { type Codec, formatMin, formatOf, headOf } from './codec.js';
import { type EncodingName, encodingOf } from './encodings.js';
import { byteSet, hasRun, imageHints, runBytesMin, separators } from './images.js';
import { isText } from './json-bytes.js';
import { PhraseMatcher } from './phrase-matcher.js';

/**
 * Characters of words, numbers, dates and addresses, and À to ÿ. No form of structured data is made of these alone, but for the
 * encoded ones and those that `separatesProse` excludes.
 */
const plain = byteSet(`ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 _.:/+@#!?*()$-,;`);
plain[0xc3] = 1; // with one of the next bytes À to ÿ; these stand behind no other byte of the set
plain.fill(1, 0x80, 0xc0);
const otherBytes = Uint8Array.from({ length: 256 }, (_, byte) => byte).filter((byte) => plain[byte] === 0);
const isWordByte = byteSet('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+/-');

/**
 * Makes a test that is true only for text that is sure to hold no image, no stored value of a codec and no structured data.
 * It looks at each byte about once; of any other text the exact tests decide, which take several times as long.
 */
export function plainTexts(sealed: SealedTexts): (bytes: Buffer, start: number, end: number) => boolean {
  // The blanks and the first characters are those with which images are looked for (strip.ts).
  const hints = new PhraseMatcher([...imageHints, ...structureHints, ...sealed.marks], separators, '12', otherBytes);
  return (bytes, start, end) =>
    end - start < runBytesMin && // a shorter text holds no list of numbers
    !hints.isIn(bytes, start, end) &&
    !hasRun(isWordByte, structureRunMin, bytes, start, end) &&
    separatesProse(bytes, start, end) &&
    !sealed.areInUnmarked(bytes, start, end);
}

const [comma, semicolon, colon, parenthesis, blank, zero, nine] = [0x2c, 0x3b, 0x3a, 0x28, 0x20, 0x30, 0x39];

/**
 * Whether a text has no comma and no semicolon, or only as prose and numbers have them: commas before a blank or a digit, at most
 * one semicolon, beside at most one colon, and not behind a parenthesis that begins the text. Then it is neither separated values, nor pairs of
 * key and value, nor a row of PostgreSQL.
 */
function separatesProse(bytes: Buffer, start: number, end: number): boolean {
  let [commas, semicolons, colons] = [0, 0, 0];
  for (let i = start; i < end; i++) {
    const byte = bytes[i];
    if (byte === colon) colons++;
    else if (byte === semicolon) semicolons++;
    else if (byte === comma) {
      const next = i + 1 < end ? (bytes[i + 1] as number) : 0;
      if (next !== blank && (next < zero || next > nine)) return false;
      commas++;
    }
  }
  if (commas + semicolons === 0) return true;
  return semicolons < 2 && colons < 2 && bytes[start] !== parenthesis && bytes[start] !== blank;
}

/** Tests of texts for values as codecs store them. In doubt the answer is true, because the audit log then hides the text. */
export interface SealedTexts {
  readonly areIn: (text: string) => boolean;
  /** In lower case; a text with one of them holds such a value. */
  readonly marks: readonly string[];
  /** The same for UTF-8 without a mark. */
  readonly areInUnmarked: BytesTest;
}

type BytesTest = (bytes: Buffer, start: number, end: number) => boolean;

/**
 * Makes the tests for these codecs. A stored value is known by its prefix; without one by a run of its digits that is as
 * long as its bytes are at least, or, where it is not encrypted, by a run that decodes to text.
 */
export function sealedTexts(codecs: readonly Codec[]): SealedTexts {
  // The next version of a format must not show either.
  const markOf = (head: string): string[] => (head.length < formatMin ? [] : [formatOf(head).toLowerCase()]);
  const marks = [...new Set(codecs.map(headOf).flatMap(markOf))];
  const tests = codecs.flatMap((codec) => (isMarked(codec) ? [] : unmarked[codec.cipher](codec)));
  const areInUnmarked: BytesTest = (bytes, start, end) => tests.some((isIn) => isIn(bytes, start, end));
  return {
    areIn: (text) => {
      const lower = text.toLowerCase();
      if (marks.some((mark) => lower.includes(mark))) return true;
      const bytes = Buffer.from(tests.length === 0 ? '' : text);
      return areInUnmarked(bytes, 0, bytes.length);
    },
    marks,
    areInUnmarked,
  };
}

/** Whether each stored value has a mark. */
const isMarked = (codec: Codec): boolean => headOf(codec).length >= formatMin;

const alphanumeric = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
/** Bytes that a module's value has at least, such as a block of AES and a nonce. */
const moduleBytesMin = 12;
/** Characters without a blank, in a text that a module may have made. */
const moduleRunMin = 16;
const notBlank = Uint8Array.from({ length: 256 }, (_, byte) => (byte > 0x20 ? 1 : 0));

/** Tests for values without a prefix, by cipher. */
const unmarked: Readonly<Record<Codec['cipher'], (codec: Codec) => BytesTest[]>> = {
  none: ({ encoding }) => writtenAs(encoding).map(decodableRuns),
  'aes-256-gcm': ({ encoding, layout = [] }) => longRuns(encoding, sealLayout(layout)?.overheadBytes ?? moduleBytesMin),
  module: ({ encoding }) =>
    encoding === 'text'
      ? [(bytes, start, end) => hasRun(notBlank, moduleRunMin, bytes, start, end)]
      : longRuns(encoding, moduleBytesMin),
};

type Digits = Exclude<EncodingName, 'text' | 'bytea'>;

/** Digits of each encoding, and how many of them hold a byte. */
const digits: Readonly<Record<Digits, { readonly set: Uint8Array; readonly perByte: number }>> = {
  base64: { set: byteSet(`${alphanumeric}+/`), perByte: 4 / 3 },
  base64url: { set: byteSet(`${alphanumeric}_-`), perByte: 4 / 3 },
  hex: { set: byteSet('0123456789abcdefABCDEF'), perByte: 2 },
};

/** The encodings in which a log can have the value: the log's writer prints bytes in a form of its own. */
function writtenAs(encoding: EncodingName): readonly Digits[] {
  if (encoding === 'text') return [];
  return encoding === 'bytea' ? ['hex', 'base64', 'base64url'] : [encoding];
}

const padding = 0x3d; // "="
const uuid = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i;

/** Whether a test is true for one of the runs of digits with their padding, but for UUIDs. `isWhole`: there is nothing beside it but blanks. */
function someRun(
  name: Digits,
  isFound: (bytes: Buffer, start: number, end: number, isWhole: boolean) => boolean,
): BytesTest {
  const { set } = digits[name];
  return (bytes, start, end) => {
    let [first, last] = [start, end];
    while (first < last && notBlank[bytes[first] as number] === 0) first++;
    while (last > first && notBlank[bytes[last - 1] as number] === 0) last--;
    for (let from = first; from < last; ) {
      let at = from;
      while (at < last && set[bytes[at] as number] === 1) at++;
      if (at > from) for (let pads = 0; at < last && bytes[at] === padding && pads < 2; pads++) at++;
      if (at > from && isFound(bytes, from, at, from === first && at === last))
        if (at - from !== 36 || !uuid.test(bytes.toString('latin1', from, at))) return true;
      from = Math.max(at, from + 1);
    }
    return false;
  };
}

function longRuns(encoding: EncodingName, bytesMin: number): BytesTest[] {
  return writtenAs(encoding).map((name) => {
    const length = Math.ceil(bytesMin * digits[name].perByte);
    const isLong = someRun(name, (_, start, end) => end - start >= length);
    return (bytes, start, end) => end - start >= length && isLong(bytes, start, end);
  });
}

/** Short words of prose can decode to text by chance; a whole text is looked at however short it is. */
const foundRunMin = 12;
/** Up to this length a run is decoded into the same buffer again and again. */
const shortRunMax = 128;

function decodableRuns(name: Digits): BytesTest {
  const { decode, bytesMax } = encodingOf(name);
  const reused = Buffer.allocUnsafe(bytesMax(shortRunMax));
  return someRun(name, (run, start, end, isWhole) => {
    if (!isWhole && end - start < foundRunMin) return false;
    const bytes = end - start > shortRunMax ? Buffer.allocUnsafe(bytesMax(end - start)) : reused;
    const length = decode(run, start, end, bytes, 0);
    // Checked before a string is made: TextDecoder reports other bytes by an exception, and words of prose are often such bytes.
    return length >= 3 && isText(bytes, 0, length) && /^[^\p{Cc}\p{Cn}]+$/u.test(bytes.toString('utf8', 0, length));
  });
}

/**
 * Whether a text looks like structured data rather than a word, a number, a date or prose: JSON and other notations for
 * objects and lists, XML and HTML, pairs of key and value, separated values, and any of these encoded once more.
 * Redaction hides such a text, so in doubt the answer is true.
 */
export function looksStructured(text: string): boolean {
  if (/^[\w .-]*$/.test(text)) return encoded.test(text); // none of the other forms is without a further character
  // Full-width brackets and invisible characters would hide a form from the patterns.
  const plain = /[^ -~\s]/.test(text) ? text.normalize('NFKC').replace(/\p{Cf}/gu, '') : text;
  return forms.some((form) => form.test(plain)) || [...plain.matchAll(keyedValue)].length > 1;
}

/** "key: value" at the beginning, or behind a line break or a separator. Prose may have one of these, data has several. */
const keyedValue = /(?:^|[\r\n;,|])[ \t*-]*\p{L}[\w .-]{0,40}:\s*\S/gu;

/** Characters of a run that is long enough to be encoded data. */
const structureRunMin = 40;

/** In letters, digits, blanks and the signs _.:/+@#!?*()$- only encoded data is structured: such a run, or one of these, in either case. */
const structureHints: readonly string[] = [
  ...['eyJ', 'eyA', 'ewo', 'ewk', 'W3s', 'WyI', 'WyJ', 'WwW', 'PD94', 'PHht'],
  ...['7b', '5b', '3c'].flatMap((bracket) => [...'234567'].map((digit) => bracket + digit)),
];

/** A long run of base64 or hexadecimal digits, or a short one of which the first bytes are a bracket and a quote. */
const encoded =
  /[\w+/-]{40}|(?:eyJ|eyA|ewo|ewk|W3s|Wy[IJ]|WwW|PD94|PHht)[\w+/-]{6}|(?:7[bB]|5[bB]|3[cC])(?:[2-7][\da-fA-F]){8}/;

/** Each takes time that grows with the length of the text alone, not with its square. */
const forms: readonly RegExp[] = [
  // An object or a list that begins the text, a brace anywhere, a text within quotation marks, a row of PostgreSQL.
  /^\s*[[<]|\{|^\s*(["'`])[\s\S]*\1\s*$|^\s*\([^,]*,[\s\S]*\)\s*$/,
  // "key": value, "key" => "value", "item", "item", ["item.
  /["'`]\s*(?::|=|,\s*["'`\d[])|[[\]][\s,]*["'`]/,
  // Tags and character references.
  /<[a-z/!?]|&(?:#x?[\da-f]+|[a-z]{2,6});/i,
  // Escapes of URLs and of JSON.
  /%[\da-f]{2}|\\(?:["']|u[\da-f]{4}|x[\da-f]{2})/i,
  // key = value.
  /[\p{L}\d_\])]\s*=\s*\S/u,
  // Three values apart by semicolons, bars or tabs, or by commas without a blank.
  /;[^;]*;|\|[^|]*\||\t[^\t]*\t|,[^\s\d,][^,]*,[^\s\d]/,
  encoded,
];
