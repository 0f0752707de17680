import { alias } from './columns.js';
import type { Step, WorkspaceOf } from './tenant.js';

// The tenant wall of a drafted view: of a table with the column of the workspace, or of one whose references lead to it. There no
// condition can be the cheapest, so the view is a security barrier, behind which the wall comes first (PostgreSQL, chapter "Rules and Privileges").

/** The options of such a view in CREATE VIEW. */
export function optionsOf(steps: readonly Step[]): string {
  return steps.length > 0 ? ' with (security_barrier)' : '';
}

/** SQL of the workspace of a row. */
export function workspaceSql({ tenant, steps }: WorkspaceOf): string {
  return `${aliasOf(steps.length)}.${tenant.quoted}`;
}

/** FROM with the tables that the steps lead to, and the condition that shows the rows of one workspace alone. */
export function fromOf(quoted: string, row: WorkspaceOf): string[] {
  const { tenant, steps } = row;
  const [own, workspace] = [workspaceSql(row), `gateway.workspace()::${tenant.type}`];
  return [
    `  from ${quoted} ${alias}`,
    ...steps.map(
      ({ from, table, to }, i) =>
        `    join ${table.quoted} ${aliasOf(i + 1)} on ${aliasOf(i + 1)}.${to.quoted} = ${aliasOf(i)}.${from.quoted}`,
    ),
    '  -- the tenant wall, see sql/core/002_workspace.sql',
    `  where ${own} = ${workspace}`,
    ...(steps.length > 0 ? [] : [`    and coalesce(${own} = any (array[(select ${workspace})]), false)`]),
  ];
}

/** Grants on the tables that the steps lead to, for the columns that join them. */
export function grantsOf({ tenant, steps }: WorkspaceOf): string[] {
  return steps.map(({ table, to }, i) => {
    const names = new Set([to.quoted, (steps[i + 1]?.from ?? tenant).quoted]);
    return `grant select (${[...names].join(', ')}) on ${table.quoted} to gateway_owner;`;
  });
}

/** The alias of the table that so many steps lead to. */
function aliasOf(steps: number): string {
  return steps === 0 ? alias : `w${steps}`;
}
