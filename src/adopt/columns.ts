import type { FieldType } from '../definition/field-types.js';
import type { Column, Table } from './catalog.js';
import { isNamed } from './names.js';

/** A column of a view, made of one of the table. */
export interface Shown {
  readonly type: FieldType;
  /** SQL of its value, with the alias of the table before the column. */
  readonly select: string;
  /** An open point about it. */
  readonly open?: string;
}

/** The alias of the table in every view. */
export const alias = 't';

/** The column of a view that shows which transaction wrote the row; sync needs it. */
export const rowXid = 'row_xid';

/** Types that the API has as they are. Others are shown as text, as PostgreSQL prints them. */
const types: Readonly<Record<string, FieldType>> = {
  uuid: 'uuid',
  bigint: 'integer',
  integer: 'integer',
  smallint: 'integer',
  text: 'text',
  'character varying': 'text',
  character: 'text',
  enum: 'enum',
  numeric: 'number',
  real: 'number',
  'double precision': 'number',
  boolean: 'boolean',
  date: 'date',
  'timestamp with time zone': 'timestamp',
  json: 'json',
  jsonb: 'json',
};

/** The column as a field shows it. */
export function shown({ name, quoted, type, isArray }: Column): Shown {
  const column = `${alias}.${quoted}`;
  if (isArray) return { type: 'json', select: `to_json(${column})` };
  const known = types[type];
  if (known !== undefined) return { type: known, select: column };
  if (type === 'inet') return { type: 'text', select: `abbrev(${column})` }; // as PostgreSQL prints it; a cast adds /32
  if (type !== 'timestamp without time zone') return { type: 'text', select: `${column}::text` };
  const open = `the times of ${name} have no zone and are taken as UTC: name the app's zone in the view if it is another one.`;
  return { type: 'timestamp', select: `${column} at time zone 'UTC'`, open };
}

/** The column as an identifier: of the record itself, or of another. A number becomes text in JSON, so that no client loses digits. */
export function shownId(column: Column): Shown {
  const { type, select } = shown(column);
  if (type !== 'integer')
    return type === 'uuid' || type === 'text'
      ? { type, select }
      : { type: 'text', select: `${alias}.${column.quoted}::text` };
  return { type: 'bigint', select: column.type === 'smallint' ? `${select}::integer` : select };
}

/** Whether the type is a character type, whose values can be encoded. */
export function isTextual({ type }: Column): boolean {
  return types[type] === 'text';
}

/** Whether the type is an integer type. */
export function isInteger({ type }: Column): boolean {
  return types[type] === 'integer';
}

/** The name of the type without its schema: that of an extension can be in any. */
export function typeName({ type }: Column): string {
  return type.replace(/^.*\./, '').replace(/\[\]$/, '');
}

/** Types whose values are made of those of other columns, also of columns that no field shows. */
const derived: Readonly<Record<string, string>> = {
  tsvector: 'search index of other columns, by the type',
  vector: 'embedding of other columns, by the type',
  halfvec: 'embedding of other columns, by the type',
  sparsevec: 'embedding of other columns, by the type',
};

/** Why no field shows the column, by its type or its name; undefined: one does. */
export function reasonToLeaveOut(column: Column): string | undefined {
  const { name } = column;
  const reason = derived[typeName(column)];
  if (reason !== undefined) return reason;
  if (column.isArray && typeName(column) === 'bytea') return 'unknown bytes, by the type';
  const isValue = holdsValue(column);
  if (isValue && isNamed('secret', name)) return 'secrets, by the name';
  const isCount = isInteger(column) && /mail/i.test(name); // a telephone number may be stored as a number
  const isBirth = column.type !== 'boolean' && isNamed('birth', name); // a date, too
  if (isBirth || (isValue && !isCount && isNamed('contact', name))) return 'personal data, by the name';
  if (isValue && isNamed('image', name)) return 'images and signatures, by the name';
  return undefined;
}

/** Why no field shows a generated column, where none shows one that it is made of, such as a search text with e-mail addresses. */
export function reasonByOrigin(column: Column, leftOut: readonly string[]): string | undefined {
  const isShown = !holdsValue(column) || isInteger(column) || !column.madeOf.some((name) => leftOut.includes(name));
  return isShown ? undefined : 'generated from columns that are left out';
}

function holdsValue({ type }: Column): boolean {
  return type !== 'boolean' && !/timestamp|date/.test(type);
}

/** Rows that count as deleted and stay in the table. */
export interface SoftDelete {
  readonly column: Column;
  /** SQL of the rows that are not deleted. */
  readonly condition: string;
  /** The same as PostgreSQL prints it for a partial index. */
  readonly printed: readonly string[];
}

/** The soft deletion of a table, by the name and type of a column; `as` is the alias of the table in the condition. */
export function softDeleteOf({ columns }: Table, as = alias): SoftDelete | undefined {
  const column = columns.find(
    ({ name, type }) => isNamed('deleted', name) && (type === 'boolean' || /timestamp|date/.test(type)),
  );
  if (column === undefined) return undefined;
  const { quoted, notNull, type } = column;
  const mark = `${as}.${quoted}`;
  if (type !== 'boolean') return { column, condition: `${mark} is null`, printed: [`(${quoted} IS NULL)`] };
  if (notNull) return { column, condition: `not ${mark}`, printed: [`(NOT ${quoted})`, `(${quoted} = false)`] };
  return { column, condition: `${mark} is not true`, printed: [`(${quoted} IS NOT TRUE)`] };
}

/** The open point of rows that count as deleted, and of those that may: of a column of another type nothing tells which value says so. */
export function deletedPoints(rows: string, table: Table): string[] {
  const known = softDeleteOf(table)?.column;
  if (known) return [`${rows} with ${known.name} count as deleted and are not shown.`];
  return table.columns
    .filter(({ name }) => isNamed('deleted', name))
    .map(
      ({ name, type }) =>
        `${rows} are shown whatever ${name} (${type}) says: if it marks those that are deleted, leave them out by a condition.`,
    );
}

const moment = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,6})?Z$/;

/** Whether all values are times in UTC (RFC 3339) that are kept as texts. */
export function isMoments(values: readonly string[]): boolean {
  return values.length > 0 && values.every((value) => moment.test(value));
}

/** SQL of the time in a text: immutable, as the cast of the whole text is not, so that an index can hold it. */
export function momentOf(text: string): string {
  const part = (from: number, length: number): string => `substr(${text}, ${from}, ${length})::int`;
  return (
    `make_timestamp(${part(1, 4)}, ${part(6, 2)}, ${part(9, 2)}, ${part(12, 2)}, ${part(15, 2)},\n      ` +
    `rtrim(substr(${text}, 18), 'Z')::float8) at time zone 'UTC'`
  );
}
