import type { Row, WordSource } from '../postgres/row.js';
import { DiffReader, type DiffShape, type DiffWords, jsonText, usualDiff, usualWords } from './audit-diff.js';
import type { Codec, CodecOptions } from './codec.js';
import { holdsImage } from './images.js';
import { type ConstantJson, constantJson, type JsonBytes } from './json-bytes.js';
import { MalformedJson } from './json-scan.js';
import { looksStructured, plainTexts, type SealedTexts, sealedTexts } from './plain-texts.js';
import { isSignatureName } from './strip.js';

/**
 * The fields of the audit log whose values are shown, by the app's name of the entity. All other fields, and all fields of an
 * entity that is not listed, are shielded. So is a listed name that means personal data or a signature.
 */
export type RedactionRules = Readonly<Record<string, readonly string[]>>;

/**
 * Redacts the diff of a log entry: turns the JSON text in the column `diffAt` of a row into the JSON text of a list of
 * changes in the words of the definition. A change with a value that must not be shown has its field's name and {"shielded": true} alone.
 *
 * Shown are numbers, true, false, null and plain strings under listed names, as they stand, so numbers keep every digit.
 * Members other than these three are dropped, a missing value is null, an element that is not a change is left
 * out, and text that does not have the shape is []. Never throws.
 */
export type RedactDiff = (row: Row, entityAt: number, diffAt: number, json: JsonBytes) => void;

/** Makes the redaction of diffs that are stored in a shape and shown in some words. */
export type Redaction = (shape?: DiffShape, words?: DiffWords) => RedactDiff;

/** Compiles the rules; called once, at start-up. Values that `codecs` store are hidden, too. */
export function compileRedaction(rules: RedactionRules, codecs: readonly Codec[]): Redaction {
  const isShown = shownValues(sealedTexts(codecs));
  return (shape = usualDiff, words = usualWords) => {
    const entities = new Map(Object.entries(rules).map(([entity, fields]) => [entity, new FieldNames(fields, words)]));
    const none = new FieldNames([], words);
    const newValue = constantJson(`,${JSON.stringify(words.new)}:`);
    const reader = new DiffReader(shape);
    const recent = new RecentBytes<FieldNames>(entityBits);
    const namesIn = (row: Row, entityAt: number): FieldNames => {
      if (row.isNull(entityAt)) return entities.get('') ?? none;
      const [start, end] = [row.starts[entityAt] as number, row.ends[entityAt] as number];
      const found = recent.find(row, start, end);
      if (found !== undefined) return found;
      const names = entities.get(row.text(entityAt) as string) ?? none;
      recent.keep(row, start, end, names);
      return names;
    };
    const { starts, ends } = reader;
    const writePart = (row: Row, part: number, json: JsonBytes): void => {
      if ((starts[part] as number) < 0) json.constant(nullJson);
      else json.part(row, starts[part] as number, ends[part] as number);
    };
    const writeChange = (row: Row, names: FieldNames, json: JsonBytes): void => {
      const { isListed, shown, hidden } = names.at(row, starts[0] as number, ends[0] as number);
      const isWhole =
        isListed &&
        isShown(row, starts[1] as number, ends[1] as number) &&
        isShown(row, starts[2] as number, ends[2] as number);
      if (!isWhole) return json.constant(hidden);
      json.constant(shown);
      writePart(row, 1, json);
      json.constant(newValue);
      writePart(row, 2, json);
      json.constant(brace);
    };
    return (row, entityAt, diffAt, json) => {
      const names = namesIn(row, entityAt);
      const { length } = json;
      json.constant(opening);
      try {
        reader.read(row.bytes, row.starts[diffAt] as number, row.ends[diffAt] as number, () => {
          if (json.length > length + 1) json.comma();
          writeChange(row, names, json);
        });
        json.constant(closing);
      } catch (error) {
        if (!(error instanceof MalformedJson)) throw error;
        json.cut(length);
        json.constant(emptyList);
      }
    };
  };
}

const opening = constantJson('[');
const closing = constantJson(']');
const emptyList = constantJson('[]');
const brace = constantJson('}');
const nullJson = constantJson('null');

/** Places of the memories for entities and for values, as powers of two. */
const entityBits = 4;
const valueBits = 11;

const [quote, openBracket, openBrace] = [0x22, 0x5b, 0x7b];

