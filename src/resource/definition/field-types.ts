import type { FieldErrorCode } from '../../base/errors.js';
import { isImageJson } from '../projection/images.js';
import * as values from '../projection/value-appenders.js';

export type JsonSchema = { readonly [keyword: string]: unknown };

export interface FieldTypeRow {
  /** Names of the column types, as PostgreSQL prints them (format_type). */
  readonly columnTypes: readonly string[];
  readonly schema: JsonSchema;
  /** Values such as infinity are null in the API. */
  readonly hasValuesWithoutJson?: true;
  /** Form of the value in the body of a write; absent: not writable. */
  readonly writeSchema?: JsonSchema;
  /** Pattern and format in words. */
  readonly writeForm?: string;
  /** Value of the app's audit log; absent: the text. Exact, because equal values mean an unchanged field. */
  readonly auditValue?: (text: string) => unknown;
  readonly example: unknown;
  /** Reads PostgreSQL's text form (ISO dates, UTC). */
  readonly append: values.ValueAppender;
  /** Reads to_json within a value; a value of another type becomes null. */
  readonly fromJson: values.ScalarAppender;
  /** Type to which comparisons cast; absent: the column's own. */
  readonly comparedAs?: string;
  /** Accepts the texts that PostgreSQL prints; only types with this test can order a list and stand in cursors. */
  readonly isPrinted?: (text: string) => boolean;
  /** Tests whether JSON of a change in the log is of the type; absent: the log never shows the value. */
  readonly isLogged?: (json: string) => boolean;
  /** Tests whether JSON in a JSON cell is of the type; absent: the field needs a column of its own. */
  readonly isMember?: (json: string) => boolean;
  /** Absent: the column cannot be filtered. */
  readonly query?: QueryForm;
}

export interface QueryForm {
  readonly schema: JsonSchema;
  readonly isValue: (text: string) => boolean;
  /** Code and form for a 400; absent: a value that cannot exist matches nothing, as unknown ids do. */
  readonly error?: { readonly code: FieldErrorCode; readonly form: string };
}

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** Accepts only PostgreSQL's own form, so that no record has a second address, such as -0. */
const isBigint = (text: string): boolean =>
  /^(0|-?[1-9]\d{0,18})$/.test(text) && BigInt.asIntN(64, BigInt(text)) === BigInt(text);
