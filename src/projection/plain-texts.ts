import { sealLayout } from './aes-gcm/gcm-key.js';
import { type Codec, formatMin, formatOf, headsOf } from './codec.js';
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
    !sealed.mayBeIn(bytes, start, end);
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

/** Tests of texts for values as codecs store them. */
export interface SealedTexts {
  /** Whether a text holds such a value. In doubt the answer is true, because the audit log then hides the text. */
  readonly areIn: (text: string) => boolean;
  /** In lower case; a text with one of them holds such a value. */
  readonly marks: readonly string[];
  /** Whether a text of ASCII and À to ÿ without a mark can hold such a value: far cheaper, without making a string. */
  readonly mayBeIn: BytesTest;
}

/**
 * Makes the tests for these codecs. A stored value is known by its prefix; without one by a run of its digits that is as
 * long as its bytes are at least, or, where it is not encrypted, by a run that decodes to text.
 */
export function sealedTexts(codecs: readonly Codec[]): SealedTexts {
  const marks = [...new Set(codecs.flatMap(marksOf))];
  const tests = codecs.flatMap((codec) => (isMarked(codec) ? [] : unmarked[codec.cipher](codec)));
  return {
    areIn: (text) => {
      const lower = text.toLowerCase();
      return marks.some((mark) => lower.includes(mark)) || tests.some(({ isIn }) => isIn(text));
    },
    marks,
    mayBeIn: (bytes, start, end) => tests.some(({ mayBeIn }) => mayBeIn(bytes, start, end)),
  };
}

type BytesTest = (bytes: Buffer, start: number, end: number) => boolean;

interface Test {
  readonly isIn: (text: string) => boolean;
  /** The same question about ASCII and À to ÿ, where false is sure. */
  readonly mayBeIn: BytesTest;
}

const alphanumeric = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';

/** Bytes that a module's value has at least, such as a block of AES and a nonce. */
const moduleBytesMin = 12;
/** A run of 16 characters without a blank, in a text that a module may have made. */
const moduleRun = /\S{16}/;
/** A byte that is not ASCII is part of a character, which is taken for no blank. */
const notBlank = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte >= 0x80 || /\S/.test(String.fromCharCode(byte)) ? 1 : 0,
);

function marksOf(codec: Codec): string[] {
  return headsOf(codec)
    .filter(({ length }) => length >= formatMin)
    .map((head) => formatOf(head).toLowerCase()); // nor must the next version of a format show
}

/** Whether each stored value has a mark. */
function isMarked(codec: Codec): boolean {
  const heads = headsOf(codec);
  return heads.length > 0 && heads.every(({ length }) => length >= formatMin);
}

/** Tests for values without a prefix, by cipher. */
const unmarked: Readonly<Record<Codec['cipher'], (codec: Codec) => Test[]>> = {
  none: ({ encoding }) => writtenAs(encoding).map(decodableRuns),
  'aes-256-gcm': ({ encoding, layout = [] }) => longRuns(encoding, sealLayout(layout)?.overheadBytes ?? moduleBytesMin),
  module: ({ encoding }) =>
    encoding === 'text'
      ? [
          {
            isIn: (text) => moduleRun.test(text),
            mayBeIn: (bytes, start, end) => hasRun(notBlank, 16, bytes, start, end),
          },
        ]
      : longRuns(encoding, moduleBytesMin),
};

type Digits = Exclude<EncodingName, 'text' | 'bytea'>;

/** Digits of each encoding, and how many of them hold a byte. */
const digits: Readonly<Record<Digits, { readonly run: RegExp; readonly set: Uint8Array; readonly perByte: number }>> = {
  base64: {
    run: /[A-Za-z0-9+/]+={0,2}/g,
    set: byteSet(`${alphanumeric}+/=`),
    perByte: 4 / 3,
  },
  base64url: { run: /[\w-]+={0,2}/g, set: byteSet(`${alphanumeric}_-=`), perByte: 4 / 3 },
  hex: { run: /(?<=\\x)[\da-f]+|[\da-f]+/gi, set: byteSet('0123456789abcdefABCDEF'), perByte: 2 },
};

/** The encodings in which a log can have the value: the log's writer prints bytes in a form of its own. */
function writtenAs(encoding: EncodingName): readonly Digits[] {
  if (encoding === 'text') return [];
  return encoding === 'bytea' ? ['hex', 'base64', 'base64url'] : [encoding];
}

const uuid = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i;

function runsOf(text: string, name: Digits): string[] {
  return (text.match(digits[name].run) ?? []).filter((run) => !uuid.test(run));
}

function longRuns(encoding: EncodingName, bytesMin: number): Test[] {
  return writtenAs(encoding).map((name) => {
    const { perByte, set } = digits[name];
    const length = Math.ceil(bytesMin * perByte);
    return {
      isIn: (text) => text.length >= length && runsOf(text, name).some((run) => run.length >= length),
      mayBeIn: (bytes, start, end) => hasRun(set, length, bytes, start, end),
    };
  });
}

function decodableRuns(name: Digits): Test {
  const { set } = digits[name];
  const isEncoded = decodesToText(name);
  const hasEncoded: BytesTest = (bytes, start, end) => {
    for (let from = start; from < end; ) {
      let at = from;
      while (at < end && set[bytes[at] as number] === 1 && bytes[at] !== padding) at++;
      for (let pads = 0; at < end && bytes[at] === padding && pads < 2; pads++) at++;
      const isWhole = from === start && at === end;
      if ((isWhole || at - from >= foundRunMin) && isEncoded(bytes, from, at)) return true;
      from = Math.max(at, from + 1);
    }
    return false;
  };
  return {
    isIn: (text) => runsOf(text, name).some((run) => isFound(run, text) && isEncoded(Buffer.from(run), 0, run.length)),
    mayBeIn: (bytes, start, end) => isBlank(bytes[start]) || isBlank(bytes[end - 1]) || hasEncoded(bytes, start, end),
  };
}

const foundRunMin = 12;
/** Up to this length a run is decoded into the same buffer again and again. */
const shortRunMax = 128;
const padding = 0x3d; // "="

/** Short words of prose can decode to text by chance; a whole text is looked at however short it is. */
function isFound(run: string, text: string): boolean {
  return run.length >= foundRunMin || run === text.trim();
}

function isBlank(byte: number | undefined): boolean {
  return byte !== undefined && byte <= 0x20;
}

function decodesToText(name: Digits): BytesTest {
  const { decode, bytesMax } = encodingOf(name);
  const reused = Buffer.allocUnsafe(bytesMax(shortRunMax));
  return (run, start, end) => {
    const bytes = end - start > shortRunMax ? Buffer.allocUnsafe(bytesMax(end - start)) : reused;
    const length = decode(run, start, end, bytes, 0);
    // Checked before a string is made: TextDecoder reports other bytes by an exception, and words of prose are often such bytes.
    return length >= 3 && isText(bytes, 0, length) && /^[^\p{Cc}\p{Cn}]+$/u.test(bytes.toString('utf8', 0, length));
  };
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
