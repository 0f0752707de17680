import type pg from 'pg';
import { leaves, type Resource } from '../definition/resource.js';
import { checkSql, type Item, verdict } from './finding.js';

/** Checks that the grants on the write views let the writer change exactly the fields of the write scope. */
export async function checkWriteViews(client: pg.Client, resources: readonly Resource[]): Promise<Item[]> {
  const items: Item[] = [];
  for (const resource of resources) {
    if (resource.write === undefined) continue;
    const subject = `view ${resource.write.view}`;
    const { rows } = await client.query<{ updates: string[]; inserts: string[] }>(checkSql('write_view'), [
      resource.write.view,
    ]);
    const [view] = rows;
    if (view === undefined) {
      items.push(verdict(subject, ['it does not exist: run `migrate`, or write it'], ''));
      continue;
    }
    const writable = leaves(resource)
      .filter(({ field }) => field.write)
      .map(({ field }) => field.column);
    const readOnly = leaves(resource)
      .filter(({ field }) => !field.write)
      .map(({ field }) => field.column);
    // An INSERT gives the new row its id and workspace; no column that only the app fills.
    const identity = ['id', 'workspace_id'];
    const faults = [
      ...writable
        .filter((column) => !view.updates.includes(column))
        .map((column) => `the role cannot update ${column}`),
      ...writable
        .filter((column) => !view.inserts.includes(column))
        .map((column) => `the role cannot insert ${column}`),
      ...view.updates.filter((column) => readOnly.includes(column)).map((column) => `the role may update ${column}`),
      ...view.inserts
        .filter((column) => readOnly.includes(column) && !identity.includes(column))
        .map((column) => `the role may insert ${column}`),
    ];
    items.push(verdict(subject, faults, 'The role may write the fields of the write scope and no other.'));
  }
  return items;
}
