import { skipSpace, stringEnd } from './json-scan.js';
import { PhraseMatcher } from './phrase-matcher.js';

/**
 * Whether a text holds an image: a data URI, SVG mark-up, or the base64 (also of base64), base64url, percent-encoded,
 * hexadecimal or byte-list form of a raster image, anywhere in it; any 1024 consecutive base64 characters; or more than 64
 * consecutive small integers.
 *
 * The magic numbers are found also where white space (RFC 2045 §6.8 wraps base64 at 76 characters), commas or invisible
 * characters interrupt them.
 */
export function holdsImage(text: string): boolean {
  if (text.length < textLengthMin) return false;
  if (holdsMark(text)) return true;
  if (text.length >= runBytesMin) {
    const bytes = Buffer.from(text);
    if (hasRun(isRunByte, runLengthMin, bytes, 0, bytes.length)) return true;
    if (mayHaveIntegerRun(bytes, 0, bytes.length) && integerRun.test(text)) return true;
  }
  if (!/["\s,\u00ad\u200b-\u200d\u2060]/.test(text)) return false; // \s has U+FEFF
  const isInterrupted = encodedMagic.isInText(text);
  if (isInterrupted && holdsMark(text.replace(/[\s,\u00ad\u200b-\u200d\u2060]+/g, ''))) return true;
  if (!text.includes('\n') && !text.includes('\r')) return false;
  const lines = text.split(/[\r\n]+/).map((line) => line.trim());
  return holdsMark(lines.join('')) || hasWrappedRun(lines);
}

/** Of PNG's magic: nothing shorter counts. */
const textLengthMin = 'iVBORw0KGgo'.length;
const runLengthMin = 1024;
/** As base64, base64url, some JSON writers and percent-encoding have it. */
const slash = String.raw`(?:\\?\/|_|%2[Ff])`;
const digit = String.raw`(?:[A-Za-z0-9+/_-]|\\\/|%2[BbFf])`;
/** PNG and JPEG as JSON prints a Buffer ([137,80,…]) or a Uint8Array ({"0":137,"1":80,…}). */
const pngBytes = byteList(['137', '80', '78', '71', '13', '10', '26', '10']);
const jpegBytes = byteList(['255', '216', '255', String.raw`(?:2[23]\d|219|238)`, String.raw`\d+`, String.raw`\d+`]);

/** Each with a hint: a literal in every text with the mark, searched first, because it costs a tenth. */
type Mark = readonly [hint: string, pattern: RegExp];
const marks: readonly Mark[] = [
  ['<', /<(?:\w{1,20}:)?svg/i],
  ['&', /&lt;svg/i],
  ['%', /%3csvg/i],
  ['\\u003', /\\u003csvg/i],
  // Base64 of the first bytes of PNG, GIF, JPEG, RIFF (WEBP), BMP (reserved bytes are zero), TIFF, HEIC/AVIF, SVG.
  ['iVBORw0KGgo', /iVBORw0KGgo/],
  ['R0lGOD', /R0lGOD[dl]/],
  ['9j', new RegExp(`${slash}9j${slash}${digit}{40}`)],
  ['UklGR', new RegExp(`UklGR${digit}{20}`)],
  ['Qk', new RegExp(`Qk[0-3]${digit}{5}AAAAA`)],
  ['SUkqA', new RegExp(`(?<![A-Za-z0-9+/_-])SUkqA${digit}{20}`)],
  ['TU0AK', new RegExp(`(?<![A-Za-z0-9+/_-])TU0AK${digit}{20}`)],
  ['Z0eXB', /Z0eXB(?:oZWl|hdmlm|taWYx)/],
  ['PHN2Z', new RegExp(`PHN2Z[wyz]${digit}{20}`)],
  ['PD94bWw', new RegExp(`PD94bWw${digit}{40}`)],
  // Hexadecimal PNG, GIF and JPEG, also as bytea prints them.
  ['89504', /89504e47/i],
  ['474946383', /474946383[79]61/],
  ['ffd8ff', /(?<![0-9a-f])ffd8ff[0-9a-f]{40}/i],
  ['FFD8FF', /(?<![0-9a-f])ffd8ff[0-9a-f]{40}/i],
  // Base64 of the base64 of PNG, JPEG, GIF, RIFF and a data URI.
  ['aVZCT1J3MEtHZ2', /aVZCT1J3MEtHZ2/],
  ['LzlqL', new RegExp(`LzlqL${digit}{40}`)],
  ['UjBsR09E', /UjBsR09E/],
  ['VWtsR', new RegExp(`VWtsR${digit}{20}`)],
  ['ZGF0YTppbWFnZ', /ZGF0YTppbWFnZ/],
  ['137', new RegExp(pngBytes)],
  ['216', new RegExp(jpegBytes)],
  // A character reference, hexadecimal with a colon or dash between the bytes, and percent-encoded bytes; hints that base64 cannot have.
  ['&#', /&#(?:0*60|x0*3c);?svg/i],
  [':50:4', /89:50:4e:47/i],
  ['-50-4', /89-50-4e-47/i],
  [':49:46:38', /47:49:46:38/],
  ['-49-46-38', /47-49-46-38/],
  ...[':d8:f', ':D8:F'].map((hint): Mark => [hint, /ff:d8:ff(?::[\da-f]{2}){8}/i]),
  ...['-d8-f', '-D8-F'].map((hint): Mark => [hint, /ff-d8-ff(?:-[\da-f]{2}){8}/i]),
  ['%89', /%89(?:PNG|%50%4e%47)/i],
  ['%47', /%47%49%46%38/],
  ...['%ff%d8', '%FF%D8'].map((hint): Mark => [hint, /%ff%d8%ff/i]),
  ['%0', /GIF8[79]a\S{0,4}%0[01]/],
];

/** In either case; of every mark that no line break interrupts. */
export const imageHints: readonly string[] = [
  ...marks.map(([hint]) => hint).filter((hint) => hint !== '9j'),
  ...['/9j', '_9j', 'f9j', 'data:', 'data%3'],
];

/** They can interrupt a magic number; of the invisible ones the bytes. */
export const separators: readonly number[] = Buffer.from(' \t\r\n,\u00ad\u200b\u200c\u200d\u2060\ufeff').toJSON().data;

/** They mean the same without the separators. */
const encodedMagic = new PhraseMatcher(
  imageHints.filter((hint) => /^[\w/]{3,}$/.test(hint) && !/^\d{3}$/.test(hint)),
  separators,
);

/** No part of it is both rare and the same in either case. */
const dataUri = /data(?::|%3a)image/i;

function holdsMark(text: string): boolean {
  for (const [hint, pattern] of marks) if (text.includes(hint) && pattern.test(text)) return true;
  return dataUri.test(text);
}

export function byteListStarts(json: string): number[] {
  if (!json.includes('137') && !json.includes('216')) return []; // the bytes with which the marks of both are found
  return [...json.matchAll(new RegExp(`${pngBytes}|${jpegBytes}`, 'g'))].map(({ index }) => index);
}

/** Quotes are escaped when the JSON is inside a string of JSON. */
function byteList(bytes: string[]): string {
  const items = bytes.map((byte, index) => String.raw`(?:\\?"${index}\\?"\s*:\s*)?(?:\\?")?${byte}(?:\\?")?`);
  return String.raw`[[{]\s*${items.join(String.raw`\s*,\s*`)}(?!\d)`;
}

const base64List = /\[\s*"[\w+/=-]*"(?:\s*,\s*"[\w+/=-]*")+\s*\]/g;

export function chunkedImageStarts(json: string): number[] {
  return [...json.matchAll(base64List)].flatMap(({ 0: list, index }) =>
    isChunkedImage(list.match(/[\w+/=-]+/g) ?? []) ? [index] : [],
  );
}

function isChunkedImage(chunks: readonly string[]): boolean {
  const [first = '', second = ''] = chunks;
  const areEqual = chunks.slice(1, -1).every(({ length }) => length === first.length);
  const images = chunks.filter((chunk) => holdsImage(chunk)).length;
  if (images > 1) return false; // each string is an image by itself
  if (images === 1) return holdsImage(first) && areEqual && (chunks.length > 2 || second.length > 64);
  const joined = chunks.join('');
  return holdsMark(joined) || (areEqual && first.length >= 40 && joined.length >= runLengthMin);
}

/** 1024 consecutive bytes of base64, also across the strings of a list. */
export function hasChunkedRun(bytes: Uint8Array, start: number, end: number): boolean {
  return hasRun(isChunkByte, runLengthMin, bytes, start, end);
}

/** Long enough to be wrapped base64 rather than a list of short codes. */
const wrappedLine = /^[A-Za-z0-9+/_-]{32,}={0,2}$/;

function hasWrappedRun(lines: string[]): boolean {
  let length = 0;
  for (const line of lines) {
    length = wrappedLine.test(line) ? length + line.length : 0;
    if (length >= runLengthMin) return true;
  }
  return false;
}

/** With the backslash or percent sign by which some writers escape the slash. */
const runCharacters = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ/0123456789+-_\\%';
const isRunByte = byteSet(runCharacters);
const isChunkByte = byteSet(`${runCharacters}=", \t\r\n`);
/** More count as the bytes of an image or the points of a pen. */
const integersMax = 64;

/** A digit and a comma for each. */
export const runBytesMin = integersMax * 2;

interface Open {
  readonly start: number;
  readonly isObject: boolean;
  /** All items so far are integers, or containers of integers. */
  pure: boolean;
  integers: number;
}

/** Outermost containers of nothing but more than 64 small integers: bytes, pen strokes, an index for each name. In order. Throws MalformedJson. */
export function integerLists(json: string): [start: number, end: number][] {
  const open: Open[] = [];
  const found: [number, number][] = [];
  const parentIsImpure = (): void => {
    const parent = open.at(-1);
    if (parent !== undefined) parent.pure = false;
  };
  for (let at = 0; at < json.length; at++) {
    const character = json[at] as string;
    if (character === '"') {
      const end = stringEnd(json, at);
      const isIndex =
        open.at(-1)?.isObject && json[skipSpace(json, end)] === ':' && /^"\d+"$/.test(json.slice(at, end));
      if (!isIndex) parentIsImpure();
      at = end - 1;
    } else if (character === '[' || character === '{') {
      open.push({ start: at, isObject: character === '{', pure: true, integers: 0 });
    } else if (character === ']' || character === '}') {
      const closed = open.pop();
      if (closed === undefined) continue;
      const isList = closed.pure && closed.integers > integersMax;
      if (isList) {
        while ((found.at(-1)?.[0] ?? -1) > closed.start) found.pop();
        found.push([closed.start, at + 1]);
      }
      const parent = open.at(-1);
      if (parent !== undefined) {
        parent.pure &&= closed.pure;
        parent.integers += closed.pure ? closed.integers : 0;
      }
    } else if (/[\d-]/.test(character)) {
      let end = at + 1;
      while (isDigit(json.charCodeAt(end))) end++;
      const parent = open.at(-1);
      if (parent !== undefined) parent.integers += 1;
      if (end - at > 5 || /[.eE]/.test(json.charAt(end))) parentIsImpure();
      at = end - 1;
    } else if (/[a-zA-Z.]/.test(character)) {
      parentIsImpure();
    }
  }
  return found;
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

const integerRun = new RegExp(
  String.raw`(?<![\w.-])(?:-?\d{1,4}(?:\\?"\s*:\s*|[\s,;[\]{}"\\]+)){${integersMax}}-?\d{1,4}(?![\w.-])`,
);

/** Checks every 128th byte, and goes back from it only within a run. */
export function mayHaveIntegerRun(bytes: Uint8Array, start: number, end: number): boolean {
  return hasRun(isListByte, runBytesMin, bytes, start, end);
}

/** Of bytes that are 1 in the table. Linear at most, for most texts far less. */
export function hasRun(set: Uint8Array, lengthMin: number, bytes: Uint8Array, start: number, end: number): boolean {
  let known = start;
  let at = start + lengthMin - 1;
  while (at < end) {
    let back = at;
    while (back >= known && set[bytes[back] as number] === 1) back--;
    if (back < known) return true;
    // The bytes behind `back` up to `at` are known to be of the set.
    known = at + 1;
    at = back + lengthMin;
  }
  return false;
}

export function byteSet(characters: string): Uint8Array {
  const set = new Uint8Array(256);
  for (const byte of Buffer.from(characters)) set[byte] = 1;
  return set;
}

const isListByte = byteSet('0123456789-,;:[]{}"\\ \t\r\n');
