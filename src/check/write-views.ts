import type pg from 'pg';
import { columnsOf, leaves, type Resource } from '../definition/resource.js';
import { checkSql, faultIf, type Item, verdict } from './finding.js';

/** Checks that the grants on the write views let the writer change exactly the fields of the write scope. */
export async function checkWriteViews(client: pg.Client, resources: readonly Resource[]): Promise<Item[]> {
  const items: Item[] = [];
  for (const resource of resources) {
    if (resource.write === undefined) continue;
    const { view: name } = resource.write;
    type Grants = Readonly<Record<'updates' | 'inserts', readonly string[]>>;
    const [view] = (await client.query<Grants>(checkSql('write_view'), [name])).rows;
    if (view === undefined) {
      items.push(verdict('write_view', ['it does not exist: run `migrate`, or write it'], '', name));
      continue;
    }
    const writable = leaves(resource).flatMap(({ field }) => (field.write ? [field.column] : []));
    const updated = [...writable, ...Object.keys(resource.write.onChange)];
    const readOnly = columnsOf(resource).filter((column) => !writable.includes(column));
    // An INSERT gives the new row its id and workspace; no column that only the app fills.
    const appFilled = readOnly.filter((column) => column !== 'id' && column !== 'workspace_id');
    const faults = [
      ...updated.flatMap((column) => faultIf(!view.updates.includes(column), `the role cannot update ${column}`)),
      ...writable.flatMap((column) => faultIf(!view.inserts.includes(column), `the role cannot insert ${column}`)),
      ...view.updates.flatMap((column) =>
        faultIf(readOnly.includes(column) && !updated.includes(column), `the role may update ${column}`),
      ),
      ...view.inserts.flatMap((column) => faultIf(appFilled.includes(column), `the role may insert ${column}`)),
    ];
    items.push(verdict('write_view', faults, 'The role may write the fields of the write scope and no other.', name));
  }
  return items;
}
