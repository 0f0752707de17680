import { getOwn } from '../../../base/members.js';
import { isNamed, type Purpose, toSnakeCase } from '../../../base/words.js';
import { areAddresses, findSecret, isPersonalDocument } from '../../../doctor/thorough/contents.js';
import { type Form, guessForm, isSealedDocument } from '../../../doctor/thorough/forms.js';
import type { FieldType } from '../../../resource/definition/field-types.js';
import { holdsImage } from '../../../resource/projection/images.js';
import { toCamelCase, toSingular } from '../names.js';
import { type Column, type Point, sharePoint, type Table, type TypeMember } from '../schema.js';

export interface ShownColumn {
  readonly type: FieldType;
  /** The alias of the table stands before the column. */
  readonly select: string;
}

export const alias = 't';
/** Sync needs the transaction that wrote the row. */
export const rowXid = 'row_xid';

/** A column of another type is shown as text, as PostgreSQL prints it. Bytes in an index are known of types with one length. */
const columnTypes: Readonly<Record<string, readonly [field: FieldType, bytes?: number]>> = {
  uuid: ['uuid', 16],
  bigint: ['integer', 8],
  integer: ['integer', 4],
  smallint: ['integer', 2],
  text: ['text'],
  'character varying': ['text'],
  character: ['text'],
  enum: ['enum', 4],
  numeric: ['number'],
  real: ['number', 4],
  'double precision': ['number', 8],
  boolean: ['boolean', 1],
  date: ['date', 4],
  'timestamp with time zone': ['timestamp', 8],
  json: ['json'],
  jsonb: ['json'],
};

export const getFieldType = (type: string): FieldType | undefined => getOwn(columnTypes, type)?.[0];
export const countBytes = (type: string): number | undefined =>
  getOwn(columnTypes, type)?.[1] ?? (type === 'timestamp without time zone' ? 8 : undefined);

export function showColumn({ quoted, type, isArray, enumOfDomain, composedOf }: Column): ShownColumn {
  if (composedOf) return { type: 'text', select: composeKeyText(composedOf) };
  const column = `${alias}.${quoted}`;
  // A filter asks PostgreSQL for the labels of the type, which it does not give for a domain.
  if (enumOfDomain !== null) return { type: 'enum', select: `${column}::${enumOfDomain}` };
  if (isArray) return { type: 'json', select: `to_json(${column})` };
  const known = getFieldType(type);
  if (known !== undefined) return { type: known, select: column };
  if (type === 'inet') return { type: 'text', select: `abbrev(${column})` }; // as PostgreSQL prints it; a cast adds /32
  if (type !== 'timestamp without time zone') return { type: 'text', select: `${column}::text` };
  return { type: 'timestamp', select: `${column} at time zone 'UTC'` };
}

/** A number becomes text in JSON, so that no client loses digits. */
export function showId(column: Column): ShownColumn {
  const { type, select } = showColumn(column);
  if (type === 'integer') return { type: 'bigint', select: column.type === 'smallint' ? `${select}::integer` : select };
  if (type === 'uuid' || type === 'text') return { type, select };
  return { type: 'text', select: describeTextInKey(column) ?? `${alias}.${column.quoted}::text` };
}

const printedAsTexts = /^(enum|interval|time with|inet|cidr|macaddr|"char"|name$)|(^|\.)citext$/;

type Inside = Readonly<Record<string, unknown>>;

