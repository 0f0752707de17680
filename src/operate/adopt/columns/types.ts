import { getOwn } from '../../../base/members.js';
import type { FieldType } from '../../../resource/definition/field-types.js';
import type { Column } from '../schema.js';
import { alias } from '../sql.js';

// The type of a column in SQL and in the API. Example: a bigint is an integer, but as an id a text; a uuid[] is JSON, `to_json(t.ids)`.

export interface ShownColumn {
  readonly type: FieldType;
  /** The alias of the table stands before the column. */
  readonly select: string;
}

/** The type of the field, and the bytes in an index where all values have one length. Other types are shown as texts. */
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

/** An id that is a number becomes a text in JSON, so that no client loses digits. */
export function showId(column: Column): ShownColumn {
  const { type, select } = showColumn(column);
  if (type === 'integer') return { type: 'bigint', select: column.type === 'smallint' ? `${select}::integer` : select };
  if (type === 'uuid' || type === 'text') return { type, select };
  return { type: 'text', select: describeTextInKey(column) ?? `${alias}.${column.quoted}::text` };
}

/** Joins the columns with hyphens: texts of free form come last, and if there are several, their hyphens are marked by a tilde. */
function composeKeyText(columns: readonly Column[]): string {
  const [only, ...others] = columns;
  // The id is the workspace itself: PostgreSQL takes no index for the order of a column that has one value, so it becomes an expression.
  if (only?.type === 'text' && others.length === 0) return `${describeTextInKey(only)} || ''`;
  const free = columns.filter(isFreeText);
  const texts = [...columns.filter((column) => !isFreeText(column)), ...free].map((column) => {
    const text = describeTextInKey(column) as string;
    return free.length > 1 && isFreeText(column) ? `replace(replace(${text}, '~', '~~'), '-', '~-')` : text;
  });
  return texts.join(` || '-' || `);
}

/** Composes the text of a key by immutable functions, which an index needs; undefined for types without them, such as an enumerated one. */
export function describeTextInKey(column: Column): string | undefined {
  const { type, isArray, quoted } = column;
  const value = `${alias}.${quoted}`;
  if (isArray) return undefined;
  if (type === 'text') return value;
  if (isFreeText(column) || isInteger(column) || ['uuid', 'numeric', 'boolean'].includes(type)) return `${value}::text`;
  if (type === 'timestamp with time zone') return `extract(epoch from ${value} at time zone 'UTC')::text`;
  return type === 'date' || type === 'timestamp without time zone' ? `extract(epoch from ${value})::text` : undefined;
}

/** Parses the text part by part: this is immutable, as an index needs, and a cast of the whole text is not. */
export function composeMoment(text: string): string {
  const takeNumber = (from: number, length: number): string => `substr(${text}, ${from}, ${length})::int`;
  return (
    `make_timestamp(${takeNumber(1, 4)}, ${takeNumber(6, 2)}, ${takeNumber(9, 2)}, ${takeNumber(12, 2)}, ${takeNumber(15, 2)},\n      ` +
    `rtrim(substr(${text}, 18), 'Z')::float8) at time zone 'UTC'`
  );
}

/** The texts are RFC 3339 in UTC. */
export function isMoments(values: readonly string[]): boolean {
  const moment = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,6})?Z$/;
  return values.length > 0 && values.every((value) => moment.test(value));
}

export const isTextual = ({ type }: Column): boolean => getFieldType(type) === 'text';
export const isInteger = ({ type }: Column): boolean => getFieldType(type) === 'integer';
export const isNumber = (column: Column): boolean =>
  isInteger(column) || /^(numeric|real|double precision|money)$/.test(column.type);
const isFreeText = (column: Column): boolean => isTextual(column) || getTypeName(column) === 'citext';

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

export function holdsValue({ type }: Column): boolean {
  return type !== 'boolean' && type !== 'enum' && !/^(timestamp|date|time|interval)/.test(type);
}

/** Drops the schema, because the type of an extension can be in any. */
export function getTypeName({ type }: Column): string {
  return type.replace(/^.*\./, '').replace(/\[\]$/, '');
}

/** A key is a column of the table, or an expression of a view over it. */
export interface IndexKey {
  readonly of: Column;
  readonly select: string;
}

export function makePlainKey(of: Column): IndexKey {
  return { of, select: `${alias}.${of.quoted}` };
}

export function isPlain({ of, select }: IndexKey): boolean {
  return select === makePlainKey(of).select;
}
