import { isNamed } from '../words.js';
import { alias, isMoments, isTextual } from './columns.js';
import { type Column, columnOf, type SharedPoint, type Subject, type Table, type Tenant } from './schema.js';
import { aliasOf, type Points, workspaceSql } from './sql.js';

// Rows that count as deleted although they stay in the table.

interface Mark {
  readonly column: Column;
  readonly kept: (sql: string) => string;
  /** As PostgreSQL prints it for a partial index. */
  readonly printed: readonly string[];
}

const isTime = ({ type }: Column): boolean => /^(timestamp|date)/.test(type);
const isCount = ({ type }: Column): boolean => /^(bigint|integer|smallint|numeric)$/.test(type);
/** Words of a text that say no, and those that say yes. */
const no = ['', '0', 'f', 'false', 'n', 'no', 'nee'];
const yes = ['1', 't', 'true', 'y', 'yes', 'j', 'ja', 'd', 'x'];
const isFlag = (text: string): boolean => [...no, ...yes].includes(text.trim().toLowerCase());
/** Of a deleted row, and of a workspace or user that must not be served. */
const deletedWords = /^(soft_?)?(deleted|trashed|trash|verwijderd|gewist)$/i;
const barredWords = /^(deactivated|inactive|disabled|suspended|blocked|banned|revoked|closed|archived)$/i;

/** The first that holds, with conditions of indexes that hold for all kept rows; ? is the column. */
const rules: readonly (readonly [
  holds: (column: Column) => boolean,
  kept: (sql: string) => string,
  ...printed: string[],
])[] = [
  [({ type, notNull }) => type === 'boolean' && notNull, (sql) => `not ${sql}`, '(NOT ?)', '(? = false)'],
  [({ type }) => type === 'boolean', (sql) => `${sql} is not true`, '(? IS NOT TRUE)'],
  [(column) => isTime(column) && !column.notNull && !isPlanned(column), (sql) => `${sql} is null`, '(? IS NULL)'],
  // Kept rows can have a moment to come or one of long ago: "infinity", 9999-12-31, 1970-01-01.
  [isTime, (sql) => `coalesce(${sql} > now() or ${sql} < '1970-01-03', true)`],
  [(column) => isCount(column) && column.notNull, (sql) => `${sql} = 0`, '(? = 0)'],
  [isCount, (sql) => `coalesce(${sql}, 0) = 0`],
  [(column) => isTextual(column) && isMoments(column.values), (sql) => `coalesce(${sql}, '') = ''`],
  [
    (column) => isTextual(column) && column.values.length > 0 && column.values.every(isFlag),
    (sql) => `lower(btrim(coalesce(${sql}::text, ''))) in (${no.map((word) => `'${word}'`).join(', ')})`,
  ],
];

function markOf(column: Column): Mark[] {
  const [, kept, ...printed] = rules.find(([holds]) => holds(column)) ?? [];
  return kept ? [{ column, kept, printed: printed.map((text) => text.replace('?', () => column.quoted)) }] : [];
}

/** Whether the time of a deletion can be to come, or mean none. */
function isPlanned({ name, values }: Column): boolean {
  return (
    /delete_|deletion/i.test(name) || values.some((value) => /infinity|^\d{5}|^9\d{3}-|^(0\d{3}|1970)-|BC$/.test(value))
  );
}

function marksOf({ columns }: Table): Mark[] {
  return columns.flatMap((column): Mark[] => {
    if (isNamed('deleted', column.name)) return markOf(column);
    return isNamed('status', column.name) ? statusMarks(column, deletedWords) : [];
  });
}

/** Clients see it in a field all the same: other rows have other words. */
function statusMarks(column: Column, of: RegExp): Mark[] {
  const words = [...new Set(column.values.filter((value) => of.test(value)))].sort();
  if (words.length === 0) return [];
  const kept = (sql: string): string => words.map((word) => `${sql} is distinct from '${word}'`).join(' and ');
  return [{ column, kept, printed: [] }];
}

export function markColumns(table: Table): Column[] {
  return marksOf(table).flatMap(({ column }) => (isNamed('deleted', column.name) ? [column] : []));
}

export function keptConditions(table: Table, as = alias): string[] {
  return marksOf(table).map(({ column, kept }) => kept(`${as}.${column.quoted}`));
}

export function indexConditions(table: Table): string[] {
  return keptConditions(table).filter((condition) => !condition.includes('now()'));
}

export function printedConditions(table: Table): string[] {
  return marksOf(table).flatMap(({ printed }) => printed);
}

