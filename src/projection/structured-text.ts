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
export const structureRunMin = 40;

/** In letters, digits, blanks and the signs _.:/+@#!?*()$- only encoded data is structured: such a run, or one of these, in either case. */
export const structureHints: readonly string[] = [
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
