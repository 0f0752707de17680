import { alias, rowXid } from './columns.js';
import type { Draft } from './draft.js';
import { leadOf } from './index-proposals.js';
import { shortened } from './names.js';
import { comment, openLines } from './sql-text.js';
import { fromOf, workspaceSql } from './wall.js';

/** The SQL file of a view, in the form of those in sql/views. Of a resource that is written it has the columns and defaults that a new row needs. */
export function viewFile(draft: Draft): string {
  const { subject, view, list, open, write, sync } = draft;
  const { table } = subject;
  const stamps = write?.stamps ?? [];
  const added = stamps.filter(({ isAdded }) => isAdded).map(({ name, of }) => named(`${alias}.${of.quoted}`, name));
  const sequences = write ? [...new Set(table.columns.flatMap(({ sequence }) => sequence ?? []))] : [];
  return [
    comment(`${heading(view)}: drafted from ${table.quoted} by \`adopt\`.`),
    comment(
      `Relies on an index on ${table.quoted} (${[leadOf(subject).name, ...list.order].join(', ')}) for lists and on the primary key for details.`,
    ),
    ...openLines(open),
    `${definitionOf(draft, [...(sync.sync ? [`${alias}.xmin as ${rowXid}`] : []), ...added])};`,
    ...stamps.map(
      ({ name, value }) => `alter view records.${view} alter column ${name} set default ${value}; -- as the app does`,
    ),
    ...sequences.map(
      (name) =>
        `grant usage on sequence ${name} to gateway_writer; -- a column default runs with the rights of the inserting role`,
    ),
    '',
  ].join('\n');
}

/** CREATE VIEW without its end. */
function definitionOf({ subject, view, columns, softDelete, parts }: Draft, more: readonly string[]): string {
  const items = [
    named(workspaceSql(subject), 'workspace_id'),
    ...[...columns].map(([name, { select }]) => named(select, name)),
    ...parts.map(({ name, sql }) => `\n    ${sql} as ${name}`),
    ...more,
  ];
  return [
    `create view records.${view} as`,
    wrapped('  select ', items, '', '    '),
    ...fromOf(subject.table.quoted, subject),
    ...(softDelete ? [`  where ${softDelete.condition}`] : []),
  ].join('\n');
}

function named(select: string, name: string): string {
  return select === `${alias}.${name}` ? select : `${select} as ${name}`;
}

/** The file of a proposed index; PostgreSQL and the command \`migrate --indexes\` cut no name below 64 bytes. */
export function indexFiles({ subject, view, list }: Draft): [name: string, sql: string][] {
  return list.indexes.map(({ name, purpose, definition }) => {
    const file = shortened(`${view}_${name}`, 55);
    const sql = `-- For GET /${view.replaceAll('_', '-')}: ${purpose}
create index concurrently if not exists gateway_${file}
  on ${subject.table.quoted} ${definition};
`;
    return [`${file}.sql`, sql];
  });
}

function heading(view: string): string {
  const words = view.replaceAll('_', ' ');
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}`;
}

const width = 120;

/** "head item, item, …tail" in lines of at most 120 characters, as far as the items allow. */
function wrapped(head: string, items: readonly string[], tail: string, indent: string): string {
  let line = head;
  const lines: string[] = [];
  for (const [i, item] of items.entries()) {
    const text = i < items.length - 1 ? `${item},` : `${item}${tail}`;
    const isFirst = line === head && lines.length === 0;
    const joined = isFirst ? `${line}${text}` : `${line} ${text}`;
    if (isFirst || (joined.length <= width && !text.startsWith('\n'))) line = joined;
    else {
      lines.push(line);
      line = `${indent}${text.trimStart()}`;
    }
  }
  return [...lines, line].join('\n');
}
