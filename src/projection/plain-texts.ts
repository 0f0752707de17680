import { imageHints, separators } from './images.js';
import { byteSet, hasRun, runBytesMin } from './number-lists.js';
import { PhraseMatcher } from './phrase-matcher.js';
import type { SealedTexts } from './sealed-texts.js';
import { structureHints, structureRunMin } from './structured-text.js';

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
