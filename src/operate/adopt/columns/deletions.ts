import { isNamed } from '../../../base/words.js';
import { askAbout, askOnce, type Column, sumRows, type Table, type ValueCount } from '../schema.js';
import { alias, type Points } from '../sql.js';
import { isDocument, isMoments, isTextual } from './types.js';

// Rows that count as deleted although they stay in the table: by a name, a label of a type or CHECK, or a value. Example: `deleted_at`
// hides rows where it is set (`t.deleted_at is null` is kept), and `status` with the value "deleted" rows with that word. `archived` hides
// nothing: a draft speaks of it and counts its values.

interface KeptRule {
  readonly column: Column;
  readonly kept: (sql: string) => string;
  /** PostgreSQL prints the condition of a partial index in these forms. */
  readonly printed: readonly string[];
}

const isTime = ({ type }: Column): boolean => /^(timestamp|date)/.test(type);
const isNumberColumn = ({ type }: Column): boolean => /^(bigint|integer|smallint|numeric)$/.test(type);
/** An app that stores flags as texts says no and yes with these words. */
const noWords = ['', '0', 'f', 'false', 'n', 'no', 'nee'];
const yesWords = ['1', 't', 'true', 'y', 'yes', 'j', 'ja', 'd', 'x'];
const isFlag = (text: string): boolean => [...noWords, ...yesWords].includes(text.trim().toLowerCase());
/** These states say that a row is deleted; the next ones, that a workspace or user must not be served. */
const deletedWords = /^(is_?|soft[_ -]?)?(deleted|del|trashed|trash|erased|purged|tombstoned?|verwijderd|gewist)$/i;
const barredWords = /^(deactivated|inactive|disabled|suspended|blocked|banned|revoked|closed|archived)$/i;

/** The first rule whose test holds for the column gives the condition of kept rows, and how PostgreSQL prints it; ? is the column. */
const rules: readonly (readonly [
  holds: (column: Column) => boolean,
  kept: (sql: string) => string,
  ...printed: string[],
])[] = [
  [({ type, notNull }) => type === 'boolean' && notNull, (sql) => `not ${sql}`, '(NOT ?)', '(? = false)'],
  [({ type }) => type === 'boolean', (sql) => `${sql} is not true`, '(? IS NOT TRUE)'],
  [(column) => isTime(column) && !column.notNull && !isPlanned(column), (sql) => `${sql} is null`, '(? IS NULL)'],
  // Some apps write a moment that means "not deleted": infinity, 9999-12-31 or 1970-01-01.
  [isTime, (sql) => `coalesce(${sql} > now() or ${sql} < '1970-01-03', true)`],
  [(column) => isNumberColumn(column) && column.notNull, (sql) => `${sql} = 0`, '(? = 0)'],
  [isNumberColumn, (sql) => `coalesce(${sql}, 0) = 0`],
  [(column) => isTextual(column) && isMoments(column.values), (sql) => `coalesce(${sql}, '') = ''`],
  [
    (column) => isTextual(column) && listWords(column).length > 0 && listWords(column).every(isFlag),
    (sql) => `lower(btrim(coalesce(${sql}::text, ''))) in (${noWords.map((word) => `'${word}'`).join(', ')})`,
  ],
];

/** A label counts although no row has it today. */
function listWords({ values, labels, counts }: Column): string[] {
  return [...new Set([...labels, ...values, ...counts.flatMap(({ value }) => value ?? [])])];
}

function findKeptRule(column: Column): KeptRule[] {
  const [, kept, ...printed] = rules.find(([holds]) => holds(column)) ?? [];
  return kept ? [{ column, kept, printed: printed.map((text) => text.replace('?', () => column.quoted)) }] : [];
}

/** Is true for the time of a deletion that is to come, or of none. */
function isPlanned({ name, values }: Column): boolean {
  const meansNone = /infinity|^\d{5}|^9\d{3}-|^(0\d{3}|1970)-|BC$/;
  return /delete_|deletion/i.test(name) || values.some((value) => meansNone.test(value));
}

export function listKeptRules({ columns }: Table): KeptRule[] {
  return columns.flatMap((column): KeptRule[] => {
    if (isNamed('deleted', column.name)) return findKeptRule(column);
    return isState(column) ? listStateRules(column, getDeletedWords(column)) : [];
  });
}

/** In a column that has no other states than there and gone, "D" means deleted. */
export function getDeletedWords({ name }: Column): RegExp {
  return isNamed('rowState', name) ? new RegExp(`${deletedWords.source}|^d$`, 'i') : deletedWords;
}

export function isState(column: Column): boolean {
  return isNamed('states', column.name) && (isTextual(column) || (column.type === 'enum' && !column.isArray));
}

/** Clients still see the state as a field, because other rows have other words. */
function listStateRules(column: Column, of: RegExp): KeptRule[] {
  const words = listWords(column)
    .filter((word) => of.test(word))
    .sort();
  const kept = (sql: string): string => words.map((word) => `${sql} is distinct from '${word}'`).join(' and ');
  return words.length === 0 ? [] : [{ column, kept, printed: [] }];
}

export function getDeletionColumns(table: Table): Column[] {
  return listKeptRules(table).flatMap(({ column }) => (isNamed('deleted', column.name) ? [column] : []));
}

export function listKeptConditions(table: Table, as = alias): string[] {
  return listKeptRules(table).map(({ column, kept }) => kept(`${as}.${column.quoted}`));
}

