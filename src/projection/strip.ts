import {
  byteListStarts,
  chunkedImageStarts,
  hasBase64Run,
  hasChunkedRun,
  holdsImage,
  holdsUnwrappedImage,
  imageHints,
  integerLists,
  mayHaveIntegerRun,
  runBytesMin,
  separators,
} from './images.js';
import { MalformedJson, skipSpace, stringAt, stringEnd, valueEnd } from './json-scan.js';
import { PhraseMatcher } from './phrase-matcher.js';

/**
 * The JSON text of a jsonb value without its images and signatures, everything else copied as it stands:
 *
 * - a member whose name speaks of a signature becomes null, whatever it holds, unless it is true, false or null;
 * - a member whose name speaks of signing becomes null when it holds an object, a list or a long string;
 * - a string that holds an image becomes null, and so does a list that is one: of bytes, of points, of base64 in chunks;
 * - a member whose very name holds an image is left out.
 *
 * Text without any of these comes back as the same string. Suspect text that is not JSON becomes null. Never throws.
 * `utf8`: the bytes of the text.
 */
export function stripImages(json: string, utf8: Buffer = Buffer.from(json)): string {
  const suspects = suspectsIn(json, utf8);
  if (!suspects.images && !suspects.signatures && !suspects.escapes) return json;
  try {
    return strip(json, utf8, suspects);
  } catch (error) {
    if (error instanceof MalformedJson) return 'null';
    throw error;
  }
}

/**
 * Whether a field or member name speaks of a signature image, in any case and spelling ("handtekeningKlant",
 * "hand_tekening"). When and by whom was signed (ondertekendOp, ondertekendDoor) is no image.
 */
export function isSignatureName(name: string): boolean {
  return signatureName.test(name);
}

const separator = String.raw`[\s_.-]*`;
const picture =
  '(?:afbeelding|beeld|plaatje|foto|image|img|png|jpe?g|svg|base64|blob|bytes|data(?!tum)|strokes|points)';
const signatureName = new RegExp(
  [
    `hand${separator}tekening`,
    'signature|signatuur|paraaf|parafen|krabbel',
    `ondertekening${separator}${picture}`,
    `${picture}${separator}ondertekening`,
  ].join('|'),
  'i',
);

/** Names that can mean a signature or a text about it: the value decides. */
const signingName = /onderteken|signed|autogra(?:m|f|ph)|strokes/i;
const signingTextMax = 64;

function isBulky(json: string, start: number, end: number): boolean {
  return /[{[]/.test(json.charAt(start)) || (json.charAt(start) === '"' && end - start - 2 > signingTextMax);
}

/** Every name of a signature or of signing contains one of these words; most values contain none. */
const signatureHints = [
  'tekening',
  'signatu',
  'paraaf',
  'parafen',
  'krabbel',
  'onderteken',
  'signed',
  'autogra',
  'strokes',
];
const signatureHint = new RegExp(signatureHints.join('|'), 'i');
/** First characters of the hints that are found only whole: numbers, escapes. */
const exact = '12\\';
const breaks = Buffer.from('\n\r');
const inLine = separators.filter((byte) => !breaks.includes(byte));
const inText = new PhraseMatcher([...imageHints, '\n', '\r'], inLine, exact);
const inString = new PhraseMatcher([...imageHints, '\\'], inLine, exact);
/** The escapes of JSON that can hide a word, or be a line break in it; other line breaks are between strings. */
const inJson = new PhraseMatcher(
  [...imageHints, ...signatureHints, '\\n', '\\r', '\\u', '\\t'],
  [...separators, 0x22],
  exact,
);

/** Whether holdsImage can find an image in a text. Most values cost only this check, without making a string. */
export function isSuspectText(bytes: Buffer, start: number, end: number): boolean {
  return inText.isIn(bytes, start, end) || hasBase64Run(bytes, start, end) || mayHaveIntegerRun(bytes, start, end);
}

/** The same check of a string in JSON, between its quotes; true for a string with an escape. Far cheaper than holdsImage. */
function isSuspectString(json: string, start: number, end: number): boolean {
  if (inString.isInText(json, start, end)) return true;
  if (end - start < runBytesMin) return false;
  const bytes = Buffer.from(json.slice(start, end));
  return hasBase64Run(bytes) || mayHaveIntegerRun(bytes, 0, bytes.length);
}

/** Whether stripImages can change a JSON text. */
export function isSuspectJson(bytes: Buffer, start: number, end: number): boolean {
  return inJson.isIn(bytes, start, end) || hasChunkedRun(bytes, start, end) || mayHaveIntegerRun(bytes, start, end);
}

/** Results for the whole text. When it has no mark, no string in it has a mark, except strings with escapes. */
interface Suspects {
  readonly images: boolean;
  readonly signatures: boolean;
  readonly escapes: boolean;
}

/** The cheap check after which most values need no scan. */
function suspectsIn(json: string, utf8: Buffer): Suspects {
  const images = holdsUnwrappedImage(json, utf8) || chunkedImageStarts(json).length > 0;
  return { images, signatures: signatureHint.test(json), escapes: json.includes('\\') };
}

/** Goes from string to string; between two strings lie only punctuation, numbers, true, false and null. */
function strip(json: string, utf8: Buffer, suspects: Suspects): string {
  let kept = '';
  let copied = 0;
  let at = 0;
  const mayBeImage = suspects.images || suspects.escapes;
  const lists = suspects.images ? imageLists(json, utf8) : [];
  let next = 0;
  const replace = (start: number, end: number, by: string): void => {
    kept += json.slice(copied, start) + by;
    copied = end;
    at = end;
  };

  for (let start = json.indexOf('"'); start >= 0 || next < lists.length; start = json.indexOf('"', at)) {
    while ((lists[next] ?? at) < at) next++;
    const list = lists[next];
    if (list !== undefined && (start < 0 || list < start)) {
      replace(list, valueEnd(json, list), 'null');
      continue;
    }
    if (start < 0) break;
    const end = stringEnd(json, start);
    const colon = skipSpace(json, end);
    const isName = json[colon] === ':';
    at = end;
    if (!(isName && suspects.signatures) && !(mayBeImage && isSuspectString(json, start + 1, end - 1))) continue;
    const string = stringAt(json, start, end);
    const escaped = string.length !== end - start - 2;
    const isImage = (suspects.images || escaped) && holdsImage(string);
    if (!isName) {
      if (isImage) replace(start, end, 'null');
      continue;
    }
    const value = skipSpace(json, colon + 1);
    const mayBeSigned = suspects.signatures || escaped;
    if (isImage) {
      const next = skipSpace(json, valueEnd(json, value));
      const isLast = json[next] !== ',';
      replace(start, isLast ? next : skipSpace(json, next + 1), '');
      // The comma before a last member goes with it.
      if (isLast) kept = kept.replace(/,\s*$/, '');
    } else if (mayBeSigned && isSignatureName(string) && !/^[tfn]/.test(json.charAt(value))) {
      replace(value, valueEnd(json, value), 'null');
    } else if (mayBeSigned && signingName.test(string) && isBulky(json, value, valueEnd(json, value))) {
      replace(value, valueEnd(json, value), 'null');
    }
  }
  return kept + json.slice(copied);
}

/** Positions of all lists that are an image, in order. Throws MalformedJson. */
function imageLists(json: string, utf8: Buffer): number[] {
  const integers = mayHaveIntegerRun(utf8, 0, utf8.length) ? integerLists(json).map(([start]) => start) : [];
  return [...byteListStarts(json), ...chunkedImageStarts(json), ...integers].sort((a, b) => a - b);
}
