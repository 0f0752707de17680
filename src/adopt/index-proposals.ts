import type { Column, Index, Table } from './catalog.js';
import { alias } from './columns.js';
import type { ShownColumn } from './lists.js';
import { softDeleteOf } from './soft-delete.js';
import type { Subject } from './survey.js';

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
export function proposals(subject: Subject, needs: readonly Need[]): IndexProposal[] {
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
