import type { Column, Table } from './catalog.js';
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

/** Columns of the indexes on all rows, or on all that are not deleted. */
export function usableIndexes(table: Table): (readonly (string | null)[])[] {
  const conditions = softDeleteOf(table)?.printed ?? [];
  return table.indexes
    .filter(({ condition }) => condition === null || conditions.includes(condition))
    .map(({ columns }) => columns);
}

/** Columns of the indexes on all rows. */
export function wholeIndexes(table: Table): (readonly (string | null)[])[] {
  return table.indexes.filter(({ condition }) => condition === null).map(({ columns }) => columns);
}

/** The column that leads the indexes of the table: the workspace, or the reference that leads to it. */
export function leadOf({ tenant, steps }: Subject): Column {
  return steps[0]?.from ?? tenant;
}

function isServed(subject: Subject, { columns, isNarrow }: Need): boolean {
  const { table } = subject;
  const lead = isNarrow ? [] : [leadOf(subject).name];
  const names = [...new Set([...lead, ...columns.map(({ of }) => of.name)])];
  return (
    columns.every(({ isPlain }) => isPlain) &&
    usableIndexes(table).some((index) => names.every((name, i) => index[i] === name))
  );
}

function withoutAlias(sql: string): string {
  return sql.replaceAll(`${alias}.`, '').replace(/\s+/g, ' ');
}
