import type { Column } from './catalog.js';
import { alias, rowXid } from './columns.js';
import type { Draft } from './draft.js';
import { leadOf } from './index-proposals.js';
import { shortened } from './names.js';
import { comment, openLines } from './sql-text.js';
import { fromOf, grantsOf, optionsOf, workspaceSql } from './wall.js';
import type { WriteDraft } from './writes.js';

/** The SQL file of a view, in the form of those in sql/views. */
export function viewFile(draft: Draft, isReferredTo: boolean): string {
  const { subject, view, columns, softDelete, list, open, parts, write, sync } = draft;
  const { table } = subject;
  const read = new Set([
    leadOf(subject),
    ...[...columns.values()].map(({ of }) => of),
    ...(softDelete ? [softDelete.column] : []),
  ]);
  const granted = [...new Set([...[...read].map(({ quoted }) => quoted), ...(sync.sync ? ['xmin'] : [])])];
  return [
    comment(`${heading(view)}: drafted from ${table.quoted} by \`adopt\`.`),
    comment(
      `Relies on an index on ${table.quoted} (${[leadOf(subject).name, ...list.order].join(', ')}) for lists and on the primary key for details.`,
    ),
    ...openLines(open),
    wrapped('grant select (', granted, ')', '    '),
    `  on ${table.quoted} to gateway_owner;`,
    ...grantsOf(subject),
    ...parts.map(({ grant }) => grant),
    `${definitionOf(draft, view, sync.sync ? [`${alias}.xmin as ${rowXid}`] : [])};`,
    `alter view gateway.${view} owner to gateway_owner;`,
    `grant select on gateway.${view} to gateway_reader;`,
    ...(write
      ? [
          '-- Reading its own write while every replica is behind.',
          `grant select on gateway.${view} to gateway_writer;`,
        ]
      : []),
    ...(isReferredTo && !write
      ? [
          '-- A reference must be a record of the same workspace; for that the writer sees ids and nothing else.',
          `grant select (workspace_id, id) on gateway.${view} to gateway_writer;`,
        ]
      : []),
    '',
  ].join('\n');
}

/** The SQL file of the view that writes go through. */
export function writeViewFile(draft: Draft, write: WriteDraft): string {
  const { subject, view } = draft;
  const { quoted, columns } = subject.table;
  const list = (of: WriteDraft['inserts'], inTable: boolean): string =>
    [...of].map(([name, column]) => (inTable ? column.quoted : inView(name, column))).join(', ');
  const stamped = new Map(write.stamps.map(({ name, of }) => [name, of]));
  const grant = (on: string, role: string, inTable: boolean): string => {
    const inserts = inTable ? new Map([...write.inserts, ...stamped]) : write.inserts;
    return `grant insert (${list(inserts, inTable)}),\n    update (${list(write.updates, inTable)})\n  on ${on} to ${role};`;
  };
  const added = write.stamps.filter(({ isAdded }) => isAdded);
  const sequences = [...new Set(columns.flatMap(({ sequence }) => sequence ?? []))];
  return [
    `-- ${heading(view)} as the writer changes them, column by column: neither the writer nor the view's owner can write others.`,
    `-- Automatically updatable (CREATE VIEW, "Updatable Views"); the check option keeps a row in its workspace on the way in.`,
    grant(quoted, 'gateway_owner', true),
    `${definitionOf(
      draft,
      `${view}_write`,
      added.map(({ name, of }) => named(`${alias}.${of.quoted}`, name)),
    )}\n  with cascaded check option;`,
    ...write.stamps.map(
      ({ name, value }) =>
        `alter view gateway.${view}_write alter column ${name} set default ${value}; -- as the app does`,
    ),
    `alter view gateway.${view}_write owner to gateway_owner;`,
    `grant select on gateway.${view}_write to gateway_writer;`,
    grant(`gateway.${view}_write`, 'gateway_writer', false),
    ...sequences.map(
      (name) =>
        `grant usage on sequence ${name} to gateway_writer; -- a column default runs with the rights of the inserting role`,
    ),
    '',
  ].join('\n');
}

/** The name in a list of columns, where a word of SQL such as "order" needs quotes: bare only as PostgreSQL writes it bare itself. */
function inView(name: string, { quoted }: Column): string {
  return quoted === name ? name : `"${name}"`;
}

/** CREATE VIEW without its end. */
function definitionOf(
  { subject, columns, softDelete, parts }: Draft,
  view: string,
  more: readonly string[] = [],
): string {
  const { table } = subject;
  const items = [
    named(workspaceSql(subject), 'workspace_id'),
    ...[...columns].map(([name, { select }]) => named(select, name)),
    ...parts.map(({ name, sql }) => `\n    ${sql} as ${name}`),
    ...more,
  ];
  return [
    `create view gateway.${view}${optionsOf(subject.steps)} as`,
    wrapped('  select ', items, '', '    '),
    ...fromOf(table.quoted, subject),
    ...(softDelete ? [`    and ${softDelete.condition}`] : []),
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
