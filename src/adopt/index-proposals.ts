import type { Table } from './catalog.js';
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
  /** The columns behind the workspace. */
  readonly columns: readonly ShownColumn[];
}

/** Proposals for the needs that no index of the table serves. */
export function proposals(subject: Subject, needs: readonly Need[]): IndexProposal[] {
  const { table, tenant } = subject;
  const condition = softDeleteOf(table)?.condition;
  const where = condition === undefined ? '' : ` where (${withoutAlias(condition)})`;
  return needs
    .filter(({ columns }) => !isServed(subject, columns))
    .map(({ name, purpose, columns }) => {
      const parts = columns.map(({ isPlain, of, select }) => (isPlain ? of.quoted : `(${withoutAlias(select)})`));
      return { name, purpose, definition: `(${[tenant.quoted, ...parts].join(', ')})${where}` };
    });
}

/** Columns of the indexes on all rows, or on all that are not deleted. */
export function usableIndexes(table: Table): (readonly (string | null)[])[] {
  const conditions = softDeleteOf(table)?.printed ?? [];
  return table.indexes
    .filter(({ condition }) => condition === null || conditions.includes(condition))
    .map(({ columns }) => columns);
}

/** Whether an index leads with the workspace and these columns. */
function isServed({ table, tenant }: Subject, columns: readonly ShownColumn[]): boolean {
  const names = [tenant.name, ...columns.map(({ of }) => of.name)];
  return (
    columns.every(({ isPlain }) => isPlain) &&
    usableIndexes(table).some((index) => names.every((name, i) => index[i] === name))
  );
}

function withoutAlias(sql: string): string {
  return sql.replaceAll(`${alias}.`, '').replace(/\s+/g, ' ');
}
