import type { WordSource } from '../db/row.js';
import type { DiffReader, DiffWords } from './audit-diff.js';
import { holdsImage } from './images.js';
import { type ConstantJson, constantJson } from './json-bytes.js';
import { RecentBytes } from './recent-bytes.js';
import { isSignatureName } from './strip.js';

/** How a change of a field is written. */
interface FieldName {
  /** Whether it has the form of a field's name. */
  readonly isField: boolean;
  readonly isListed: boolean;
  /** JSON up to the old value. */
  readonly shown: ConstantJson;
  /** JSON of the change without its values. */
  readonly hidden: ConstantJson;
}

/** Places of the memory for names, as a power of two. */
const nameBits = 7;
const rememberedMax = 500;
const rememberedLengthMax = 64;

/** The names of an entity's fields, each compiled once. Other texts in the place of a name are not remembered. */
export class FieldNames {
  readonly #listed: ReadonlySet<string>;
  readonly #compiled = new Map<string, FieldName>();
  readonly #recent = new RecentBytes<FieldName>(nameBits);

  /** Of the listed fields those are left out that mean personal data or a signature. */
  constructor(
    listed: readonly string[],
    private readonly words: DiffWords,
  ) {
    this.#listed = new Set(listed.filter((name) => !isPersonalName(name) && !isSignatureName(name)).map(spelling));
  }

  /** Throws MalformedJson. */
  of(reader: DiffReader): FieldName {
    const [start, end] = [reader.starts[0] as number, reader.ends[0] as number];
    return this.#named(reader.diff.slice(start, end), () => reader.stringOf(0));
  }

  /** Of the name between quotes, without an escape, at `start` in a row. */
  at(row: WordSource, start: number, end: number): FieldName {
    const known = this.#recent.find(row, start, end);
    if (known !== undefined) return known;
    const { bytes } = row;
    const compiled = this.#named(bytes.toString('latin1', start, end), () =>
      bytes.toString('utf8', start + 1, end - 1),
    );
    if (compiled.isField) this.#recent.keep(row, start, end, compiled);
    return compiled;
  }

  /** `stored`: the name between quotes, with a character for each byte. */
  #named(stored: string, nameOf: () => string): FieldName {
    const known = this.#compiled.get(stored);
    if (known !== undefined) return known;
    const compiled = this.#compile(nameOf());
    const isRemembered =
      compiled.isField && stored.length <= rememberedLengthMax && this.#compiled.size < rememberedMax;
    if (isRemembered) this.#compiled.set(stored, compiled);
    return compiled;
  }

  #compile(name: string): FieldName {
    const isListed = this.#listed.has(spelling(name));
    const isField = isListed || isFieldName(name);
    const { words } = this;
    // In the place of a name that does not have the form of one stands the word in brackets.
    const field = JSON.stringify(isField ? name : `(${words.shielded})`);
    const opened = `{${JSON.stringify(words.field)}:${field},`;
    return {
      isField,
      isListed,
      shown: constantJson(`${opened}${JSON.stringify(words.old)}:`),
      hidden: constantJson(`${opened}${JSON.stringify(words.shielded)}:true}`),
    };
  }
}

/** "vullingKg", "vulling_kg" and "/vullingKg" are one field; a path such as "vulling.kg" is not. */
export function spelling(field: string): string {
  return field.replace(/^\/|[_-]/g, '').toLowerCase();
}

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
