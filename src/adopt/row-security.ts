import type { Table } from './catalog.js';
import type { SharedFile } from './shared-files.js';
import { openLines } from './sql-text.js';
import type { Survey } from './survey.js';

/**
 * row_security.sql: a policy for each table with row-level security of the app that the views read. Without one PostgreSQL shows their
 * owner no row, and says nothing (chapter "Row Security Policies"). Undefined: there is no such table.
 */
export function rowSecurityFile({ subjects }: Survey): SharedFile | undefined {
  const read = new Set(
    subjects.flatMap(({ table, steps, parts }) => [table, ...steps.map((step) => step.table), ...parts]),
  );
  const tables = [...read].filter(({ rowSecurity }) => rowSecurity);
  if (tables.length === 0) return undefined;
  const open = tables.flatMap(openPoints);
  const sql = [
    `-- The app's row-level security may show no row of these tables to the role that runs migrate, as which the views read. The tenant wall divides them instead: true lets`,
    `-- PostgreSQL plan as if there were no policy, where a condition would keep indexes on expressions from use.`,
    ...openLines(open),
    ...tables.flatMap(({ quoted }) => [
      `drop policy if exists gateway on ${quoted};`,
      `create policy gateway on ${quoted} to current_user using (true);`,
    ]),
    '',
  ].join('\n');
  return { sql, open };
}

function openPoints({ quoted, restrictive, isSampled }: Table): string[] {
  return [
    ...restrictive.map(
      (policy) =>
        `the restrictive policy ${policy} of ${quoted} holds for the views' owner, too, and can hide rows: name the app's roles in it (ALTER POLICY … TO …).`,
    ),
    ...(isSampled
      ? []
      : [
          `row-level security of ${quoted} hides rows from the role of ADMIN_URL, so the guesses may rest on no value.`,
        ]),
  ];
}
