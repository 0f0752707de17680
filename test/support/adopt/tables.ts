import type { Column, Index, Table } from '../../../src/operate/adopt/schema.js';

export const column = (name: string, type = 'text', ...values: string[]): Column => ({
  table: 'jobs',
  name,
  quoted: name,
  inView: name,
  type,
  enumOfDomain: null,
  length: null,
  notNull: true,
  isMade: false,
  isComputed: false,
  isVirtual: false,
  madeOf: [],
  refers: false,
  isMoved: false,
  isFilled: false,
  sequence: null,
  isArray: false,
  members: null,
  comment: null,
  labels: [],
  values,
  counts: [],
});

export const index = (columns: Index['columns'], more: Partial<Index> = {}): Index => ({
  columns,
  descending: columns.map(() => false),
  isUnique: true,
  condition: null,
  ...more,
});

export function table(
  name: string,
  columns: readonly Column[],
  references: Readonly<Record<string, string>> = {},
): Table {
  return {
    name,
    quoted: `app.${name}`,
    rows: 1,
    comment: null,
    columns,
    primaryKey: ['id'],
    isInherited: false,
    foreignKeys: Object.entries(references).map(([own, to]) => ({
      table: to,
      columns: [own],
      references: ['id'],
      cascades: false,
      survives: false,
    })),
    partitionKey: [],
    indexes: [index(['id'])],
    isUnlogged: false,
    hasRowSecurity: false,
    policies: [],
    triggers: [],
  };
}
