/**
 * Whether a text holds an image: a data URI, SVG mark-up, or the base64, base64url, percent-encoded, hexadecimal or
 * byte-list form of a raster image, anywhere in it; or 1024 base64 characters on end, whatever they are.
 *
 * The magic numbers are found also where line breaks interrupt them (RFC 2045 §6.8 wraps base64 at 76 characters).
 */
export function holdsImage(text: string): boolean {
  if (text.length < textLengthMin) return false;
  if (holdsMark(text) || (text.length >= runLengthMin && hasBase64Run(Buffer.from(text)))) return true;
  if (!text.includes('\n') && !text.includes('\r')) return false;
  const lines = text.split(/[\r\n]+/).map((line) => line.trim());
  return holdsMark(lines.join('')) || hasWrappedRun(lines);
}

/** The PNG magic alone. Nothing shorter is taken for an image. */
const textLengthMin = 'iVBORw0KGgo'.length;
const runLengthMin = 1024;

/** A slash as base64, base64url, some JSON writers and percent-encoding have it. */
const slash = String.raw`(?:\\?\/|_|%2[Ff])`;
const digit = String.raw`(?:[A-Za-z0-9+/_-]|\\\/|%2[BbFf])`;

/** PNG and JPEG as JSON prints a Buffer ([137,80,…]) or a Uint8Array ({"0":137,"1":80,…}). */
const pngBytes = byteList(['137', '80', '78', '71', '13', '10', '26', '10']);
const jpegBytes = byteList(['255', '216', '255', String.raw`(?:2[23]\d|219|238)`, String.raw`\d+`, String.raw`\d+`]);

/**
 * What gives an image away. The hint, a part that every text with the mark has, comes first: to look for a rare
 * literal costs some 20 ns per kilobyte, the expression some 2 ns per character.
 */
const marks: readonly (readonly [hint: string, pattern: RegExp])[] = [
  ['<', /<svg/i],
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
  ['137', new RegExp(pngBytes)],
  ['216', new RegExp(jpegBytes)],
];

/** One of these, in either case, is in every text with a mark that no line break interrupts. */
export const imageHints: readonly string[] = [...marks.map(([hint]) => hint), 'data:', 'data%3'];

/** Has no hint: none of its parts is both rare and the same in either case. */
const dataUri = /data(?::|%3a)image/i;

function holdsMark(text: string): boolean {
  for (const [hint, pattern] of marks) if (text.includes(hint) && pattern.test(text)) return true;
  return dataUri.test(text);
}

const byteListStart = new RegExp(`${pngBytes}|${jpegBytes}`, 'g');

/** Position of the bracket or brace that opens the next byte list of an image at or after `from`, or -1. */
export function nextByteList(json: string, from: number): number {
  byteListStart.lastIndex = from;
  return byteListStart.exec(json)?.index ?? -1;
}

/** The quotes may be escaped, where JSON stands in a string of JSON. */
function byteList(bytes: string[]): string {
  const items = bytes.map((byte, index) => String.raw`(?:\\?"${index}\\?"\s*:\s*)?${byte}`);
  return String.raw`[[{]\s*${items.join(String.raw`\s*,\s*`)}\b`;
}

/** Linear, and for most texts far less: it looks at every 1024th byte and back from there only within a run. */
export function hasBase64Run(bytes: Uint8Array, start = 0, end = bytes.length): boolean {
  let known = start;
  let at = start + runLengthMin - 1;
  while (at < end) {
    let back = at;
    while (back >= known && isRunCharacter(bytes[back] as number)) back--;
    if (back < known) return true;
    // What follows `back` up to `at` is known to be of the run and need not be read again.
    known = at + 1;
    at = back + runLengthMin;
  }
  return false;
}

/** Lines that are base64 throughout and long enough to be wrapped base64 rather than a list of short codes. */
const wrappedLine = /^[A-Za-z0-9+/_-]{32,}={0,2}$/;

function hasWrappedRun(lines: string[]): boolean {
  let length = 0;
  for (const line of lines) {
    length = wrappedLine.test(line) ? length + line.length : 0;
    if (length >= runLengthMin) return true;
  }
  return false;
}

/** Base64 and base64url, and the backslash or percent sign by which some writers escape the slash. */
function isRunCharacter(code: number): boolean {
  return (
    (code >= 0x61 && code <= 0x7a) || // a-z
    (code >= 0x41 && code <= 0x5a) || // A-Z
    (code >= 0x2f && code <= 0x39) || // / 0-9
    code === 0x2b || // +
    code === 0x2d || // - and _ of base64url
    code === 0x5f ||
    code === 0x5c || // \\
    code === 0x25 // %
  );
}
