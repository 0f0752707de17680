import {
  type DiffMemberNames,
  type DiffShape,
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

/** Shown fields by the app's name of the entity; all others are shielded, and so is a name that means personal data or a signature. */
export type RedactionRules = Readonly<Record<string, readonly string[]>>;

/**
 * A stored diff → JSON of changes in the definition's words. Plain scalars of listed fields stand as they are; any other value leaves the
 * name and {"shielded": true}. What is no change is left out; other text is []. Never throws.
 */
export type RedactDiff = (entity: string | null, diff: string) => string;
export type Redaction = (shape?: DiffShape, words?: DiffMemberNames) => RedactDiff;

/** Hides values that `codecs` store. Shows names that the rules or `named` list: a log can have anything in their place. */
export function compileRedaction(
  rules: RedactionRules,
  codecs: readonly Codec[],
  named: readonly string[] = [],
): Redaction {
  const holdsSealed = sealedTexts(codecs);
  const plain = new Set<string>();
  /** A scalar; as a string neither encrypted, nor an image, nor structured or personal data. */
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

interface FieldName {
  readonly isListed: boolean;
  readonly field: string;
}

/** A log repeats texts such as states; their number and length. */
const plainMax = 5000;
const plainLengthMax = 40;
const namesMax = 200;
const nameLengthMax = 100;

/** Without listed names that mean personal data or a signature. */
function fieldNames(
  listed: readonly string[],
  names: ReadonlySet<string>,
  words: DiffMemberNames,
): (name: string) => FieldName {
  const shown = new Set(listed.filter((name) => !isPersonalName(name) && !isSignatureName(name)).map(spelling));
  const known = new Map<string, FieldName>();
  return (name) => {
    const found = known.get(name);
    if (found !== undefined) return found;
    const isField = names.has(spelling(name)) && name.length <= nameLengthMax;
    const isListed = isField && shown.has(spelling(name));
    const field = `{${JSON.stringify(words.field)}:${JSON.stringify(isField ? name : `(${words.shielded})`)},`;
    if (isField && known.size < namesMax) known.set(name, { isListed, field });
    return { isListed, field };
  };
}

/** "vullingKg", "vulling_kg" and "/vullingKg" are one field; a path such as "vulling.kg" is not. */
export function spelling(field: string): string {
  return field.replace(/^\/|[_-]/g, '').toLowerCase();
}

/** Whole words if a longer one means something else (installatie, plaatsing). */
const personalWords = new RegExp(
  [
    // Not the id by which a record points to the customer.
    String.raw`\b(?:klant|customer|contact|contactpersoon|eigenaar|bewoner|huurder|opdrachtgever)(?:naam)?\b(?! id$)`,
    'klant ?naam|voornaam|achternaam|tussenvoegsel|voorletter|bedrijfsnaam|(?:first|last|full|company) name',
    String.raw`adres|address|straat|street|huisn|\bhuis n|house number|\btoevoeging\b|postcode|post code|postal|\bzip\b`,
    String.raw`\bplaats\b|woonplaats|plaatsnaam|\bcity\b|e ?mail|telefoon|\btel\b|mobiel|phone|\bfax`,
    'kvk|kamer van koophandel|btw ?(?:nummer|nr|id)|vat ?(?:number|id)|iban|bankrekening|bsn|geboorte|birth',
    'ondertekend door|ondertekenaar|signed by|signatory',
  ].join('|'),
);

/** "kvkNummer" and "KVK_nummer" → "kvk nummer". */
function isPersonalName(name: string): boolean {
  const words = plainText(name)
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replace(/([A-Z])([A-Z][a-z])/g, '$1 $2')
    .replace(/[^\p{L}\p{N}]+/gu, ' ');
  return personalWords.test(words.trim().toLowerCase());
}

export interface ProjectionOptions extends CodecOptions {
  /** Of CODEC_MODULE, which can decode the same value otherwise. */
  readonly moduleText?: string | undefined;
  readonly redaction: Redaction;
}
