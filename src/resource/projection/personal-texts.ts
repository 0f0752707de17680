import { plainText } from './plain-text.js';

/** An e-mail address, telephone number, IBAN, BSN or postal address, anywhere. In doubt true: redaction hides it. Names have no form. */
export function looksPersonal(text: string): boolean {
  const plain = plainText(text).replace(uuids, ' ');
  if (!/[\d@]/.test(plain)) return false; // every form has one
  return forms.some((form) => form.test(plain)) || [...plain.matchAll(nineDigits)].some(isCitizenNumber);
}

/** Their digits can look like a telephone number. */
const uuids = /\b[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}\b/gi;
const letters = 'a-z\u00c0-\u024f';
const street =
  '(?:straat|str\\.|laan|weg|plein|kade|gracht|singel|dijk|hof|dreef|steeg|plantsoen|boulevard|stra(?:ss|ß)e|street|road|avenue|lane)';

/** Linear in the length of the text. */
const forms: readonly RegExp[] = [
  // Also quoted, international, and without a dot.
  /[^\s@]\s?@\s?[\p{L}\d]/u,
  // + or 0, and eight to fourteen digits; no decimal number, no date.
  /(?<![\d.,])(?:\+|\(?(?!\d\d[-./]\d\d[-./]\d{4}\b)0(?!\.\d))(?:[ ./()-]{0,3}\d){8,14}(?!\d)/,
  /\b(?:tel|telefoon|mobiel|gsm|phone)\b\D{0,5}(?:[ ./()-]{0,3}\d){6}/i,
  /\b[a-z]{2}\d{2}(?:[ -]?[a-z\d]{4}){2,7}(?:[ -]?[a-z\d]{1,3})?\b/i,
  /\b(?:bsn|sofi|burgerservicenummer)\b\D{0,12}\d/i,
  // A Dutch postal code, a post office box, a street with a number.
  /(?<![\p{L}\d])[1-9]\d{3} ?(?!SA|SD|SS)[A-Z]{2}(?![\p{L}\d])/u,
  /\bpostbus \d/i,
  new RegExp(`[${letters}'.-] ?${street},? ?(?:nr\\.? ?|no\\.? ?)?\\d`, 'i'),
  new RegExp(`\\d[a-z]?,? (?:rue|via|calle|avenue|[${letters}]+ (?:street|road|avenue|lane|drive))\\b`, 'i'),
];

const nineDigits = /(?<![\p{L}\d.,])\d{3}[ .-]?\d{3}[ .-]?\d{3}(?![.,]?\d)/gu;

function isCitizenNumber([text]: RegExpExecArray): boolean {
  const digits = [...text.replace(/\D/g, '')].map(Number);
  const sum = digits.reduce((total, digit, i) => total + digit * (i === 8 ? -1 : 9 - i), 0);
  return sum !== 0 && sum % 11 === 0;
}