/** Keeps the text of a number that JSON lacks: too many digits, NaN, infinity. */
const parseExactNumber = (text: string): number | string => {
  const number = Number(text);
  return Number.isFinite(number) && normalizeDecimal(text) === normalizeDecimal(String(number)) ? number : text;
};
const isUuid = (text: string): boolean => uuid.test(text);
const hasNoNul = (text: string): boolean => !text.includes('\0'); // PostgreSQL's text holds no NUL
const isString = (json: string): boolean => json.startsWith('"');
const isLoggedText = (json: string): boolean => !/^[{[]/.test(json) && !isImageJson(json);
const isLoggedId = (json: string): boolean => /^(?:\d{1,19}|"\d{1,19}")$/.test(json);
const isLoggedNumber = (json: string): boolean => /^("?)-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?\1$/.test(json);
/** Accepts a date or a moment, as apps print them. */
const isLoggedTime = (json: string): boolean =>
  /^"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?: ?(?:Z|[+-]\d\d(?::?\d\d)?))?)?"$/.test(json);
const identifier: JsonSchema = { type: 'string', minLength: 1 };

/** The only form of moments in the API: RFC 3339 in UTC with milliseconds. */
export const timestampSchema: JsonSchema = {
  type: 'string',
  format: 'date-time',
  pattern: '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z$',
};

/** PostgreSQL has no year 0000. */
export const dateSchema: JsonSchema = {
  type: 'string',
  format: 'date',
  pattern: '^(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}$',
};

const dateForm = 'a calendar date, YYYY-MM-DD';

/** Table of the types, from which SQL, `check`, cursors, JSON Schema, examples and serializers derive. */
export const fieldTypes = {
  uuid: {
    columnTypes: ['uuid'],
    schema: identifier,
    writeSchema: { type: 'string', pattern: uuid.source },
    writeForm: 'a UUID in small letters',
    example: '5f0d7c1e-8a43-4c52-9b1d-3f6e2a9c7d10',
    isLogged: (json) => uuid.test(json.slice(1, -1).toLowerCase()),
    fromJson: values.appendJsonText,
    append: values.appendQuoted,
    isPrinted: isUuid,
    query: { schema: identifier, isValue: isUuid },
  },
  bigint: {
    columnTypes: ['bigint', 'integer'],
    schema: identifier,
    writeSchema: { type: 'string', pattern: '^(0|[1-9][0-9]{0,17})$' },
    writeForm: 'a whole number of at most 18 digits, as a string',
    example: '1042',
    isLogged: isLoggedId,
    fromJson: values.appendJsonText,
    append: values.appendQuoted,
    comparedAs: 'bigint',
    isPrinted: isBigint,
    query: { schema: identifier, isValue: isBigint },
  },
  text: {
    columnTypes: ['text', 'character varying', 'character'],
    schema: { type: 'string' },
    writeSchema: { type: 'string' },
    example: 'example',
    fromJson: values.appendJsonText,
    append: values.appendEscaped,
    isPrinted: hasNoNul,
    isMember: isString,
    query: { schema: identifier, isValue: hasNoNul },
  },
  enum: {
    columnTypes: ['enum', 'text'],
    schema: { type: 'string' },
    writeSchema: { type: 'string' },
    example: 'open',
    isLogged: isLoggedText,
    fromJson: values.appendJsonText,
    append: values.appendEscaped,
    query: { schema: identifier, isValue: hasNoNul },
  },
  integer: {
    columnTypes: ['smallint', 'integer', 'bigint'],
    schema: { type: 'integer', format: 'int64' },
    writeSchema: { type: 'integer', format: 'int64' },
    auditValue: parseExactNumber,
    isMember: (json) => /^-?\d+$/.test(json),
    example: 3,
    isLogged: isLoggedNumber,
    fromJson: values.appendJsonNumber,
    append: values.appendPlain,
    comparedAs: 'bigint',
    isPrinted: isBigint,
    query: {
      schema: { type: 'integer' },
      isValue: isBigint,
      error: { code: 'invalid_integer', form: 'a whole number' },
    },
  },
  number: {
    columnTypes: ['numeric', 'smallint', 'integer', 'bigint', 'real', 'double precision'],
    schema: { type: 'number' },
    hasValuesWithoutJson: true,
    writeSchema: { type: 'number' },
    auditValue: parseExactNumber,
    isMember: (json) => /^[-\d]/.test(json),
    example: 2.5,
    isLogged: isLoggedNumber,
    fromJson: values.appendJsonNumber,
    append: values.appendFinite,
  },
  boolean: {
    columnTypes: ['boolean'],
    schema: { type: 'boolean' },
    writeSchema: { type: 'boolean' },
    auditValue: (text) => text === 't',
    isMember: (json) => json === 'true' || json === 'false',
    example: true,
    isLogged: (json) => json === 'true' || json === 'false',
    fromJson: values.appendJsonBoolean,
    append: values.appendBoolean,
    query: {
      schema: { type: 'boolean' },
      isValue: (text) => text === 'true' || text === 'false',
      error: { code: 'invalid_boolean', form: 'true or false' },
    },
  },
  date: {
    columnTypes: ['date'],
    schema: dateSchema,
    hasValuesWithoutJson: true,
    writeSchema: dateSchema,
    writeForm: dateForm,
    example: '2026-03-14',
    isLogged: isLoggedTime,
    fromJson: values.appendJsonDate,
    append: values.appendCalendarDate,
    isPrinted: (text) => isPrinted(text, 'date'),
    isMember: (json) => isString(json) && isDate(json.slice(1, -1)),
    query: { schema: dateSchema, isValue: isDate, error: { code: 'invalid_date', form: dateForm } },
  },
  timestamp: {
    columnTypes: ['timestamp with time zone'],
    schema: timestampSchema,
    hasValuesWithoutJson: true,
    example: '2026-03-14T09:26:53.589Z',
    isLogged: isLoggedTime,
    fromJson: values.appendJsonInstant,
    append: values.appendInstant,
    isPrinted: (text) => isPrinted(text, 'timestamp'),
    query: {
      schema: { type: 'string', format: 'date-time' },
      isValue: isInstant,
      error: {
        code: 'invalid_instant',
        form: 'an RFC 3339 date-time with its offset, such as 2026-03-14T09:26:53Z (in a query string + is a space: write %2B)',
      },
    },
  },
  json: {
    columnTypes: ['json', 'jsonb'],
    schema: {},
    example: [],
    fromJson: values.appendJson,
    append: values.appendPlain,
    isMember: () => true,
  },
} as const satisfies Readonly<Record<string, FieldTypeRow>>;

export type FieldType = keyof typeof fieldTypes;

export function getType(type: FieldType): FieldTypeRow {
  return fieldTypes[type];
}

export const idTypes = ['uuid', 'bigint', 'text'] as const satisfies readonly FieldType[];
export type IdType = (typeof idTypes)[number];

/** Prints a value as PostgreSQL does; it must not be null. */
export const formatText = (value: unknown): string =>
  typeof value === 'boolean' ? (value ? 't' : 'f') : String(value);

/** Returns significant digits and exponent: 1.50, 15e-1 and 1.5 have the same text. */
export function normalizeDecimal(literal: string): string {
  const match = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(literal);
  if (match === null) return literal; // Infinity
  const [, sign, whole, fraction = '', exponent = '0'] = match as unknown as [string, string, string, string?, string?];
  const digits = (whole + fraction).replace(/^0+/, '');
  let end = digits.length; // not /0+$/, which is quadratic in a long run of zeros
  while (digits[end - 1] === '0') end--;
  const significant = digits.slice(0, end);
  if (significant === '') return '0';
  return `${sign}${significant}e${Number(exponent) - fraction.length + digits.length - significant.length}`;
}

/** Accepts YYYY-MM-DD in the proleptic Gregorian calendar, years 0001 to 9999. */
function isDate(text: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text) || text.startsWith('0000')) return false;
  const date = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text);
}

