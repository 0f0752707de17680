import {
  type DiffShape,
  type DiffWords,
  type StoredChange,
  storedChanges,
  usualDiff,
  usualWords,
} from './audit-diff.js';
import type { Codec, CodecOptions } from './codec.js';
import { looksStructured, sealedTexts } from './hidden-texts.js';
import { holdsImage } from './images.js';
import { MalformedJson, stringAt } from './json-scan.js';
import { looksPersonal } from './personal-texts.js';
import { plainText } from './plain-text.js';
import { isSignatureName } from './strip.js';

/**
 * The fields of the audit log whose values are shown, by the app's name of the entity. All other fields, and all fields of an
 * entity that is not listed, are shielded. So is a listed name that means personal data or a signature.
 */
export type RedactionRules = Readonly<Record<string, readonly string[]>>;

/**
 * Redacts the diff of a log entry, a JSON text, into the JSON text of a list of changes in the words of the definition. A change with a
 * value that must not be shown has its field's name and {"shielded": true} alone.
 *
 * Shown are numbers, true, false, null and plain strings under listed names, as they stand, so numbers keep every digit.
 * Members other than these three are dropped, a missing value is null, an element that is not a change is left
 * out, and text that does not have the shape is []. Never throws.
 */
export type RedactDiff = (entity: string | null, diff: string) => string;

/** Makes the redaction of diffs that are stored in a shape and shown in some words. */
export type Redaction = (shape?: DiffShape, words?: DiffWords) => RedactDiff;

/**
 * Compiles the rules; called once, at start-up. Values that `codecs` store are hidden, too. Names of fields are shown if they are listed, by
 * the rules or in `named`: a log can have anything in the place of a name.
 */
export function compileRedaction(
  rules: RedactionRules,
  codecs: readonly Codec[],
  named: readonly string[] = [],
): Redaction {
  const holdsSealed = sealedTexts(codecs);
  const plain = new Set<string>();
  /** Whether JSON is a scalar, and as a string neither encrypted, nor an image, nor structured or personal data. */
  const isShown = (json: string): boolean => {
    if (!json.startsWith('"')) return !/^[{[]/.test(json);
    if (plain.has(json)) return true;
    const text = stringAt(json, 0, json.length);
    if (holdsSealed(text) || holdsImage(text) || looksStructured(text) || looksPersonal(text)) return false;
    if (json.length <= plainLengthMax && plain.size < plainMax) plain.add(Buffer.from(json).toString()); // not a slice, which would keep its diff
    return true;
  };
  return (shape = usualDiff, words = usualWords) => {
    const names = new Set([...Object.values(rules).flat(), ...named].map(spelling));
    const entities = new Map(
      Object.entries(rules).map(([entity, fields]) => [entity, fieldNames(fields, names, words)]),
    );
    const none = fieldNames([], names, words);
    const [old, next, shielded] = [words.old, words.new, words.shielded].map((word) => `${JSON.stringify(word)}:`);
    const redacted = (names: (name: string) => FieldName, change: StoredChange): string => {
      const { field, isListed } = names(change.name);
      return isListed && isShown(change.old) && isShown(change.new)
        ? `${field}${old}${change.old},${next}${change.new}}`
        : `${field}${shielded}true}`;
    };
    return (entity, diff) => {
      const names = entities.get(entity ?? '') ?? none;
      try {
        return `[${storedChanges(diff, shape).map((change) => redacted(names, change))}]`;
      } catch (error) {
        if (error instanceof MalformedJson) return '[]';
        throw error;
      }
    };
  };
}

/** How a change of a field is written. */
interface FieldName {
  readonly isListed: boolean;
  /** JSON up to the values. */
  readonly field: string;
}

/** Texts that are kept because the log repeats them, such as states, and the length of each. */
const plainMax = 5000;
const plainLengthMax = 40;

/** Names that are kept for each entity, and the length of each. */
const namesMax = 200;
const nameLengthMax = 100;

/** Makes the function from the name of an entity's field. Of the listed fields those are left out that mean personal data or a signature. */
function fieldNames(
  listed: readonly string[],
  names: ReadonlySet<string>,
  words: DiffWords,
): (name: string) => FieldName {
  const shown = new Set(listed.filter((name) => !isPersonalName(name) && !isSignatureName(name)).map(spelling));
  const known = new Map<string, FieldName>();
  return (name) => {
    const found = known.get(name);
    if (found !== undefined) return found;
    const isField = names.has(spelling(name)) && name.length <= nameLengthMax;
    const isListed = isField && shown.has(spelling(name));
    // In the place of a name that is not listed stands the word in brackets.
    const field = `{${JSON.stringify(words.field)}:${JSON.stringify(isField ? name : `(${words.shielded})`)},`;
    if (isField && known.size < namesMax) known.set(name, { isListed, field });
    return { isListed, field };
  };
}

/** "vullingKg", "vulling_kg" and "/vullingKg" are one field; a path such as "vulling.kg" is not. */
export function spelling(field: string): string {
  return field.replace(/^\/|[_-]/g, '').toLowerCase();
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
  const words = plainText(name)
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replace(/([A-Z])([A-Z][a-z])/g, '$1 $2')
    .replace(/[^\p{L}\p{N}]+/gu, ' ');
  return personalWords.test(words.trim().toLowerCase());
}

/** Dependencies of the projection, made once at start-up. */
export interface ProjectionOptions extends CodecOptions {
  /** Text of CODEC_MODULE: another one can decode the same value otherwise. */
  readonly moduleText?: string | undefined;
  readonly redaction: Redaction;
}