/** Makes the test whether a part of a change is a scalar or missing, and as a string neither encrypted, nor an image, nor structured data. */
function shownValues(sealed: SealedTexts): (row: WordSource, start: number, end: number) => boolean {
  const isSurelyPlain = plainTexts(sealed);
  const isPlain = (text: string): boolean => !sealed.areIn(text) && !holdsImage(text) && !looksStructured(text);
  const recent = new RecentBytes<true>(valueBits);
  return (row, start, end) => {
    if (start < 0) return true;
    const { bytes } = row;
    if (bytes[start] !== quote) return bytes[start] !== openBrace && bytes[start] !== openBracket;
    if (recent.find(row, start, end) === true) return true;
    if (!isSurelyPlain(bytes, start + 1, end - 1) && !isPlain(jsonText(bytes, start, end))) return false;
    recent.keep(row, start, end, true);
    return true;
  };
}

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

/** The names of an entity's fields. Other texts in the place of a name are not remembered. */
class FieldNames {
  readonly #listed: ReadonlySet<string>;
  readonly #recent = new RecentBytes<FieldName>(nameBits);

  /** Of the listed fields those are left out that mean personal data or a signature. */
  constructor(
    listed: readonly string[],
    private readonly words: DiffWords,
  ) {
    this.#listed = new Set(listed.filter((name) => !isPersonalName(name) && !isSignatureName(name)).map(spelling));
  }

  /** Of the name whose JSON is at `start` in a row. Throws MalformedJson. */
  at(row: WordSource, start: number, end: number): FieldName {
    const known = this.#recent.find(row, start, end);
    if (known !== undefined) return known;
    const compiled = this.#compile(jsonText(row.bytes, start, end));
    if (compiled.isField) this.#recent.keep(row, start, end, compiled);
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

const wordsMax = 8;
const bytesMax = wordsMax * 4;

/**
 * Remembers facts about short texts that come again and again, by their bytes: a state, the name of a field. Each text has one place,
 * by its hash, and takes it from the text before; a text is found only when all its bytes are the same. The memory does not grow.
 */
export class RecentBytes<T> {
  readonly #words: Int32Array;
  readonly #lengths: Int32Array;
  readonly #known: (T | undefined)[];
  readonly #shift: number;
  /** The place of the text that was looked for last; -1: it is too long. */
  #place = -1;

  /** Has two to the power of `bits` places. */
  constructor(bits: number) {
    this.#words = new Int32Array(wordsMax << bits);
    this.#lengths = new Int32Array(1 << bits).fill(-1);
    this.#known = new Array(1 << bits).fill(undefined);
    this.#shift = 32 - bits;
  }

  find({ bytes, words }: WordSource, start: number, end: number): T | undefined {
    const length = end - start;
    this.#place = -1;
    if (length > bytesMax || end + 3 > bytes.length) return undefined;
    let hash = length;
    for (let i = start; i < end; i += 4) hash = Math.imul(hash ^ wordAt(words, i, end), 0x9e3779b1) ^ (hash >>> 15);
    const place = hash >>> this.#shift;
    this.#place = place;
    if (this.#lengths[place] !== length) return undefined;
    const kept = this.#words;
    let at = place * wordsMax;
    for (let i = start; i < end; i += 4) if (kept[at++] !== wordAt(words, i, end)) return undefined;
    return this.#known[place];
  }

  /** Keeps a fact about the text that was looked for last; one that is too long is not kept. */
  keep({ words }: WordSource, start: number, end: number, known: T): void {
    const place = this.#place;
    if (place < 0) return;
    let at = place * wordsMax;
    for (let i = start; i < end; i += 4) this.#words[at++] = wordAt(words, i, end);
    this.#lengths[place] = end - start;
    this.#known[place] = known;
  }
}

/** Four bytes, of which those behind `end` count as zero. */
function wordAt(words: DataView, at: number, end: number): number {
  const word = words.getInt32(at, true);
  return end - at < 4 ? word & ((1 << ((end - at) << 3)) - 1) : word;
}

/** Dependencies of the projection, made once at start-up. */
export interface ProjectionOptions extends CodecOptions {
  /** Text of CODEC_MODULE: another one can decode the same value otherwise. */
  readonly moduleText?: string | undefined;
  readonly redaction: Redaction;
}