export function listIndexConditions(table: Table): string[] {
  return listKeptConditions(table).filter((condition) => !condition.includes('now()'));
}

export function listPrintedConditions(table: Table): string[] {
  return listKeptRules(table).flatMap(({ printed }) => printed);
}

/** Lists the rules by which a workspace or user is deleted, or out of use. */
function listPresentRules(table: Table): KeptRule[] {
  const barred = table.columns.flatMap((column): KeptRule[] => {
    if (isState(column)) return listStateRules(column, barredWords);
    if (!isNamed('barred', column.name) || !(column.type === 'boolean' || isTime(column))) return [];
    if (!/^(is_?)?(active|actief|enabled)/i.test(column.name)) return findKeptRule(column);
    return column.type === 'boolean' ? [{ column, kept: (sql) => `${sql} is not false`, printed: [] }] : [];
  });
  return [...listKeptRules(table), ...barred];
}

export function listPresentConditions(table: Table, as = alias): string[] {
  return listPresentRules(table).map(({ column, kept }) => kept(`${as}.${column.quoted}`));
}

export function describeGone(rows: string, table: Table): string | false {
  const names = [...new Set(listPresentRules(table).map(({ column }) => column.name))];
  return names.length > 0 && `${rows} count as gone by ${names.join(', ')}: their tokens are refused.`;
}

const shortMax = 30; // characters: longer texts are sentences of users, not words of the app
export const fewMax = 8; // a person can decide about so many values at a glance
const numberedText =
  'Numbers tell these states, and rows with each are shown: leave out by a condition those that mean deleted or that clients must not see. `check --rows` then names the rows that refer to them.';

/** Recognizes a column that may hide rows, by its name, or by one of the few short values that it has or may have. */
export function mayHideRows(column: Column): boolean {
  const { name } = column;
  if (isDocument(column)) return false;
  if (isNamed('deleted', name) || isNamed('maybeGone', name) || isNamed('states', name)) return true;
  return hasFewWords(column) && listWords(column).some((word) => isNamed('goneValue', word));
}

function hasFewWords(column: Column): boolean {
  const words = listWords(column);
  const isText = isTextual(column) || column.type === 'enum';
  return isText && words.length <= fewMax && words.every(({ length }) => length <= shortMax);
}

/** Finds columns that could hide rows and hide none, and counts their rows among those that no rule hides. */
function listDoubts(table: Table): { readonly column: Column; readonly rows: number; readonly says: string }[] {
  const keptRules = listKeptRules(table);
  return table.columns.flatMap((column) => {
    if (keptRules.some((rule) => rule.column === column) || !mayHideRows(column)) return [];
    const speaks = isNamed('deleted', column.name) || isNamed('maybeGone', column.name);
    const withValue = column.counts.filter(({ value, rows }) => value !== null && rows > 0);
    const odd = withValue.filter(({ value }) => isNamed('goneValue', String(value)));
    const isOdd = odd.length > 0 || (hasFewWords(column) && column.labels.some((label) => isNamed('goneValue', label)));
    if (!isOdd && !(speaks && (withValue.length > 0 || keptRules.length === 0))) return [];
    const about = odd.length > 0 ? odd : column.type === 'boolean' ? findMinority(withValue) : withValue;
    return [{ column, rows: sumRows(about), says: formatCounts(column) }];
  });
}

function findMinority(counts: readonly ValueCount[]): readonly ValueCount[] {
  return counts.length < 2 ? [] : [...counts].sort((a, b) => a.rows - b.rows).slice(0, 1);
}

/** Writes "archived 3, live 97"; if values are many or long, it counts the rows that have one. */
function formatCounts(column: Column): string {
  const { labels, type } = column;
  const counts = column.counts.filter(({ rows }) => rows > 0);
  const sampled = sumRows(counts);
  const withValue = counts.filter(({ value }) => value !== null);
  const isFew = counts.length <= fewMax && withValue.every(({ value }) => /^[\p{L}\d _-]{0,30}$/u.test(value ?? ''));
  if (sampled === 0) return labels.length > 0 ? `no row yet, of ${labels.join(', ')}` : `${type}, no row yet`;
  if (!isFew || isTime(column)) return `set in ${sumRows(withValue)} of ${sampled} rows`;
  const rare = labels.filter((label) => isNamed('goneValue', label) && !withValue.some(({ value }) => value === label));
  const texts = counts.map(({ value, rows }) => `${value ?? 'NULL'} ${rows}`);
  return [...texts, ...rare.map((label) => `${label} 0`)].join(', ');
}

/** A number such as 6 can mean deleted, which only the app's code tells. */
function describeNumberedStates(table: Table): string {
  const numbered = table.columns.filter((column) => isNamed('states', column.name) && isNumberColumn(column));
  const few = numbered.filter(({ counts }) => counts.length > 1 && counts.length <= fewMax);
  return few.map((column) => `${column.name}: ${formatCounts(column)}`).join('; ');
}

const doubtText =
  'Rows are shown whatever these columns say: leave out by a condition those that clients must not see. `check --rows` then names the rows that refer to them.';

export function listDeletedPoints(table: Table): Points {
  const names = listKeptRules(table).map(({ column }) => column.name);
  const numbered = describeNumberedStates(table);
  return [
    askAbout('Rows with these marks count as deleted and are not shown.', table, names),
    numbered !== '' && askOnce(numberedText, table, numbered),
    ...listDoubts(table).map(({ column: { name }, says, rows }) =>
      askOnce(doubtText, { ...table, rows }, `${name}: ${says}`),
    ),
  ];
}
