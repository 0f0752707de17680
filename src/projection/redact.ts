import type { Row } from '../db/row.js';
import { apiDiff, DiffReader, type DiffShape } from './audit-diff.js';
import type { Codec } from './codec.js';
import { holdsImage } from './images.js';
import type { JsonBytes } from './json-bytes.js';
import { MalformedJson } from './json-scan.js';
import { plainTexts } from './plain-texts.js';
import { type SealedTexts, sealedTexts } from './sealed-texts.js';
import { isSignatureName } from './strip.js';
import { looksStructured } from './structured-text.js';

/**
 * The fields of the audit log whose values are shown, by the app's name of the entity. All other fields, and all fields of an
 * entity that is not listed, are shielded. So is a listed name that means personal data or a signature.
 */
export type RedactionRules = Readonly<Record<string, readonly string[]>>;

/**
 * Redacts the diff of a log entry: turns the JSON text in the column `diffAt` of a row into the JSON text of a list of changes in the shape of the API. A change with a value that must not be shown becomes {"veld", "afgeschermd": true}.
 *
 * Shown are numbers, true, false, null and plain strings under listed names, as they stand, so numbers keep every digit.
 * Members other than these three are dropped, a missing value is null, an element that is not a change is left
 * out, and text that does not have the shape is []. Never throws.
 */
export type RedactDiff = (row: Row, entityAt: number, diffAt: number, json: JsonBytes) => void;

/** Makes the redaction of diffs of a shape, by default [{"veld","oud","nieuw"}]. */
export type Redaction = (shape?: DiffShape) => RedactDiff;

/** Compiles the rules; called once, at start-up. Values that `codecs` store are hidden, too. */
export function compileRedaction(rules: RedactionRules, codecs: readonly Codec[]): Redaction {
  const sealed = sealedTexts(codecs);
  const isPlain = plainStrings(sealed);
  return (shape = apiDiff) => {
    const namesOf = (fields: readonly string[]): FieldNames =>
      new FieldNames(
        new Set(fields.filter((field) => !isPersonalName(field) && !isSignatureName(field)).map(spelling)),
      );
    const entities = new Map(Object.entries(rules).map(([entity, fields]) => [entity, namesOf(fields)]));
    const none = namesOf([]);
    const reader = new DiffReader(shape);
    let last = { entity: Buffer.alloc(0), names: entities.get('') ?? none };
    return (row, entityAt, diffAt, json) => {
      if (!row.equals(entityAt, last.entity)) {
        const entity = row.text(entityAt) ?? '';
        last = { entity: Buffer.from(entity), names: entities.get(entity) ?? none };
      }
      const { names } = last;
      const { bytes } = row;
      const start = row.starts[diffAt] as number;
      const length = json.length;
      try {
        json.raw(opening);
        reader.read(bytes, start, row.ends[diffAt] as number, () => {
          if (json.length > length + 1) json.comma();
          const { isListed, shown, hidden } = names.of(reader);
          const isShown = isListed && isPlain(reader, 1, bytes, start) && isPlain(reader, 2, bytes, start);
          if (!isShown) return json.raw(hidden);
          json.raw(shown);
          writePart(reader, 1, bytes, start, json);
          json.raw(newValue);
          writePart(reader, 2, bytes, start, json);
          json.raw(brace);
        });
        json.raw(closing);
      } catch (error) {
        if (!(error instanceof MalformedJson)) throw error;
        json.cut(length);
        json.raw(emptyList);
      }
    };
  };
}

const opening = Buffer.from('[');
const closing = Buffer.from(']');
const emptyList = Buffer.from('[]');
const newValue = Buffer.from(',"nieuw":');
const brace = Buffer.from('}');
const nullBytes = Buffer.from('null');

function writePart({ starts, ends }: DiffReader, part: number, bytes: Buffer, from: number, json: JsonBytes): void {
  const start = starts[part] as number;
  if (start < 0) json.raw(nullBytes);
  else json.raw(bytes, from + start, from + (ends[part] as number));
}

/** How a change of a field is written. */
interface FieldName {
  readonly isListed: boolean;
  /** JSON up to the old value. */
  readonly shown: Buffer;
  /** JSON of the change without its values. */
  readonly hidden: Buffer;
}

const rememberedMax = 500;
const rememberedLengthMax = 64;

/** The names of an entity's fields, each compiled once. Other texts in the place of a name are not remembered. */
class FieldNames {
  readonly #listed: ReadonlySet<string>;
  readonly #compiled = new Map<string, FieldName>();

  constructor(listed: ReadonlySet<string>) {
    this.#listed = listed;
  }

  /** Throws MalformedJson. */
  of(reader: DiffReader): FieldName {
    const [start, end] = [reader.starts[0] as number, reader.ends[0] as number];
    const stored = reader.diff.slice(start, end);
    const known = this.#compiled.get(stored);
    if (known !== undefined) return known;
    const name = reader.stringOf(0);
    const isListed = this.#listed.has(spelling(name));
    const isField = isListed || isFieldName(name);
    const field = isField ? JSON.stringify(name) : hiddenName;
    const compiled = {
      isListed,
      shown: Buffer.from(`{"veld":${field},"oud":`),
      hidden: Buffer.from(`{"veld":${field},"afgeschermd":true}`),
    };
    const isRemembered = isField && stored.length <= rememberedLengthMax && this.#compiled.size < rememberedMax;
    if (isRemembered) this.#compiled.set(stored, compiled);
    return compiled;
  }
}

/** Makes the test whether a part of a change is a scalar, and as a string neither encrypted, nor an image, nor structured data. */
function plainStrings(sealed: SealedTexts): (reader: DiffReader, part: number, bytes: Buffer, from: number) => boolean {
  const isSurelyPlain = plainTexts(sealed);
  return (reader, part, bytes, from) => {
    const start = reader.starts[part] as number;
    const first = reader.diff[start];
    if (first !== '"') return first !== '{' && first !== '[';
    if (isSurelyPlain(bytes, from + start + 1, from + (reader.ends[part] as number) - 1)) return true;
    const text = reader.stringOf(part);
    return !sealed.areIn(text) && !holdsImage(text) && !looksStructured(text);
  };
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