/** Of a workspace or user: deleted, or out of use. */
function goneMarks(table: Table): Mark[] {
  const barred = table.columns.flatMap((column): Mark[] => {
    if (isNamed('status', column.name)) return statusMarks(column, barredWords);
    if (!isNamed('barred', column.name) || !(column.type === 'boolean' || isTime(column))) return [];
    if (!/^(is_?)?(active|actief|enabled)/i.test(column.name)) return markOf(column);
    return column.type === 'boolean' ? [{ column, kept: (sql) => `${sql} is not false`, printed: [] }] : [];
  });
  return [...marksOf(table), ...barred];
}

export function presentConditions(table: Table, as = alias): string[] {
  return goneMarks(table).map(({ column, kept }) => kept(`${as}.${column.quoted}`));
}

export function gonePoint(rows: string, table: Table): string | false {
  const names = [...new Set(goneMarks(table).map(({ column }) => column.name))];
  return names.length > 0 && `${rows} count as gone by ${names.join(', ')}: their tokens are refused.`;
}

/** Its deletion takes the row with it. */
export interface Owner {
  readonly table: Table;
  readonly columns: readonly Column[];
  readonly references: readonly Column[];
}

/** With ON DELETE CASCADE by a required reference, except those on the way to the workspace. */
export function ownersOf({ table, steps }: Pick<Subject, 'table' | 'steps'>, tables: readonly Table[]): Owner[] {
  return table.foreignKeys.flatMap(({ table: name, columns, references, cascades }): Owner[] => {
    const to = tables.find((each) => each.name === name);
    const own = columns.flatMap((column) => columnOf(table, column) ?? []);
    if (!cascades || to === undefined || to === table || keptConditions(to).length === 0) return [];
    if (!own.every(({ notNull }) => notNull) || steps.some((step) => own.includes(step.from))) return [];
    return [{ table: to, columns: own, references: references.flatMap((column) => columnOf(to, column) ?? []) }];
  });
}

/** A subquery, not a join: PostgreSQL then reads the list in its order. The wall compares the workspaces. */
function ownerCondition({ table, columns, references }: Owner, subject: Subject, tenant: Column | undefined): string {
  const on = columns.map(({ quoted }, i) => `o.${references[i]?.quoted} = ${alias}.${quoted}`);
  if (tenant && !references.includes(tenant)) on.push(`o.${tenant.quoted} = ${workspaceSql(subject)}`);
  return `(select ${keptConditions(table, 'o').join(' and ')} from ${table.quoted} o where ${on.join(' and ')})`;
}

/** Neither the rows, nor records on the way to their workspace or that they go with, are deleted. */
export function viewConditions(subject: Subject, owners: readonly Owner[], { columnIn }: Tenant): string[] {
  return [
    ...keptConditions(subject.table),
    ...subject.steps.flatMap((step, i) => keptConditions(step.table, aliasOf(i + 1))),
    ...owners.map((owner) => ownerCondition(owner, subject, columnIn(owner.table))),
  ];
}

export function deletedPoints(rows: string, table: Table): Points {
  const marks = marksOf(table);
  const listed = (columns: readonly Column[]): string => columns.map(({ name }) => name).join(', ');
  const names = listed(marks.map(({ column }) => column));
  const others = table.columns.filter((column) => !marks.some((mark) => mark.column === column));
  const unknown = others.filter(({ name }) => isNamed('deleted', name));
  const aside = others.filter((column) => isNamed('setAside', column.name) && column.type !== 'enum' && !column.refers);
  return [
    names !== '' && {
      text: `${rows} with ${names} count as deleted and are not shown.`,
      all: 'Rows with these marks count as deleted and are not shown.',
      of: `${table.name} (${names})`,
    },
    ...unknown.map(({ name, type }) => ({
      text: `${rows} are shown whatever ${name} (${type}) says: if it marks those that are deleted, leave them out by a condition.`,
      all: 'Rows are shown whatever these marks say: if they mark rows that are deleted, leave them out by a condition.',
      of: `${table.name} (${name})`,
    })),
    aside.length > 0 && {
      text: `${rows} are shown whatever ${listed(aside)} says: leave out by a condition those that clients must not see.`,
      all: 'Rows are shown whatever these columns say: leave out by a condition those that clients must not see.',
      of: `${table.name} (${listed(aside)})`,
    },
  ];
}

export function ownersPoint({ table, steps }: Subject, owners: readonly Owner[]): SharedPoint | false {
  const above = [...steps.map((step) => step.table), ...owners.map((owner) => owner.table)];
  const marked = above.filter((each) => keptConditions(each).length > 0);
  return (
    marked.length > 0 && {
      text: `rows whose record in ${marked.map(({ quoted }) => quoted).join(', ')} counts as deleted are not shown.`,
      all: 'Rows whose record in these tables counts as deleted are not shown.',
      of: `${table.name} (${marked.map(({ name }) => name).join(', ')})`,
    }
  );
}