/** An id is a text there, too; unknown types are JSON as PostgreSQL makes it. */
export function showInsideJson(column: TypeMember & Partial<Column>, isId: boolean): Inside {
  const { type, isArray, values, members } = column;
  if (isArray) {
    const element = showInsideJson({ ...column, type: type.replace(/\[\]$/, ''), isArray: false }, false);
    if ('show' in element) return element; // it goes through lists
    // Of one type whatever its dimensions are: the rows tell how many.
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

/** Shows the members of a sample; without one only texts, numbers and lists of them. */
function describeFreeJson(values: readonly string[]): Inside {
  const show = listMembers(values);
  return { type: 'json', show: show.length > 0 ? show : [''] };
}

function wrapInList(item: Inside, lists: number): Inside {
  return { type: 'json', items: lists > 1 ? { ...wrapInList(item, lists - 1), nullable: true } : item };
}

/** Returns the pointers into a sample of free JSON, in each of its forms; empty if the sample shows none. */
function listMembers(values: readonly string[]): string[] {
  return listShownPointers(values.flatMap(parseJson)).sort().slice(0, membersMax);
}

const membersMax = 500; // resource.schema.json allows no more of them in `show`
const depthMax = 8; // a document that repeats itself inside would list its members without end

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

/** Shows documents of texts, such as hstore, as they are, and of JSON the listed members. */
export function describeDocuments(table: Table, columns: readonly Column[]): Point[] {
  const free = columns.filter((column) => isDocument(column) && (!column.isArray || /json/.test(column.type)));
  const isListed = ({ type }: Column): boolean => /json/.test(type);
  const listed = 'Of free JSON the members of a sample are shown: remove those that clients must not see.';
  const all = 'Clients see all of these documents, whatever the app writes.';
  return [
    { all: listed, of: free.filter(isListed) },
    { all, of: free.filter((column) => !isListed(column)) },
  ].flatMap(({ all, of }) => {
    const names = of.map(({ name }) => name).join(', ');
    return of.length === 0 ? [] : [sharePoint(all, table, names)];
  });
}

/** Puts texts of free form last; if there are several, a mark stands before each hyphen inside them. */
function composeKeyText(columns: readonly Column[]): string {
  const [only, ...others] = columns;
  // The id is the workspace itself here: PostgreSQL would order no index by a column that it knows to be the same.
  if (only?.type === 'text' && others.length === 0) return `${describeTextInKey(only)} || ''`;
  const free = columns.filter(isFreeText);
  const texts = [...columns.filter((column) => !isFreeText(column)), ...free].map((column) => {
    const text = describeTextInKey(column) as string;
    return free.length > 1 && isFreeText(column) ? `replace(replace(${text}, '~', '~~'), '-', '~-')` : text;
  });
  return texts.join(` || '-' || `);
}

function isFreeText(column: Column): boolean {
  return isTextual(column) || getTypeName(column) === 'citext';
}

/** Writes immutable functions alone. Undefined: no index can have the type, such as an enumerated one. */
export function describeTextInKey(column: Column): string | undefined {
  const { type, isArray, quoted } = column;
  const value = `${alias}.${quoted}`;
  if (isArray) return undefined;
  if (type === 'text') return value;
  if (isFreeText(column) || isInteger(column) || ['uuid', 'numeric', 'boolean'].includes(type)) return `${value}::text`;
  if (type === 'timestamp with time zone') return `extract(epoch from ${value} at time zone 'UTC')::text`;
  return type === 'date' || type === 'timestamp without time zone' ? `extract(epoch from ${value})::text` : undefined;
}

export function isTextual({ type }: Column): boolean {
  return getFieldType(type) === 'text';
}

export function isInteger({ type }: Column): boolean {
  return getFieldType(type) === 'integer';
}

function isNumber(column: Column): boolean {
  return isInteger(column) || /^(numeric|real|double precision|money)$/.test(column.type);
}

export function isDocument(column: Column): boolean {
  return column.isArray || ['json', 'jsonb', 'hstore', 'xml'].includes(getTypeName(column));
}

/** Recognizes documents by the type, or by texts that begin as JSON, YAML, XML or a printed hstore do. */
export function holdsDocuments(column: Column): boolean {
  const isText =
    isTextual(column) &&
    column.values.some((text) => /^\s*(?:\{\s*["}]|\[\s*[[{"\]]|---\s|<\?xml|"[^"]*"=>)/.test(text));
  return isText || isDocument(column);
}

/** Drops the schema, because the type of an extension can be in any. */
function getTypeName({ type }: Column): string {
  return type.replace(/^.*\./, '').replace(/\[\]$/, '');
}

/** The first reason that holds says why no field shows a column. */
type Reasons = Readonly<Record<string, (column: Column, form: Form['kind']) => boolean>>;

const reasonsByName: Reasons = {
  'search index of other columns, by the type': (column) => getTypeName(column) === 'tsvector',
  'embedding of other columns, by the type': (column) => /^(half|sparse)?vec(tor)?$/.test(getTypeName(column)),
  'sealed values, by the name': (column) =>
    (isTextual(column) || column.type === 'bytea') &&
    /(^|_)(encrypted|cipher|ciphertext|cipher_text|sealed|enc)(_|$)/.test(toSnakeCase(column.name)) &&
    guessColumnForm(column).kind === 'plain',
  'unknown bytes, by the type': (column) => column.isArray && getTypeName(column) === 'bytea',
  // A count of tokens is no secret, but a PIN can be stored as a number.
  'secrets, by the name': (column) =>
    holdsValue(column) &&
    speaksOf('secret', column) &&
    (!isNumber(column) || isNamed('numericSecret', column.name)) &&
    !isReference(column),
  'secrets, by the names of table and column': (column) => isSecretInTable(column),
  // A telephone number may be stored as a number; a count of mails is none, and a day of birth is a date.
  'personal data, by the name': (column) =>
    (column.type !== 'boolean' && isNamed('birth', column.name)) ||
    (holdsValue(column) && speaksOf('contact', column) && !(isInteger(column) && /mail/i.test(column.name))),
  'images and signatures, by the name': (column) => holdsValue(column) && isNamed('image', column.name),
};

/** The name must mean the value itself, not its type or lifetime. */
function speaksOf(purpose: Purpose, { name }: Column): boolean {
  return isNamed(purpose, name) && !isNamed('aboutSecret', name);
}

/** Is true if the column names a record with a secret, not the secret; the id of a session can be one. */
function isReference({ name, refers }: Column): boolean {
  return refers && /_id$/.test(toSnakeCase(name)) && !/session_id$/.test(toSnakeCase(name));
}

/** Is true for the code in a table of passcodes, or the textual id in a table of sessions. */
function isSecretInTable(column: Column): boolean {
  const name = `${toSingular(toSnakeCase(column.table))}_${toSnakeCase(column.name)}`;
  if (!isNamed('secretInTable', name)) return false;
  return name.endsWith('_id')
    ? isTextual(column)
    : holdsValue(column) && (!isNumber(column) || isNamed('numericSecret', name));
}

/** The operator decides which codec opens them, and what clients may see. */
export const sealed =
  'sealed values, by the values: name their codec in the definition, as docs/adopt/adapting.md shows';

const reasonsByValues: Reasons = {
  'states of other records, by the name': (column) => isNamed('state', column.name) && holdsDocuments(column),
  // The sample can be of an app that has not used the column yet.
  'no value in the sample, and a name of what can hold secrets': (column) =>
    column.values.length === 0 && (isDocument(column) || isTextual(column)) && isNamed('secretDocument', column.name),
  'free JSON of which the sample has no member to list': (column) =>
    /^jsonb?$/.test(getTypeName(column)) && listMembers(column.values).length === 0,
  'keys, tokens or cookies, by the values': ({ values }) => values.some((value) => findSecret(value) !== undefined),
  'e-mail addresses, by the values': ({ values }) => areAddresses(values),
  'documents with personal data, by the names of their members': ({ values }) => values.some(isPersonalDocument),
  [sealed]: ({ values }, form) =>
    (form === 'sealed' && !isPreset(values)) || (values.length > 0 && values.every(isSealedDocument)),
};

/** Judges by type or name; undefined if a field shows the column. */
export function findReasonToLeaveOut(column: Column): string | undefined {
  if (column.isWanted) return undefined;
  return Object.entries(reasonsByName).find(([, holds]) => holds(column, 'plain'))?.[0];
}

/** Judges by name, type and values; undefined if a field shows the column. */
export function findReasonNotToShow(column: Column, documents: readonly Column[]): string | undefined {
  if (column.isWanted) return undefined;
  const { kind } = guessColumnForm(column);
  return (
    findReasonToLeaveOut(column) ??
    (documents.includes(column) ? 'documents of an audit log, which hold values of any field' : undefined) ??
    Object.entries(reasonsByValues).find(([, holds]) => holds(column, kind))?.[0] ??
    (['plain', 'base64', 'sealed'].includes(kind) ? undefined : `${kind}, by the values`)
  );
}

/** A row with such a name holds a secret beside it, as "smtp.password" does. */
function isSecretSetting(name: string): boolean {
  return /^[\w.:/-]+$/.test(name) && isNamed('secret', name) && !isNamed('aboutSecret', name);
}

export interface Judged {
  readonly shown: readonly Column[];
  readonly leftOut: readonly (readonly [reason: string, name: string])[];
}

/** Judges each column alone, then those that others determine: generated ones, such as a search text, and ids of keys. */
export function judgeColumns(columns: readonly Column[], reasonOf: (column: Column) => string | undefined): Judged {
  const ownReasons = columns.map(reasonOf);
  const areSettings = columns.some(({ name, values }) => isNamed('settingName', name) && values.some(isSecretSetting));
  const left = columns.flatMap(({ name }, i) => (ownReasons[i] === undefined ? [] : [name]));
  const reasons = columns.map((column, i) => {
    if (ownReasons[i] !== undefined || column.isWanted) return ownReasons[i];
    const isMadeOfLeft = holdsValue(column) && !isInteger(column) && column.madeOf.some((name) => left.includes(name));
    if (isMadeOfLeft) return 'generated from columns that are left out';
    if (areSettings && isNamed('settingValue', column.name)) return 'values of settings, some of which are secrets';
    return ownReasons.includes(sealed) && isNamed('keyId', column.name) ? 'ids of keys, by the name' : undefined;
  });
  return {
    shown: columns.filter((_, i) => reasons[i] === undefined),
    leftOut: columns.flatMap(({ name }, i) => (reasons[i] === undefined ? [] : [[reasons[i], name] as const])),
  };
}

export function describeLeftOut(table: Table, leftOut: Judged['leftOut']): Point[] {
  return [...new Set(leftOut.map(([reason]) => reason))].map((reason) => {
    const names = leftOut.filter(([each]) => each === reason).map(([, name]) => name);
    const text = `Columns are left out (${reason}). Where clients may see them, add them to view and definition.`;
    return sharePoint(text, table, names.join(', '));
  });
}

/** Only text and bytea columns have a form; others are plain. */
export function guessColumnForm(column: Column): Form {
  if (!isTextual(column) && column.type !== 'bytea') return { kind: 'plain', isLong: false };
  return guessForm(column.values, column.type === 'bytea');
}

/** The codec whose values are known by how they begin. */
export const preset = 'aes-256-gcm';

function isPreset(values: readonly string[]): boolean {
  return values.filter((value) => /^enc:v[12]:[^:]+:/.test(value)).length > values.length / 2;
}

/** The column is about a person, or about a customer, who can be one. */
export function isPersonal({ name, type, table = '' }: TypeMember & Partial<Column>): boolean {
  if (type === 'boolean') return false;
  const isContact = isNamed('contact', name) && !isNamed('aboutSecret', name);
  const isOfPerson = isContact || isNamed('personal', name) || isNamed('birth', name);
  return isOfPerson || (isNamed('label', name) && isNamed('personTable', table));
}

/** The app sets a text of few words, such as a state or a code. */
export function isLogText(column: Column): boolean {
  return isTextual(column) && isNamed('logged', column.name) && !isPersonal(column);
}

function holdsValue({ type }: Column): boolean {
  return type !== 'boolean' && type !== 'enum' && !/^(timestamp|date|time|interval)/.test(type);
}

/** The texts are RFC 3339 in UTC. */
export function isMoments(values: readonly string[]): boolean {
  const moment = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,6})?Z$/;
  return values.length > 0 && values.every((value) => moment.test(value));
}

/** The expression is immutable, which a cast of the whole text is not, so that an index can hold it. */
export function composeMoment(text: string): string {
  const part = (from: number, length: number): string => `substr(${text}, ${from}, ${length})::int`;
  return (
    `make_timestamp(${part(1, 4)}, ${part(6, 2)}, ${part(9, 2)}, ${part(12, 2)}, ${part(15, 2)},\n      ` +
    `rtrim(substr(${text}, 18), 'Z')::float8) at time zone 'UTC'`
  );
}
