import { alias } from './columns.js';
import type { SharedPoint, WorkspaceOf } from './schema.js';

// Names of the catalog enter the SQL of a draft in three ways: as PostgreSQL quotes them (`quoted`), in a comment, and in a text.

/** Sentences for the operator; those that do not hold are false. */
export type Points = readonly (string | SharedPoint | false | undefined)[];

/** A file of a draft in sql/views. */
export interface SqlFile {
  /** Below that folder. */
  readonly path: string;
  /** Lines of the comment that it begins with. */
  readonly about: readonly string[];
  /** The decisions that it leaves to the operator: comments that `grep -rn OPEN:` finds. */
  readonly open?: Points;
  readonly sql: string;
  /** Of a proposed index. */
  readonly index?: { readonly table: string; readonly bytes: number };
}

export function printed({ about, open = [], sql }: SqlFile): string {
  // A comment of one line: what a name says in it is never SQL.
  const comments = [
    ...about,
    ...open.flatMap((point) => (point ? [typeof point === 'string' ? `OPEN: ${point}` : `Note: ${point.text}`] : [])),
  ].map((text) => `-- ${text.replace(/[\r\n]+/g, ' ')}\n`);
  return `${comments.join('')}${sql}\n`;
}

export function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** `expression as name`, unless it is a column of that name. */
export function as(expression: string, name: string): string {
  return expression.replace(/^\w+\./, '') === name ? expression : `${expression} as ${name}`;
}

// The workspace of a drafted view's rows: a column of the table, or of one to which its references lead.

/** SQL of the workspace of a row. */
export function workspaceSql({ tenant, steps }: WorkspaceOf): string {
  return `${aliasOf(steps.length)}.${tenant.quoted}`;
}

/** FROM with the tables that the steps lead to. */
export function fromOf(quoted: string, { steps }: WorkspaceOf): string {
  const joins = steps.map(
    ({ from, table, to }, i) =>
      `\n    join ${table.quoted} ${aliasOf(i + 1)} on ${aliasOf(i + 1)}.${to.quoted} = ${aliasOf(i)}.${from.quoted}`,
  );
  return `  from ${quoted} ${alias}${joins.join('')}`;
}

/** The alias of the table that so many steps lead to. */
export function aliasOf(steps: number): string {
  return steps === 0 ? alias : `w${steps}`;
}

/** The right that a default of a new row needs, because it runs with the rights of the inserting role. */
export function sequenceGrant(sequence: string): string {
  return `grant usage on sequence ${sequence} to gateway_writer; -- a column default runs with the rights of the inserting role`;
}
