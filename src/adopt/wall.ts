import { alias } from './columns.js';
import type { WorkspaceOf } from './tenant.js';

// The workspace of a drafted view's rows: a column of the table, or of one to which its references lead.

/** SQL of the workspace of a row. */
export function workspaceSql({ tenant, steps }: WorkspaceOf): string {
  return `${aliasOf(steps.length)}.${tenant.quoted}`;
}

/** FROM with the tables that the steps lead to. */
export function fromOf(quoted: string, { steps }: WorkspaceOf): string[] {
  return [
    `  from ${quoted} ${alias}`,
    ...steps.map(
      ({ from, table, to }, i) =>
        `    join ${table.quoted} ${aliasOf(i + 1)} on ${aliasOf(i + 1)}.${to.quoted} = ${aliasOf(i)}.${from.quoted}`,
    ),
  ];
}

/** The alias of the table that so many steps lead to. */
function aliasOf(steps: number): string {
  return steps === 0 ? alias : `w${steps}`;
}
