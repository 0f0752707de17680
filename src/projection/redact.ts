import { holdsImage } from './images.js';
import { elementsOf, MalformedJson, membersOf, stringAt } from './json-scan.js';
import { isSignatureName } from './strip.js';
import { looksStructured } from './structured-text.js';

/**
 * The fields of the audit log whose values are shown, by the app's name of the entity. All other fields, and all fields of an
 * entity that is not listed, are shielded. So is a listed name that means personal data or a signature.
 */
export type RedactionRules = Readonly<Record<string, readonly string[]>>;

/**
 * Redacts the diff of a log entry: turns the stored JSON text of [{"veld","oud","nieuw"}] into the JSON text of the same list.
 * A change with a value that must not be shown becomes {"veld", "afgeschermd": true}.
 *
 * Shown are numbers, true, false, null and plain strings under listed names, as they stand, so numbers keep every digit.
 * Members other than these three are dropped, a missing `oud` or `nieuw` is null, an element that is not a change is left
 * out, and text that is not an array is []. Never throws.
 */
export type RedactDiff = (entity: string, diff: string) => string;

/** Compiles the rules; called once, at start-up. */
export function compileRedaction(rules: RedactionRules): RedactDiff {
  const listed = new Map(
    Object.entries(rules).map(([entity, fields]) => [
      entity,
      new Set(fields.filter((field) => !isPersonalName(field) && !isSignatureName(field)).map(spelling)),
    ]),
  );
  const none: ReadonlySet<string> = new Set();
  return (entity, diff) => redact(diff, listed.get(entity) ?? none);
}

function redact(diff: string, listed: ReadonlySet<string>): string {
  if (diff === '[]') return diff;
  try {
    return `[${elementsOf(diff)
      .flatMap((element) => redactChange(element, listed) ?? [])
      .join(',')}]`;
  } catch (error) {
    if (error instanceof MalformedJson) return '[]';
    throw error;
  }
}

/** The change as the API shows it, or undefined when the element is not a change. Throws MalformedJson. */
function redactChange(element: string, listed: ReadonlySet<string>): string | undefined {
  if (!element.startsWith('{')) return undefined;
  const change = new Map(membersOf(element));
  const field = change.get('veld');
  if (field === undefined || !field.startsWith('"')) return undefined;
  const before = change.get('oud') ?? 'null';
  const after = change.get('nieuw') ?? 'null';
  const name = stringAt(field, 0, field.length);
  const isListed = listed.has(spelling(name));
  if (isListed && isPlain(before) && isPlain(after)) return `{"veld":${field},"oud":${before},"nieuw":${after}}`;
  return `{"veld":${isListed || isFieldName(name) ? field : hiddenName},"afgeschermd":true}`;
}

/** Whether a logged value is a scalar, and as a string neither encrypted, nor an image, nor structured data. */
function isPlain(json: string): boolean {
  if (json.startsWith('{') || json.startsWith('[')) return false;
  if (!json.startsWith('"')) return true;
  const text = stringAt(json, 0, json.length);
  return !/enc:v/i.test(text) && !holdsImage(text) && !looksStructured(text);
}

/** "vullingKg", "vulling_kg" and "/vullingKg" are one field; a path such as "vulling.kg" is not. */
function spelling(field: string): string {
  return field.replace(/^\/|[_-]/g, '').toLowerCase();
}

/** Replaces a name that does not have the form of a field name. */
const hiddenName = '"(afgeschermd)"';

/**
 * Form of a field name or of a path to one: words that begin with a small letter, and indexes, with few digits. An e-mail
 * address, a telephone number, a postal code, a person's name and a sentence are not of this form.
 */
const fieldNameForm = /^\/?(?!(?:\D*\d){7})_?[a-z][\w-]{0,39}(?:[./](?:_?[a-z][\w-]{0,39}|\d{1,3})|\[\d{1,3}\]){0,7}$/;

function isFieldName(name: string): boolean {
  return fieldNameForm.test(name) && !/\d{4}/.test(name) && !holdsImage(name);
}

/** Word by word where a longer word means something else (installatie, plaatsing); otherwise also within a word. */
const personalWords = new RegExp(
  [
    // The customer as such, though not the id by which a record points to it.
    String.raw`\b(?:klant|customer|contact|contactpersoon|eigenaar|bewoner|huurder|opdrachtgever)(?:naam)?\b(?! id$)`,
    'klant ?naam|voornaam|achternaam|tussenvoegsel|voorletter|bedrijfsnaam|(?:first|last|full|company) name',
    String.raw`adres|address|straat|street|huisn|\bhuis n|house number|\btoevoeging\b|postcode|post code|postal|\bzip\b`,
    String.raw`\bplaats\b|woonplaats|plaatsnaam|\bcity\b|e ?mail|telefoon|\btel\b|mobiel|phone|\bfax`,
    'kvk|kamer van koophandel|btw ?(?:nummer|nr|id)|vat ?(?:number|id)|iban|bankrekening|bsn|geboorte|birth',
    'ondertekend door|ondertekenaar|signed by|signatory',
  ].join('|'),
);

/** Whether the words of a name ("kvkNummer" and "KVK_nummer" → "kvk nummer") speak of personal data. */
function isPersonalName(name: string): boolean {
  const words = name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replace(/([A-Z])([A-Z][a-z])/g, '$1 $2')
    .replace(/[^\p{L}\p{N}]+/gu, ' ');
  return personalWords.test(words.trim().toLowerCase());
}
