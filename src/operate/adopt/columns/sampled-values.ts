import { isNamed } from '../../../base/words.js';
import { decodeWith, type EncodingName } from '../../../resource/projection/encodings.js';
import { holdsImage } from '../../../resource/projection/images.js';
import { toCamelCase } from '../names.js';
import { askAbout, type Column, type Table, type TypeMember } from '../schema.js';
import type { Points } from '../sql.js';
import { getFieldType, isDocument, isTextual } from './types.js';

// The values of a column: their form, and the members of JSON. Example: "enc:v2:k1:…" is sealed; {"a": {"b": 1}} has the member /a/b.

/** Sealed values are bytes without a form, also after a prefix such as "enc:v2:k1:". */
export type Form = 'plain' | 'image' | 'digest' | 'unknown bytes' | 'base64' | 'sealed';

/** A tenth of the values of a column with a form can be damaged. */
const fractionMin = 0.9;
const sealedBytesMin = 28; // a nonce of 12 bytes and a tag of 16

/** Only text and bytea columns have a form; others are plain. */
export function guessColumnForm(column: Column): Form {
  if (!isTextual(column) && column.type !== 'bytea') return 'plain';
  return guessForm(column.values, column.type === 'bytea');
}

export function guessForm(values: readonly string[], isBytea: boolean): Form {
  if (values.length === 0) return isBytea ? 'unknown bytes' : 'plain';
  const images = values.filter((value) => holdsImage(value)).length;
  if (images > values.length / 2) return 'image';
  if (values.filter(isSealedDocument).length >= values.length * fractionMin) return 'sealed';
  if (isSealed(values, isBytea ? ['bytea'] : ['hex', 'base64', 'base64url'])) return 'sealed';
  if (isBytea) return isDigest(values) ? 'digest' : 'unknown bytes';
  const isBase64 = holdsMostly(values, 'base64', (bytes) => bytes.length > 3 && isPrintable(bytes));
  const looksEncoded = values.some((value) => value.length >= 8 && /[A-Z].*[a-z]|[0-9=]/.test(value));
  return isBase64 && looksEncoded ? 'base64' : 'plain';
}

/** Sealed values can have words before the base64, as "enc:v2:k1:…" has. */
const prefixed = /^(?:[A-Za-z0-9_.-]{1,40}[:$|!])+([A-Za-z0-9+/_=-]+)$/;

