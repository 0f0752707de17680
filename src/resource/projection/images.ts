import type { JsonBytes } from './json-bytes.js';

/** A shorter text is no picture that a person could recognise. */
const imageCharactersMin = 200;
/** Lines of wrapped base64 are at least as long. Every repetition is bounded, so that megabytes do not overflow the stack. */
const pieces = /[A-Za-z0-9+/_-]{60}/g;
const dataUrl =
  /^data:(?:[^\s,;/]{1,127}\/[^\s,;]{1,127})?(?:; {0,9}(?:[^\s",;]|"[^"]{0,999}"){1,999}){0,20},|data:image\/|;base64,/i;

/** Beginnings of images in hexadecimal: PNG, JPEG, GIF, TIFF; then RIFF with WEBP, BMP with its reserved zeros, HEIC and AVIF, SVG. */
const magic =
  /^(?:89504e47|ffd8ff|47494638|49492a00|4d4d002a|52494646.{8}57454250|424d.{8}00000000|.{8}66747970|3c737667|3c3f786d6c)/;

/** Recognizes a long text that is or holds a data URL, or base64 of an image. It is the last check after the allow-lists. */
export function holdsImage(text: string): boolean {
  if (text.length <= imageCharactersMin) return false;
  if (dataUrl.test(text.trimStart())) return true;
  if (beginsImage(text)) return true;
  let endOfLast = -1;
  for (const { 0: piece, index } of text.matchAll(pieces)) {
    if (index !== endOfLast && beginsImage(text.slice(index, index + 100))) return true;
    endOfLast = index + piece.length;
  }
  return false;
}

/** Decodes with Node, which skips white space and other characters that are not base64. */
function beginsImage(base64: string): boolean {
  return magic.test(Buffer.from(base64.slice(0, 100), 'base64').toString('hex'));
}

export function isImageJson(json: string): boolean {
  if (json.length <= imageCharactersMin || !json.startsWith('"')) return false;
  return holdsImage(json.includes('\\') ? JSON.parse(json) : json.slice(1, -1));
}

/** Replaces the JSON value appended after `from` by null if it holds an image. */
export function removeImage(json: JsonBytes, from: number): void {
  if (json.length - from <= imageCharactersMin || !isImageJson(json.getTextFrom(from))) return;
  json.truncate(from);
  json.appendText('null');
}
