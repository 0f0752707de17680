import { parameterNames } from '../definition/filter-kinds.js';
import type { Column, Index, Table } from './catalog.js';
import { alias, softDeleteOf } from './columns.js';
import { type Fields, referredTo } from './fields.js';
import { isNamed } from './names.js';
import type { Subject, Survey } from './survey.js';

interface FilterJson {
  readonly column: string;
  readonly kind: string;
  readonly description: string;
}

/** How a list is ordered and filtered. */
export interface ListDraft {
  /** Columns of the view. */
  readonly order: readonly string[];
  readonly filters: Readonly<Record<string, FilterJson>>;
  readonly indexes: readonly IndexProposal[];
}

/** A column of the view that one field shows as it is stored. */
export interface ShownColumn {
  readonly of: Column;
  /** In the view. */
  readonly name: string;
  readonly member: string;
  readonly type: string;
  readonly select: string;
  /** Whether the view has the column of the table, so that its indexes serve. */
  readonly isPlain: boolean;
}

const filtersMax = 16;
const since =
  'Only records that changed at this moment or later: a date-time with its offset, or a date, which is the start of that day.';

/** Order and filters of the list, with proposals for all that no index covers. */
export function listOf(subject: Subject, survey: Survey, drafted: Fields): ListDraft {
  const columns = shownColumns(drafted);
  const order = orderOf(subject, columns);
  const [first] = order as [ShownColumn, ...ShownColumn[]];
  const day = first.type === 'date' ? 'date' : 'day';
  const updated = columns.find(({ of, type }) => isNamed('updated', of.name) && type === 'timestamp');
  const equals = columns.filter(({ of, isPlain, type }) => isPlain && isSearched(of, type, subject, survey));
  const wanted: readonly (readonly [name: string, column: ShownColumn, kind: string, text: string])[] = [
    ...equals.map((column) => [column.member, column, 'equals', `Only records with this ${column.member}.`] as const),
    ...(first.of === subject.id
      ? []
      : ([
          ['from', first, `${day}From`, 'First day, inclusive.'],
          ['to', first, `${day}To`, 'Last day, inclusive.'],
        ] as const)),
    ...(updated ? ([['updatedSince', updated, 'since', since]] as const) : []),
  ];
  const filters = wanted.filter(([name]) => !parameterNames.some((reserved) => reserved.test(name)));
  const kept = filters.slice(0, filtersMax);
  const searched = equals.filter((column) => kept.some(([, each, kind]) => each === column && kind === 'equals'));
  return {
    order: order.map(({ name }) => name),
    filters: Object.fromEntries(
      kept.map(([name, column, kind, description]) => [name, { column: column.name, kind, description }]),
    ),
    indexes: proposals(subject, [
      { name: 'list', purpose: 'the order of the list', columns: order },
      ...searched
        .filter(({ of }) => of !== leadOf(subject))
        .map((column) => ({
          name: column.name,
          purpose: `${column.member}=…`,
          columns: [column, ...order],
          isFilter: true,
          isNarrow: subject.steps.length > 0 && referredTo(subject, survey, column.of) !== undefined,
        })),
      ...(updated ? [{ name: 'changed', purpose: 'updatedSince=…', columns: [...order, updated] }] : []),
    ]),
  };
}

/** References, states, and the words of an audit log. */
function isSearched(column: Column, type: string, subject: Subject, survey: Survey): boolean {
  const { log, id } = subject;
  if (column === id) return false;
  if (column === log?.entity || column === log?.entityId || column === log?.action) return true;
  return (
    referredTo(subject, survey, column) !== undefined ||
    (isNamed('status', column.name) && ['text', 'enum'].includes(type))
  );
}

/** Encoded columns and members of JSON are no such columns, because stored values cannot be compared, nor are those that no index can have. */
function shownColumns({ columns, fields }: Fields): ShownColumn[] {
  return [...columns].flatMap(([name, { select, of }]) => {
    const [member, field] = Object.entries(fields).find(([, { column }]) => column === name) ?? [];
    if (member === undefined || field === undefined || field.codec !== undefined || of.isVirtual) return [];
    return [{ of, name, member, type: String(field.type), select, isPlain: select === `${alias}.${of.quoted}` }];
  });
}

