import type pg from 'pg';
import { leaves, type Resource } from '../../resource/definition/resource.js';
import { shownColumns } from '../../resource/statements/write-statements.js';
import { checkSql, type Item, verdict, warning } from '../../serve/fitness/finding.js';
import { trial } from '../../serve/fitness/session.js';

/** Looks for unique indexes that tell a client of one workspace that a value exists in another. */
export function checkUnique(client: pg.Client, resource: Resource): Promise<Item[]> {
  const { name, write } = resource;
  if (write === undefined) return Promise.resolve([]);
  const written = leaves(resource).flatMap(({ field }) => (field.write ? [field] : []));
  const own = written.flatMap((field) => (field.write?.references === undefined ? [] : [field.column]));
  const columns = written.map(({ column }) => column).filter((column) => !own.includes(column));
  const sql = checkSql('unique').replace('{shown}', () => shownColumns(write.view));
  const look = async (): Promise<Item[]> => {
    const { rows } = await client.query<{ name: string }>(sql, [columns, ['workspace_id', ...own]]);
    if (rows.length === 0)
      return [verdict('unique', [], 'Each has the workspace, or no column that clients write.', name)];
    const names = rows.map((row) => row.name).join(', ');
    return [
      warning(
        'unique',
        `Without the workspace: ${names}. A client learns by 400 taken that another workspace has a value.`,
        name,
      ),
    ];
  };
  return trial(client, { object: name }, look, ({ message }) => [
    warning('unique', `They cannot be read: ${message}.`, name),
  ]);
}