const printedForm = /^(\d{4}|[1-9]\d{4,6})(-\d{2}-\d{2})( (?:[01]\d|2[0-3])(?::[0-5]\d){2}(?:\.\d{1,6})?\+00)?( BC)?$/;
/** Bounds of values: PostgreSQL's last years, and its first year before Christ (8.5, Table 8.9). */
const years = { date: 5_874_897, timestamp: 294_276, beforeChrist: 4713 };

/** Accepts texts that PostgreSQL prints in UTC: 2026-03-29, 20226-01-05, 0044-03-15 BC, -infinity, 2026-03-29 01:59:59.123456+00. */
export function isPrinted(text: string, type: 'date' | 'timestamp'): boolean {
  if (text === 'infinity' || text === '-infinity') return true;
  const [, digits, day, time, era] = printedForm.exec(text) ?? [];
  const year = Number(digits);
  if (digits === undefined || (time !== undefined) !== (type === 'timestamp') || year === 0) return false;
  if (year > (era === undefined ? years[type] : years.beforeChrist)) return false;
  const fromZero = (era === undefined ? year : 1 - year) % 400; // the calendar repeats itself; 1 BC is year 0
  return isDate(`${2000 + (fromZero < 0 ? fromZero + 400 : fromZero)}${day}`);
}

/** Accepts RFC 3339 with its offset, without leap seconds; PostgreSQL rounds to microseconds. */
export function isInstant(text: string): boolean {
  const time = /^[Tt]([01]\d|2[0-3])(:[0-5]\d){2}(\.\d{1,9})?([Zz]|[+-](0\d|1[0-4]):[0-5]\d)$/;
  return isDate(text.slice(0, 10)) && time.test(text.slice(10));
}
