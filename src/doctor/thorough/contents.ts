import { isNamed } from '../../base/words.js';

// Finds values that clients should not see, whatever the name of their column.

const secrets: Readonly<Record<string, RegExp>> = {
  keys: /-----BEGIN [A-Z ]*PRIVATE KEY|\b(?:[srp]k_(?:live|test)_|whsec_|gh[oprsu]_|github_pat_|glpat-|xox[abceoprs]-|xapp-|sk-|AKIA|ASIA|AIza|SG\.|shp(?:at|ss)_|npm_|hf_|dop_v1_|key-)[\w.-]{14,}/,
  tokens:
    /\beyJ[\w-]{6,}\.eyJ[\w-]{6,}\.|\b(?:bearer|basic)\s+[\w.~+/=-]{16,}|:\/\/[^\s:/@]{0,64}:[^\s:/@]{3,}@|hooks\.slack\.com\/(?:services|workflows)\/|discord(?:app)?\.com\/api\/webhooks\/|webhook\.office\.com\/|api\.telegram\.org\/bot\d|[?&](?:access_token|api_?key|token|sig|signature|x-amz-signature)=[\w%.-]{12,}/i,
  'one-time codes':
    /otpauth:\/\/|\b(?:verif\w*|confirm\w*|one[- ]time|security|log-?in|sign[- ]?in|access|activation|reset|bevestigings|toegangs|inlog)[- ]?(?:code|pin|pass(?:code|word))\b[^\d\n]{0,30}\b\d{3}[ -]?\d{1,5}\b/i,
  'password hashes': /\$2[abxy]\$\d\d\$|\$argon2i?d?\$|\bpbkdf2[_:]|\$scrypt\$|\{SSHA\}/,
  cookies: /\bset-cookie\b|\bcookie: |;\s*(?:httponly|secure|samesite=\w+)\b/i,
};

/** Returns undefined if no form of a secret matches. */
export function findSecret(text: string): string | undefined {
  return Object.entries(secrets).find(([, form]) => form.test(text))?.[0];
}

const address = /[\w.+-]{1,64}@[\w-]+(\.[\w-]+)*\.[a-z]{2,}/i;
const addressPattern = new RegExp(`^"?${address.source}"?$`, 'i');

export function areAddresses(values: readonly string[]): boolean {
  return values.filter((value) => value.includes('@') && address.test(value)).length > values.length / 2;
}

/** Returns undefined if no form matches. */
export function findUnexpected(name: string, value: unknown): string | undefined {
  const isText = typeof value === 'string';
  if (!isText && (typeof value !== 'object' || value === null)) return undefined;
  const text = isText ? value : JSON.stringify(value);
  const secret = findSecret(text);
  if (secret !== undefined || isNamed('contact', name)) return secret;
  if (!isText && isPersonalDocument(text)) return 'members named like secrets or personal data';
  const addresses = isText ? [text] : (text.match(/"[^"\\]*@[^"\\]*"/g) ?? []);
  return addresses.some((each) => addressPattern.test(each)) ? 'e-mail addresses' : undefined;
}

/** Beginnings of documents, and their members: JSON (also cut), hstore, YAML, XML, PHP. */
const documents: readonly (readonly [begins: RegExp, names: RegExp])[] = [
  [/^\s*[[{]/, /"([^"\\]{1,100})\\*"\s*:(?!\s*(?:true|false)\b)/g],
  [/^"[^"]*"=>/, /"([^"\\]{1,100})"=>/g],
  [/^---\s/, /^[ \t-]*:?["']?(\w[\w .-]{0,100}?)["']?:(?!\s*(?:true|false)\b)/gm],
  [/^\s*</, /<([\w.-]{1,100})/g],
  [/^[aO]:\d+:/, /s:\d+:"([^"]{1,100})";(?!b:)/g],
];

/** Searches at any depth; a member that is true or false reveals nothing. */
export function isPersonalDocument(text: string): boolean {
  const [, names] = documents.find(([begins]) => begins.test(text)) ?? [];
  const isPersonal = (name: string): boolean =>
    (['contact', 'birth', 'secret'] as const).some((purpose) => isNamed(purpose, name));
  return names !== undefined && [...text.matchAll(names)].some(([, name = '']) => isPersonal(name));
}
