import { plainText } from './plain-text.js';

/** An e-mail address, telephone number, IBAN, BSN or postal address, anywhere. In doubt true: redaction hides it. Names have no form. */
export function looksPersonal(text: string): boolean {
  const plain = plainText(text);
  if (!/[\p{Nd}@]|\bat\b|apenstaart/iu.test(plain)) return false; // every form has one
  const even = plain.replace(uuids, ' ').replace(spaces, ' ').replace(dashes, '-');
  return forms.some((form) => form.test(even)) || [...even.matchAll(nineDigits)].some(isCitizenNumber);
}

/** Their digits can look like a telephone number. */
const uuids = /\b[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}\b/gi;
/** And what people type in their place. */
const spaces = /[\s_~|*•·]+/g;
const dashes = /[\u2010-\u2015\u2212]/g;
const number = 'n(?:umme)?r\\.?';
const date = '\\d\\d[-./]\\d\\d[-./]\\d{4}\\b';
/** Up to three separators and a digit. */
const digit = '(?:[ ./()-]{0,3}\\d)';
const letters = 'a-z\u00c0-\u024f';
const street =
  '(?:straat|str\\.|laan|(?<!onder)weg|plein|kade|gracht|singel|dijk|hof|dreef|steeg|plantsoen|boulevard|markt|park|baan|burgwal|brink|voorhout|stra(?:ss|ß)e|street|road|avenue|lane)';
/** Before a name, as in "Laan van Meerdervoort 100". */
const streetOf = '(?:[Ll]aan|[Ww]eg|[Pp]lein|[Kk]ade|[Hh]of|[Ss]teenweg|[Rr]ue|[Aa]venue|[Aa]llee|Via|Calle|Piazza|Am)';
/** Refrigerants and units, in small letters behind four digits. */
const notPostal = '(?!yf|ze|kg|pa|wh|kw|va|hz|ma|mm|cm|km|ml|lx|lm|ms|mb|gb|st)';

/** Linear in the length of the text. */
const forms: readonly RegExp[] = [
  /(?!\d)\p{Nd}/u, // digits of another script
  // Also quoted, international, without a dot, or with the sign in words.
  /[^\s@]\s?@\s?[\p{L}\d]/u,
  /[[({<] ?(?:at|apenstaartje) ?[\])}>]|\b(?:at|apenstaartje) \S+ (?:dot|punt) /i,
  // + or 0, and eight to fourteen digits; no decimal number, no date. A country without +. Three, three and four digits.
  new RegExp(`(?<![\\d.,])(?:\\+|\\(?(?!${date})0(?!\\.\\d))${digit}{8,14}(?!\\d)`),
  /(?<![\d.,])(?:3[123]|4[149])[ -]?(?:\(0\) ?)?\d{1,3}[ -]?\d{7,8}(?![\d.,])/,
  /(?<![\d.,-])(?:1[ .-])?\(?\d{3}\)?[ .-]\d{3}[ .-]\d{4}(?![\d.,-])/,
  new RegExp(
    `\\b(?:tel|telefoon|mobiel|mob|gsm|phone|whatsapp|fax|bel)(?:${number})?(?![${letters}])\\D{0,12}${digit}{6}`,
    'i',
  ),
  /(?:\b|iban|rekening|rekeningnummer)[a-z]{2}\d{2}(?:[ ./-]?[a-z\d]{4}){2,7}(?:[ ./-]?[a-z\d]{1,3})?\b/i,
  /\b[A-Z]{2} \d{2}(?: [A-Z\d]{4}){3,7}/,
  new RegExp(`\\b(?:bsn|sofi|burgerservice)(?:[- ]?${number})?(?![${letters}])\\D{0,12}\\d`, 'i'),
  // A Dutch postal code, a post office box, a street with a number.
  new RegExp(`(?<![\\p{L}\\d])[1-9]\\d{3}(?:[ -]?(?!SA|SD|SS)[A-Z]{2}|${notPostal}[a-z]{2})(?![\\p{L}\\d])`, 'u'),
  new RegExp(`\\b(?:postbus|p\\.? ?o\\.? ?box|huis ?${number})[ :]{0,2}\\d`, 'i'),
  new RegExp(`[${letters}'.-] ?${street}[ ,:#(-]{0,3}(?:(?:huis)?${number}|no\\.?)?:? ?\\d`, 'i'),
  new RegExp(`\\b${streetOf}(?: (?:van|de|der|den|het|op|naar|la|le|du|des)){0,3} \\p{Lu}[\\p{L}'-]*,? \\d`, 'u'),
  new RegExp(`\\d[a-z]?,? (?:rue|via|calle|avenue|[${letters}]+ (?:street|road|avenue|lane|drive))\\b`, 'i'),
];

/** Alone or in groups, no date. */
const nineDigits = /(?<![\p{L}\d]|\d[.,])(?!\d\d?[-./]\d\d?[-./]\d{4}|\d{4}-\d\d-\d\d)\d(?:[ ./-]?\d){8}(?![.,]?\d)/gu;

function isCitizenNumber([text]: RegExpExecArray): boolean {
  const digits = [...text.replace(/\D/g, '')].map(Number);
  const sum = digits.reduce((total, digit, i) => total + digit * (i === 8 ? -1 : 9 - i), 0);
  return text.length <= 12 && sum !== 0 && sum % 11 === 0;
}