/** By an index that is there: the workspace, times or dates, the id. Else by the time of creation, else by the id. */
function orderOf(subject: Subject, columns: readonly ShownColumn[]): ShownColumn[] {
  const { table, id } = subject;
  const lead = leadOf(subject);
  const own = columns.filter(({ of }) => of === id);
  // A row that moves in the list while a client walks through it is missed or comes twice.
  const times = columns.filter(
    ({ of, type }) => of.notNull && (type === 'timestamp' || type === 'date') && !isNamed('updated', of.name),
  );
  const indexed = usableIndexes(table)
    .filter(({ columns: [first, ...rest], descending }) => {
      const directions = new Set(descending.slice(1));
      return rest.length > 1 && first === lead.name && rest.at(-1) === id.name && directions.size === 1;
    })
    .map((index) => index.columns.slice(1, -1).map((name) => times.find(({ of }) => of.name === name)))
    .filter((found): found is ShownColumn[] => !found.includes(undefined))
    .sort((a, b) => a.length - b.length);
  const created = times.find(({ of }) => isNamed('created', of.name));
  return [...(indexed[0] ?? (created ? [created] : [])), ...own];
}

/** An index that a list needs and the table lacks. */
export interface IndexProposal {
  /** Behind "gateway_" and the name of the view. */
  readonly name: string;
  readonly purpose: string;
  /** Columns and expressions of the table, in parentheses, and the condition of a partial index. */
  readonly definition: string;
}

interface Need {
  readonly name: string;
  readonly purpose: string;
  /** The columns behind the leading one. */
  readonly columns: readonly ShownColumn[];
  /** Whether the first column has one value; the order begins behind it. */
  readonly isFilter?: boolean;
  /** Whether the first column finds few rows, so that no other has to lead the index. */
  readonly isNarrow?: boolean;
}

/** Proposals for the needs that no index of the table serves. */
function proposals(subject: Subject, needs: readonly Need[]): IndexProposal[] {
  const { table } = subject;
  const condition = softDeleteOf(table)?.condition;
  const where = condition === undefined ? '' : ` where (${withoutAlias(condition)})`;
  return needs
    .filter((need) => !isServed(subject, need))
    .map(({ name, purpose, columns, isNarrow }) => {
      const lead = isNarrow ? [] : [leadOf(subject).quoted];
      const parts = columns.map(({ isPlain, of, select }) => (isPlain ? of.quoted : `(${withoutAlias(select)})`));
      return { name, purpose, definition: `(${[...new Set([...lead, ...parts])].join(', ')})${where}` };
    });
}

/** The indexes on all rows, or on all that are not deleted. */
export function usableIndexes(table: Table): Index[] {
  const conditions = softDeleteOf(table)?.printed ?? [];
  return table.indexes.filter(({ condition }) => condition === null || conditions.includes(condition));
}

/** The indexes on all rows. */
export function wholeIndexes(table: Table): Index[] {
  return table.indexes.filter(({ condition }) => condition === null);
}

/**
 * Whether the index begins with these columns and gives the rows in the order of those behind the first `fixed`, which have one value
 * each: forwards, or backwards where all are DESC.
 */
export function leads({ columns, descending }: Index, names: readonly string[], fixed: number): boolean {
  const directions = new Set(descending.slice(fixed, names.length));
  return names.every((name, i) => columns[i] === name) && directions.size <= 1;
}

/** The column that leads the indexes of the table: the workspace, or the reference that leads to it. */
export function leadOf({ tenant, steps }: Subject): Column {
  return steps[0]?.from ?? tenant;
}

function isServed(subject: Subject, { columns, isNarrow, isFilter }: Need): boolean {
  const { table } = subject;
  const lead = isNarrow ? [] : [leadOf(subject).name];
  const names = [...new Set([...lead, ...columns.map(({ of }) => of.name)])];
  const fixed = lead.length + (isFilter ? 1 : 0);
  return columns.every(({ isPlain }) => isPlain) && usableIndexes(table).some((index) => leads(index, names, fixed));
}

const quotedOrAlias = new RegExp(`"(?:[^"]|"")*"|'(?:[^']|'')*'|\\b${alias}\\.|\\s+`, 'g');

/** SQL of a view's column as an index of the table has it. */
export function withoutAlias(sql: string): string {
  return sql.replace(quotedOrAlias, (found) => (found === `${alias}.` ? '' : /^\s/.test(found) ? ' ' : found));
}
