import type { TestDatabase } from './workspace.js';

/** The one column that a statement gives; $1 is the first workspace. */
export async function column<T>(
  { primary, workspaces }: TestDatabase,
  sql: string,
  ...values: unknown[]
): Promise<T[]> {
  const query = { text: sql, values: [workspaces[0]?.id, ...values], rowMode: 'array' as const };
  return (await primary.query(query)).rows.map(([value]) => value as T);
}

/** Ids in the order of the list, of the rows of the first workspace that meet the condition: "installaties klant_id = $2". */
export async function ids(database: TestDatabase, where: string, ...values: unknown[]): Promise<string[]> {
  const [table = ''] = where.split(' ');
  const order = { klanten: 'created_at', installaties: 'created_at', werkbonnen: 'datum', logboeken: 'tijdstip' }[
    table
  ];
  const condition = where.slice(table.length + 1);
  return column(
    database,
    `select l.id::text from probe.${table} l where workspace_id = $1 and ${condition} order by l.${order}, l.id`,
    ...values,
  );
}
