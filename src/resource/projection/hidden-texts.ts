import { type Codec, formatMin, formatOf, headOf } from './codec.js';
import { type EncodingName, encodings } from './encodings.js';
import { byteSet, hasRun } from './images.js';
import { isText } from './json-bytes.js';
import { sealLayout } from './seal-layout.js';

type BytesTest = (bytes: Buffer, start: number, end: number) => boolean;

/** Whether a text holds a stored value, by its prefix or a long run of its digits. In doubt true: the audit log then hides it. */
export function sealedTexts(codecs: readonly Codec[]): (text: string) => boolean {
  const marks = codecs
    .map(headOf)
    .filter(isMark)
    .map((head) => formatOf(head).toLowerCase()); // the next version must not show either
  const tests = codecs.flatMap((codec) => (isMark(headOf(codec)) ? [] : unmarked[codec.cipher](codec)));
  return (text) => {
    const lower = text.toLowerCase();
    if (marks.some((mark) => lower.includes(mark))) return true;
    if (tests.length === 0) return false;
    const bytes = Buffer.from(text);
    return tests.some((isIn) => isIn(bytes, 0, bytes.length));
  };
}

const isMark = (head: string): boolean => head.length >= formatMin;
const alphanumeric = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
/** Such as a block of AES and a nonce. */
const moduleBytesMin = 12;
const moduleRunMin = 16;
const notBlank = Uint8Array.from({ length: 256 }, (_, byte) => (byte > 0x20 ? 1 : 0));

const unmarked: Readonly<Record<Codec['cipher'], (codec: Codec) => BytesTest[]>> = {
  none: ({ encoding }) => writtenAs(encoding).map(decodableRuns),
  'aes-256-gcm': ({ encoding, layout = [] }) => longRuns(encoding, sealLayout(layout)?.overheadBytes ?? moduleBytesMin),
  module: ({ encoding }) =>
    encoding === 'text'
      ? [(bytes, start, end) => hasRun(notBlank, moduleRunMin, bytes, start, end)]
      : longRuns(encoding, moduleBytesMin),
};

type Digits = Exclude<EncodingName, 'text' | 'bytea'>;

const digits: Readonly<Record<Digits, { readonly set: Uint8Array; readonly perByte: number }>> = {
  base64: { set: byteSet(`${alphanumeric}+/`), perByte: 4 / 3 },
  base64url: { set: byteSet(`${alphanumeric}_-`), perByte: 4 / 3 },
  hex: { set: byteSet('0123456789abcdefABCDEF'), perByte: 2 },
};

/** The log's writer prints bytes in a form of its own. */
function writtenAs(encoding: EncodingName): readonly Digits[] {
  if (encoding === 'text') return [];
  return encoding === 'bytea' ? ['hex', 'base64', 'base64url'] : [encoding];
}

const padding = 0x3d; // "="
const uuid = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i;

/** Not of a UUID. `isWhole`: only spaces stand beside the run. */
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

/** Short words of prose can decode to text by chance; a whole text counts however short it is. */
const foundRunMin = 12;
/** Decoded into the same buffer again and again. */
const shortRunMax = 128;

function decodableRuns(name: Digits): BytesTest {
  const { decode, bytesMax } = encodings[name];
  const reused = Buffer.allocUnsafe(bytesMax(shortRunMax));
  return someRun(name, (run, start, end, isWhole) => {
    if (!isWhole && end - start < foundRunMin) return false;
    const bytes = end - start > shortRunMax ? Buffer.allocUnsafe(bytesMax(end - start)) : reused;
    const length = decode(run, start, end, bytes, 0);
    // Checked first: TextDecoder reports other bytes by an exception, and words of prose are often such bytes.
    return length >= 3 && isText(bytes, 0, length) && /^[^\p{Cc}\p{Cn}]+$/u.test(bytes.toString('utf8', 0, length));
  });
}

/** JSON, XML, keys with values, separated values, or these encoded once more. In doubt true, because redaction hides the text. */
export function looksStructured(text: string): boolean {
  if (/^[\w .-]*$/.test(text)) return encoded.test(text); // none of the other forms is without a further character
  // Full-width brackets and invisible characters would hide a form from the patterns.
  const plain = /[^ -~\s]/.test(text) ? text.normalize('NFKC').replace(/\p{Cf}/gu, '') : text;
  return forms.some((form) => form.test(plain)) || [...plain.matchAll(keyedValue)].length > 1;
}

/** At a beginning. Prose may have one of these, data has several. */
const keyedValue = /(?:^|[\r\n;,|])[ \t*-]*\p{L}[\w .-]{0,40}:\s*\S/gu;

/** A long run of base64 or hexadecimal, or a short one that begins with a bracket and a quote. */
const encoded =
  /[\w+/-]{40}|(?:eyJ|eyA|ewo|ewk|W3s|Wy[IJ]|WwW|PD94|PHht)[\w+/-]{6}|(?:7[bB]|5[bB]|3[cC])(?:[2-7][\da-fA-F]){8}/;

/** Linear in the length of the text. */
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
  // Three values apart by semicolons, bars or tabs, or by commas without a space.
  /;[^;]*;|\|[^|]*\||\t[^\t]*\t|,[^\s\d,][^,]*,[^\s\d]/,
  encoded,
];
