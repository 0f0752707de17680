import type pg from 'pg';
import { leaves, type Resource } from '../../resource/definition/resource.js';
import { withShown } from '../../resource/statements/write-statements.js';
import type { Item } from '../finding.js';
import { inReadOnlyTransaction } from '../session.js';

/** They tell a client of one workspace that a value exists in another. */
export function checkUnique(client: pg.Client, resource: Resource, view: string): Promise<Item[]> {
  const written = leaves(resource).flatMap(({ field }) => (field.write ? [field] : []));
  const own = written.flatMap(({ write, column }) => (write?.references === undefined ? [] : [column]));
  const columns = written.map(({ column }) => column).filter((column) => !own.includes(column));
  const values = [resource.name, columns, ['workspace_id', ...own]];
  const look = async () => (await client.query<Item>(withShown('unique', view), values)).rows;
  return inReadOnlyTransaction(client, { object: resource.name }, look, () => []);
}
