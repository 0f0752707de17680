import { hasBase64Run, holdsImage, imageHints, nextByteList } from './images.js';
import { MalformedJson, skipSpace, stringAt, stringEnd, valueEnd } from './json-scan.js';
import { WordFinder } from './word-finder.js';

/**
 * The JSON text of a jsonb value without its images and signatures, everything else copied as it stands:
 *
 * - a member whose name speaks of a signature becomes null, whatever it holds, unless it is true, false or null;
 * - a string that holds an image, and a list of bytes that is one, becomes null;
 * - a member whose very name holds an image is left out.
 *
 * Text without any of these comes back as the same string. Suspect text that is not JSON becomes null. Never throws.
 */
export function stripImages(json: string): string {
  const suspects = suspectsIn(json);
  if (!suspects.images && !suspects.signatures && !suspects.escapes) return json;
  try {
    return strip(json, suspects);
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

/** Every signature name has one of these in it; they are all that is looked for in most values. */
const signatureHints = ['tekening', 'signatu', 'paraaf', 'parafen', 'krabbel'];
const signatureHint = new RegExp(signatureHints.join('|'), 'i');
const inText = new WordFinder([...imageHints, '\n', '\r']);
/** Of the escapes of JSON only these can hide a word, or stand for a line break in one; other line breaks lie between strings. */
const inJson = new WordFinder([...imageHints, ...signatureHints, '\\n', '\\r', '\\u']);

/** Whether holdsImage may find one in a text. It is what most values cost, and makes no string of them. */
export function isSuspectText(bytes: Buffer, start: number, end: number): boolean {
  return inText.findsIn(bytes, start, end) || hasBase64Run(bytes, start, end);
}

/** The same for stripImages and JSON. */
export function isSuspectJson(bytes: Buffer, start: number, end: number): boolean {
  return inJson.findsIn(bytes, start, end) || hasBase64Run(bytes, start, end);
}

/** What the text as a whole may hold. Where it has no mark, no string in it that stands there unescaped has one. */
interface Suspects {
  readonly images: boolean;
  readonly signatures: boolean;
  readonly escapes: boolean;
}

/** The cheap test that spares most values the scan. */
function suspectsIn(json: string): Suspects {
  return { images: holdsImage(json), signatures: signatureHint.test(json), escapes: json.includes('\\') };
}

/** Goes from string to string; between two strings lie only punctuation, numbers, true, false and null. */
function strip(json: string, suspects: Suspects): string {
  let kept = '';
  let copied = 0;
  let at = 0;
  let bytes = suspects.images ? nextByteList(json, 0) : -1;
  const replace = (start: number, end: number, by: string): void => {
    kept += json.slice(copied, start) + by;
    copied = end;
    at = end;
  };

  for (let start = json.indexOf('"'); start >= 0 || bytes >= 0; start = json.indexOf('"', at)) {
    if (bytes >= 0 && bytes < at) bytes = nextByteList(json, at);
    if (bytes >= 0 && (start < 0 || bytes < start)) {
      replace(bytes, valueEnd(json, bytes), 'null');
      continue;
    }
    if (start < 0) break;
    const end = stringEnd(json, start);
    const colon = skipSpace(json, end);
    const isName = json[colon] === ':';
    const string = stringAt(json, start, end);
    const escaped = string.length !== end - start - 2;
    const isImage = (suspects.images || escaped) && holdsImage(string);
    at = end;
    if (!isName) {
      if (isImage) replace(start, end, 'null');
      continue;
    }
    const value = skipSpace(json, colon + 1);
    if (isImage) {
      const next = skipSpace(json, valueEnd(json, value));
      const isLast = json[next] !== ',';
      replace(start, isLast ? next : skipSpace(json, next + 1), '');
      // The comma before a last member goes with it.
      if (isLast) kept = kept.replace(/,\s*$/, '');
    } else if ((suspects.signatures || escaped) && isSignatureName(string) && !/^[tfn]/.test(json.charAt(value))) {
      replace(value, valueEnd(json, value), 'null');
    }
  }
  return kept + json.slice(copied);
}
