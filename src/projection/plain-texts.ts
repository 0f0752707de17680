import { imageHints } from './images.js';
import { byteSet, hasRun, runBytesMin } from './number-lists.js';
import { PhraseMatcher } from './phrase-matcher.js';
import type { SealedTexts } from './sealed-texts.js';
import { structureHints, structureRunMin } from './structured-text.js';

/** Characters of words, numbers, dates and addresses. No form of structured data is made of these alone, but for the encoded ones. */
const plain = byteSet(`ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 _.:/+@#!?*()$-`);
const otherBytes = Uint8Array.from({ length: 256 }, (_, byte) => byte).filter((byte) => plain[byte] === 0);
const isWordByte = byteSet('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+/-');

/**
 * Makes a test that is true only for text that is sure to hold no image, no stored value of a codec and no structured data.
 * It looks at each byte about once; of any other text the exact tests decide, which take several times as long.
 */
export function plainTexts(sealed: SealedTexts): (bytes: Buffer, start: number, end: number) => boolean {
  // The blanks and the first characters are those with which images are looked for (strip.ts).
  const hints = new PhraseMatcher([...imageHints, ...structureHints, ...sealed.marks], ' ', '12', otherBytes);
  return (bytes, start, end) =>
    end - start < runBytesMin && // a shorter text holds no list of numbers
    !hints.isIn(bytes, start, end) &&
    !hasRun(isWordByte, structureRunMin, bytes, start, end) &&
    !sealed.mayBeIn(bytes, start, end);
}
