import { isNamed } from './names.js';

/** Whether the name speaks of personal data or of secrets. */
export const isPersonal = (name: string): boolean =>
  isNamed('contact', name) || isNamed('birth', name) || isNamed('secret', name);

/** Whether the value has a member of such a name, at any depth and in texts that are JSON; one that says yes or no tells nothing. */
export function hasPersonal(value: unknown): boolean {
  if (typeof value === 'string') return /^\s*[[{]/.test(value) && hasPersonal(parsed(value));
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(value).some(
    ([name, member]) => (isPersonal(name) && typeof member !== 'boolean') || hasPersonal(member),
  );
}

/** Why no field shows a column, by its values; undefined: one does. */
export function reasonByValues(values: readonly string[]): string | undefined {
  const addresses = values.filter((value) => value.includes('@') && address.test(value)).length;
  if (addresses > values.length / 2) return 'e-mail addresses, by the values';
  if (values.some(isPersonalDocument)) return 'documents with personal data, by the names of their members';
  return undefined;
}

const address = /[\w.+-]{1,64}@[\w-]+(\.[\w-]+)*\.[a-z]{2,}/i;

/** How documents begin, and the names of their members: JSON that the sample has cut, hstore, YAML, XML, and PHP's own form. */
const documents: readonly (readonly [begins: RegExp, names: RegExp])[] = [
  [/^\s*[[{]/, /"([^"\\]{1,100})"\s*:(?!\s*(?:true|false)\b)/g],
  [/^"[^"]*"=>/, /"([^"\\]{1,100})"=>/g],
  [/^---\s/, /^[ \t-]*:?["']?(\w[\w .-]{0,100}?)["']?:(?!\s*(?:true|false)\b)/gm],
  [/^\s*</, /<([\w.-]{1,100})/g],
  [/^[aO]:\d+:/, /s:\d+:"([^"]{1,100})";(?!b:)/g],
];

function isPersonalDocument(text: string): boolean {
  const [, names] = documents.find(([begins]) => begins.test(text)) ?? [];
  if (names === undefined) return false;
  const value = parsed(text);
  return value === undefined ? [...text.matchAll(names)].some(([, name = '']) => isPersonal(name)) : hasPersonal(value);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
