import type { Row, WordSource } from '../db/row.js';
import { DiffReader, type DiffShape, type DiffWords, usualDiff, usualWords } from './audit-diff.js';
import type { Codec } from './codec.js';
import { FieldNames } from './field-names.js';
import { holdsImage } from './images.js';
import { type ConstantJson, constantJson, type JsonBytes } from './json-bytes.js';
import { MalformedJson, stringAt } from './json-scan.js';
import { plainTexts } from './plain-texts.js';
import { PrintedDiff } from './printed-diff.js';
import { RecentBytes } from './recent-bytes.js';
import { type SealedTexts, sealedTexts } from './sealed-texts.js';
import { looksStructured } from './structured-text.js';

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
  const sealed = sealedTexts(codecs);
  const isPlain = plainStrings(sealed);
  return (shape = usualDiff, words = usualWords) => {
    const entities = new Map(Object.entries(rules).map(([entity, fields]) => [entity, new FieldNames(fields, words)]));
    const none = new FieldNames([], words);
    const newValue = constantJson(`,${JSON.stringify(words.new)}:`);
    const reader = new DiffReader(shape);
    const printed = PrintedDiff.of(shape);
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
    return (row, entityAt, diffAt, json) => {
      const names = namesIn(row, entityAt);
      const start = row.starts[diffAt] as number;
      const end = row.ends[diffAt] as number;
      const { length } = json;
      try {
        if (printed?.read(row, start, end)) writePrinted(row, printed, names, newValue, isPlain.at, json);
        else writeAny(row, start, end, reader, names, newValue, isPlain.in, json);
      } catch (error) {
        if (!(error instanceof MalformedJson)) throw error;
        json.cut(length);
        json.constant(emptyList);
      }
    };
  };
}

/** Whether a part of a change may be shown under a listed name. */
interface PlainParts {
  readonly in: (reader: DiffReader, part: number, bytes: Buffer, from: number) => boolean;
  readonly at: (row: WordSource, start: number, end: number) => boolean;
}

function writePrinted(
  row: Row,
  { starts, ends, changes }: PrintedDiff,
  names: FieldNames,
  newValue: ConstantJson,
  isPlain: PlainParts['at'],
  json: JsonBytes,
): void {
  json.constant(opening);
  for (let at = 0; at < changes * 3; at += 3) {
    if (at > 0) json.comma();
    const { isListed, shown, hidden } = names.at(row, starts[at] as number, ends[at] as number);
    const [before, beforeEnd] = [starts[at + 1] as number, ends[at + 1] as number];
    const [after, afterEnd] = [starts[at + 2] as number, ends[at + 2] as number];
    if (isListed && isPlain(row, before, beforeEnd) && isPlain(row, after, afterEnd)) {
      json.constant(shown);
      json.part(row, before, beforeEnd);
      json.constant(newValue);
      json.part(row, after, afterEnd);
      json.constant(brace);
    } else json.constant(hidden);
  }
  json.constant(closing);
}

function writeAny(
  row: Row,
  start: number,
  end: number,
  reader: DiffReader,
  names: FieldNames,
  newValue: ConstantJson,
  isPlain: PlainParts['in'],
  json: JsonBytes,
): void {
  const { bytes } = row;
  const { length } = json;
  json.constant(opening);
  reader.read(bytes, start, end, () => {
    if (json.length > length + 1) json.comma();
    const { isListed, shown, hidden } = names.of(reader);
    const isShown = isListed && isPlain(reader, 1, bytes, start) && isPlain(reader, 2, bytes, start);
    if (!isShown) return json.constant(hidden);
    json.constant(shown);
    writePart(reader, 1, bytes, start, json);
    json.constant(newValue);
    writePart(reader, 2, bytes, start, json);
    json.constant(brace);
  });
  json.constant(closing);
}

const opening = constantJson('[');
const closing = constantJson(']');
const emptyList = constantJson('[]');
const brace = constantJson('}');
const nullJson = constantJson('null');

function writePart({ starts, ends }: DiffReader, part: number, bytes: Buffer, from: number, json: JsonBytes): void {
  const start = starts[part] as number;
  if (start < 0) json.constant(nullJson);
  else json.raw(bytes, from + start, from + (ends[part] as number));
}

/** Places of the memories for entities and for values, as powers of two. */
const entityBits = 4;
const valueBits = 11;

const quote = 0x22;

/** The string whose JSON is bytes[start, end). Throws MalformedJson on an invalid escape. */
function textAt(bytes: Buffer, start: number, end: number): string {
  const json = bytes.toString('utf8', start, end);
  return stringAt(json, 0, json.length);
}

/** Makes the test whether a part of a change is a scalar, and as a string neither encrypted, nor an image, nor structured data. */
function plainStrings(sealed: SealedTexts): PlainParts {
  const isSurelyPlain = plainTexts(sealed);
  const isPlain = (text: string): boolean => !sealed.areIn(text) && !holdsImage(text) && !looksStructured(text);
  const recent = new RecentBytes<true>(valueBits);
  return {
    in: (reader, part, bytes, from) => {
      const start = reader.starts[part] as number;
      const first = reader.diff[start];
      if (first !== '"') return first !== '{' && first !== '[';
      const isSure = isSurelyPlain(bytes, from + start + 1, from + (reader.ends[part] as number) - 1);
      return isSure || isPlain(reader.stringOf(part));
    },
    at: (row, start, end) => {
      const { bytes } = row;
      if (bytes[start] !== quote || recent.find(row, start, end) === true) return true;
      const [first, last] = [start + 1, end - 1];
      if (!isSurelyPlain(bytes, first, last) && !isPlain(textAt(bytes, start, end))) return false;
      recent.keep(row, start, end, true);
      return true;
    },
  };
}