/** Recognizes PGP, age and Fernet, hexadecimal parts such as nonce:tag:data, and JSON, also in base64, with a nonce beside the data. */
export function isSealedDocument(text: string): boolean {
  const isKnown =
    /^(-----BEGIN PGP MESSAGE|age-encryption\.org|gAAAA[\w-]{60}|[0-9a-f]{24,}([:.$|][0-9a-f]{16,})+$)/i.test(text);
  if (isKnown) return true;
  const json = text.startsWith('{') ? text : (decodeWith('base64', Buffer.from(text))?.toString() ?? '');
  return (
    /^\{.*"(iv|nonce)"\s*:\s*"[\w+/=-]{8,}"/s.test(json) &&
    /"(p|ct|data|value|content|payload|cipher\w*|encrypted\w*)"\s*:\s*"/i.test(json)
  );
}

const randomMin = 8;

/** Recognizes random texts: each is one word, none is there twice, and their letters and digits have no order. */
export function areRandom(values: readonly string[]): boolean {
  const texts = values.map((value) => value.replaceAll(/[_=+/-]/g, ''));
  const areDistinct = values.length >= randomMin && new Set(values).size === values.length;
  if (!areDistinct || !texts.every((text) => /^[a-z\d]{6,200}$/i.test(text))) return false;
  const all = texts.join(' ');
  const measureFraction = (form: RegExp): number => (all.match(form)?.length ?? 0) / all.length;
  if (texts.every((text) => /^\d{6,8}$/.test(text))) {
    const numbers = texts.map(Number);
    return Math.max(...numbers) - Math.min(...numbers) > numbers.length * 1000;
  }
  const changes = measureFraction(changesOfKind);
  return changes > 0.25 || (measureFraction(/\d/g) === 0 && measureFraction(/[aeiouy]/gi) < 0.25);
}

/** The expression matches between small letters, capital letters and digits. */
const changesOfKind = /(?<=[a-z])[A-Z\d]|(?<=[A-Z])[a-z\d]|(?<=\d)[A-Za-z]/g;

function isSealed(values: readonly string[], encodings: readonly EncodingName[]): boolean {
  const payloads = values.flatMap((value) => prefixed.exec(value)?.[1] ?? []);
  const texts = payloads.length < values.length * fractionMin ? values : payloads;
  const hasNoForm = (bytes: Buffer): boolean => bytes.length >= sealedBytesMin && !isPrintable(bytes);
  return !isDigest(texts) && encodings.some((encoding) => holdsMostly(texts, encoding, hasNoForm));
}

/** Recognizes digests by the length of a known hash; sealed texts differ in length. */
function isDigest(values: readonly string[]): boolean {
  const hashes = values.map((value) => value.replace(/^\\x/, '')).filter((value) => /^[0-9a-f]{32,128}$/i.test(value));
  const [length = 0, ...others] = new Set(hashes.map((value) => value.length));
  return hashes.length >= values.length * fractionMin && others.length === 0 && [32, 40, 64, 96, 128].includes(length);
}

function holdsMostly(values: readonly string[], encoding: EncodingName, holds: (bytes: Buffer) => boolean): boolean {
  const bytes = values.flatMap((value) => decodeWith(encoding, Buffer.from(value)) ?? []);
  const count = bytes.filter(holds).length;
  return count > 0 && count >= values.length * fractionMin;
}

function isPrintable(bytes: Buffer): boolean {
  const text = bytes.toString('utf8');
  return Buffer.from(text).equals(bytes) && !/[\p{Cc}\p{Cn}\p{Co}]/u.test(text.replace(/[\t\r\n]/g, ''));
}

export function areSealedByCodec(values: readonly string[]): boolean {
  return values.filter((value) => /^enc:v[12]:[^:]+:/.test(value)).length > values.length / 2;
}

type Inside = Readonly<Record<string, unknown>>;

const printedAsTexts = /^(enum|interval|time with|inet|cidr|macaddr|"char"|name$)|(^|\.)citext$/;

/** Describes a column that PostgreSQL turns into JSON: an id is a text there, too, and unknown types are free JSON. */
export function showInsideJson(column: TypeMember & Partial<Column>, isId: boolean): Inside {
  const { type, isArray, values, members } = column;
  if (isArray) {
    const element = showInsideJson({ ...column, type: type.replace(/\[\]$/, ''), isArray: false }, false);
    if ('show' in element) return element; // it goes through lists
    // The type of a list does not tell its dimensions, but its values do.
    const lists = Math.max(1, ...values.map((value) => (/^\{+/.exec(value)?.[0] ?? '{').length));
    return wrapInList({ ...element, nullable: true }, lists);
  }
  if (members)
    return {
      type: 'json',
      fields: Object.fromEntries(
        members.map((member) => {
          const name = toCamelCase(member.name);
          const column = name === member.name ? {} : { column: member.name };
          return [name, { ...column, ...showInsideJson(member, false), nullable: true }];
        }),
      ),
    };
  if (isId && getFieldType(type) === 'integer') return { type: 'bigint' };
  if (getFieldType(type) === 'json') return describeFreeJson(values);
  if (printedAsTexts.test(type)) return { type: 'text' };
  const known = type === 'timestamp without time zone' ? 'timestamp' : getFieldType(type);
  return known === undefined ? describeFreeJson(values) : { type: known };
}

/** Shows the members that the sample has; if it has none, only texts, numbers and lists of them. */
function describeFreeJson(values: readonly string[]): Inside {
  const show = listMembers(values);
  return { type: 'json', show: show.length > 0 ? show : [''] };
}

function wrapInList(item: Inside, lists: number): Inside {
  return { type: 'json', items: lists > 1 ? { ...wrapInList(item, lists - 1), nullable: true } : item };
}

const membersMax = 500; // resource.schema.json allows no more of them in `show`
const depthMax = 8; // a document that repeats itself inside would list its members without end

/** Returns the pointers into a sample of free JSON, in each of its forms; empty if the sample shows none. */
export function listMembers(values: readonly string[]): string[] {
  return listShownPointers(values.flatMap(parseJson)).sort().slice(0, membersMax);
}

/** Follows plain values through lists, as `show` reads them. A name that is long, or in under a tenth of the objects, can be a value. */
function listShownPointers(values: readonly unknown[], at = ''): string[] {
  const items = values.flatMap((value) => (Array.isArray(value) ? value.flat(Number.POSITIVE_INFINITY) : [value]));
  const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;
  const objects = items.filter(isObject);
  const isPlain = items.some((value) => value !== null && !isObject(value) && !holdsImage(String(value)));
  const below = new Map<string, unknown[]>();
  for (const [name, value] of objects.flatMap((object) => Object.entries(object)))
    below.set(name, [...(below.get(name) ?? []), value]);
  const names = [...below].filter(
    ([name, inner]) =>
      /^[a-z_][\w-]{0,19}$/i.test(name) && !isNamed('image', name) && inner.length * 10 >= objects.length,
  );
  const isDeep = at.split('/').length > depthMax;
  return [
    ...(isPlain ? [at] : []),
    ...(isDeep ? [] : names.flatMap(([name, inner]) => listShownPointers(inner, `${at}/${name}`))),
  ];
}

/** Leaves out values that the sample has cut. */
export function parseJson(text: string): unknown[] {
  try {
    return [JSON.parse(text)];
  } catch {
    return [];
  }
}

/** Clients see the listed members of JSON; other documents, such as hstore, they see as they are. */
export function describeDocuments(table: Table, columns: readonly Column[]): Points {
  const isJson = ({ type }: Column): boolean => /json/.test(type);
  const documents = columns.filter((column) => isDocument(column) && (!column.isArray || isJson(column)));
  const namesWhere = (isIt: boolean): string[] =>
    documents.flatMap((column) => (isJson(column) === isIt ? [column.name] : []));
  const ofJson = 'Of free JSON the members of a sample are shown: remove those that clients must not see.';
  const ofOthers = 'Clients see all of these documents, whatever the app writes.';
  return [askAbout(ofJson, table, namesWhere(true)), askAbout(ofOthers, table, namesWhere(false))];
}
