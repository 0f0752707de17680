import { apiDiff, changesOf, type DiffShape, type StoredChange } from './audit-diff.js';
import { holdsImage } from './images.js';
import { MalformedJson, stringAt } from './json-scan.js';
import { isSignatureName } from './strip.js';
import { looksStructured } from './structured-text.js';

/**
 * The fields of the audit log whose values are shown, by the app's name of the entity. All other fields, and all fields of an
 * entity that is not listed, are shielded. So is a listed name that means personal data or a signature.
 */
export type RedactionRules = Readonly<Record<string, readonly string[]>>;

/**
 * Redacts the diff of a log entry: turns the stored JSON text of a diff, by default [{"veld","oud","nieuw"}], into the JSON text
 * of such a list. A change with a value that must not be shown becomes {"veld", "afgeschermd": true}.
 *
 * Shown are numbers, true, false, null and plain strings under listed names, as they stand, so numbers keep every digit.
 * Members other than these three are dropped, a missing value is null, an element that is not a change is left
 * out, and text that does not have the shape is []. Never throws.
 */
export type RedactDiff = (entity: string, diff: string, shape?: DiffShape) => string;

/** Compiles the rules; called once, at start-up. `holdsSealed` finds stored values of the codecs in use (`sealedTexts`). */
export function compileRedaction(rules: RedactionRules, holdsSealed: (text: string) => boolean): RedactDiff {
  const listed = new Map(
    Object.entries(rules).map(([entity, fields]) => [
      entity,
      new Set(fields.filter((field) => !isPersonalName(field) && !isSignatureName(field)).map(spelling)),
    ]),
  );
  const none: ReadonlySet<string> = new Set();
  return (entity, diff, shape = apiDiff) => redact(diff, shape, { listed: listed.get(entity) ?? none, holdsSealed });
}

/** The compiled rules of an entity. */
interface EntityRules {
  readonly listed: ReadonlySet<string>;
  readonly holdsSealed: (text: string) => boolean;
}

function redact(diff: string, shape: DiffShape, rules: EntityRules): string {
  try {
    return `[${changesOf(diff, shape)
      .map((change) => redactChange(change, rules))
      .join(',')}]`;
  } catch (error) {
    if (error instanceof MalformedJson) return '[]';
    throw error;
  }
}

/** The change as the API shows it. Throws MalformedJson. */
function redactChange({ name, before, after }: StoredChange, { listed, holdsSealed }: EntityRules): string {
  const isListed = listed.has(spelling(name));
  const field = JSON.stringify(name);
  const isShown = isListed && isPlain(before, holdsSealed) && isPlain(after, holdsSealed);
  if (isShown) return `{"veld":${field},"oud":${before},"nieuw":${after}}`;
  return `{"veld":${isListed || isFieldName(name) ? field : hiddenName},"afgeschermd":true}`;
}

/** Whether a logged value is a scalar, and as a string neither encrypted, nor an image, nor structured data. */
function isPlain(json: string, holdsSealed: (text: string) => boolean): boolean {
  if (json.startsWith('{') || json.startsWith('[')) return false;
  if (!json.startsWith('"')) return true;
  const text = stringAt(json, 0, json.length);
  return !holdsSealed(text) && !holdsImage(text) && !looksStructured(text);
}

/** "vullingKg", "vulling_kg" and "/vullingKg" are one field; a path such as "vulling.kg" is not. */
export function spelling(field: string): string {
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
