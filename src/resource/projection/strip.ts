import {
  byteListStarts,
  chunkedImageStarts,
  hasChunkedRun,
  holdsImage,
  imageHints,
  integerLists,
  mayHaveIntegerRun,
  runBytesMin,
  separators,
} from './images.js';
import { MalformedJson, skipSpace, stringAt, stringEnd, valueEnd } from './json-scan.js';
import { namedSignatures, namingNames } from './named-signatures.js';
import { PhraseMatcher } from './phrase-matcher.js';
import { hidesLetters, mayHideLetters, plainText } from './plain-text.js';

/**
 * The JSON text of a jsonb value without its images and signatures, everything else copied as it stands:
 *
 * - a member whose name speaks of a signature becomes null, whatever it holds, unless it is true, false or null;
 * - a member whose name speaks of signing becomes null when it holds an object, a list or a long string;
 * - a string that holds an image becomes null, and so does a list that is one: of bytes, of points, of base64 in chunks;
 * - so does what stands beside a member such as "naam": "handtekening";
 * - a member whose very name holds an image is left out;
 * - a string that is JSON is stripped likewise.
 *
 * Text without any of these comes back as it is. Text that is not JSON becomes null. Never throws.
 */
export function stripImages(json: string): string {
  try {
    return strip(json);
  } catch (error) {
    if (error instanceof MalformedJson) return 'null';
    throw error;
  }
}

/** In any spelling ("handtekeningKlant", "hand_tekening"). When and by whom was signed is no image. */
export function isSignatureName(name: string): boolean {
  return signatureName.test(plainText(name));
}

const separator = String.raw`[\s_./:-]*`;
const picture =
  '(?:afbeelding|beeld|plaatje|foto|image|img|png|jpe?g|svg|base64|blob|bytes|data(?!tum)|strokes|points)';
const signatureName = new RegExp(
  [
    `hand${separator}tekening`,
    'signature|signatuur|unterschrift|paraaf|parafen|krabbel',
    `ondertekening${separator}${picture}`,
    `${picture}${separator}ondertekening`,
  ].join('|'),
  'i',
);

/** They can mean a signature or a text about it: the value decides. */
const signingName = /onderteken|signed|autogra(?:m|f|ph)|strokes/i;
const signingTextMax = 64;

function isBulky(json: string, start: number, end: number): boolean {
  return /[{[]/.test(json.charAt(start)) || (json.charAt(start) === '"' && end - start - 2 > signingTextMax);
}

/** Every name of a signature or of signing contains one; most values contain none. */
const signatureHints = [
  'tekening',
  'signatu',
  'unterschrift',
  'paraaf',
  'parafen',
  'krabbel',
  'onderteken',
  'signed',
  'autogra',
  'strokes',
];
/** And what can hide one: a line break, an escape. */
const hintsOf = (breaks: readonly string[]): PhraseMatcher =>
  new PhraseMatcher(
    [...imageHints, ...signatureHints, ...breaks, ...['n', 'r', 'u', 't', 'f'].map((letter) => `\\${letter}`)],
    [...separators.filter((byte) => !breaks.includes(String.fromCharCode(byte))), 0x22],
    '12\\',
  );
const hints = hintsOf(['\n', '\r']);
/** Between the values of JSON a line break hides nothing, and json_agg makes one after each row. */
const jsonHints = hintsOf([]);

/** Whether holdsImage or stripImages can find something. Most values cost only this check, without a string. */
export function isSuspect(bytes: Buffer, start: number, end: number, isJson = false): boolean {
  return (
    (isJson ? jsonHints : hints).isIn(bytes, start, end) ||
    hasChunkedRun(bytes, start, end) ||
    mayHaveIntegerRun(bytes, start, end) ||
    mayHideLetters(bytes, start, end)
  );
}

/** Each encoding of JSON as a string makes it longer. */
const encodedMax = 8;

/** Between two strings lie only punctuation, numbers, true, false and null. */
function strip(json: string, encoded = 0): string {
  let kept = '';
  let copied = 0;
  let at = 0;
  const hidden = hiddenValues(json);
  const isPlain = !hidesLetters.test(json);
  let next = 0;
  const replace = (start: number, end: number, by: string): void => {
    kept += json.slice(copied, start) + by;
    copied = end;
    at = end;
  };

  for (let start = json.indexOf('"'); start >= 0 || next < hidden.length; start = json.indexOf('"', at)) {
    while ((hidden[next] ?? at) < at) next++;
    const found = hidden[next];
    if (found !== undefined && (start < 0 || found <= start)) {
      replace(found, valueEnd(json, found), 'null');
      continue;
    }
    if (start < 0) break;
    const end = stringEnd(json, start);
    at = end;
    if (isPlain && end - start < runBytesMin && !hints.isInText(json, start + 1, end - 1)) continue;
    const colon = skipSpace(json, end);
    const isName = json[colon] === ':';
    const string = stringAt(json, start, end);
    const isImage = holdsImage(string);
    if (!isName) {
      const stripped = isImage ? 'null' : stripEncoded(string, encoded + 1);
      if (stripped !== null) replace(start, end, stripped);
      continue;
    }
    const value = skipSpace(json, colon + 1);
    if (isImage) {
      const next = skipSpace(json, valueEnd(json, value));
      const isLast = json[next] !== ',';
      replace(start, isLast ? next : skipSpace(json, next + 1), '');
      // The comma before a last member goes with it.
      if (isLast) kept = kept.replace(/,\s*$/, '');
    } else if (
      isSignatureName(string)
        ? !/^[tfn]/.test(json.charAt(value))
        : signingName.test(plainText(string)) && isBulky(json, value, valueEnd(json, value))
    ) {
      replace(value, valueEnd(json, value), 'null');
    }
  }
  return kept + json.slice(copied);
}

/** Null when that is all, or the string is no JSON. */
function stripEncoded(text: string, encoded: number): string | null {
  if (!/^[\s\p{Cf}]*["{[]/u.test(text)) return null;
  if (encoded > encodedMax) return 'null';
  try {
    const stripped = strip(text, encoded);
    return stripped === text ? null : JSON.stringify(stripped);
  } catch (error) {
    if (error instanceof MalformedJson) return null;
    throw error;
  }
}

/** Or what can hide its name. */
const mayNameSignatures = new RegExp(`"\\s*(?:${namingNames})\\s*"|\\\\u|${hidesLetters.source}`, 'i');

/** In order: lists that are an image, and what a member beside them calls a signature. Throws MalformedJson. */
function hiddenValues(json: string): number[] {
  const bytes = Buffer.from(json);
  const integers = mayHaveIntegerRun(bytes, 0, bytes.length) ? integerLists(json).map(([start]) => start) : [];
  const named = mayNameSignatures.test(json) ? namedSignatures(json, isSignatureName) : [];
  return [...byteListStarts(json), ...chunkedImageStarts(json), ...integers, ...named].sort((a, b) => a - b);
}
