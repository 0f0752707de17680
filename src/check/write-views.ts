import type pg from 'pg';
import { columnsOf, leaves, placeOf, type Resource } from '../definition/resource.js';
import { checkSql, faultIf, type Item, verdict, withFile } from './finding.js';

/** Checks that the grants on the write views let the writer change exactly the fields of the write scope. */
export async function checkWriteViews(client: pg.Client, resources: readonly Resource[]): Promise<Item[]> {
  const items: Item[] = [];
  for (const resource of resources) {
    if (resource.write === undefined) continue;
    const { view: name } = resource.write;
    type Grants = Readonly<Record<'updates' | 'inserts', readonly string[]>>;
    const [view] = (await client.query<Grants>(checkSql('write_view'), [name])).rows;
    if (view === undefined) {
      items.push(
        verdict(
          'write_view',
          withFile(['it does not exist (/write/view): run `migrate`, or write it'], resource),
          '',
          name,
        ),
      );
      continue;
    }
    const writable = leaves(resource).flatMap(({ field }) => (field.write ? [field.column] : []));
    const updated = [...writable, ...Object.keys(resource.write.onChange)];
    const readOnly = columnsOf(resource).filter((column) => !writable.includes(column));
    // An INSERT gives the new row its id and workspace; no column that only the app fills.
    const appFilled = readOnly.filter((column) => column !== 'id' && column !== 'workspace_id');
    const places = new Map(leaves(resource).map(({ field, path }) => [field.column, ` (${placeOf(path)}/write)`]));
    const place = (column: string): string => places.get(column) ?? '';
    const faults = [
      ...updated.flatMap((column) =>
        faultIf(!view.updates.includes(column), `the role cannot update ${column}${place(column)}`),
      ),
      ...writable.flatMap((column) =>
        faultIf(!view.inserts.includes(column), `the role cannot insert ${column}${place(column)}`),
      ),
      ...view.updates.flatMap((column) =>
        faultIf(
          readOnly.includes(column) && !updated.includes(column),
          `the role may update ${column}${place(column)}`,
        ),
      ),
      ...view.inserts.flatMap((column) =>
        faultIf(appFilled.includes(column), `the role may insert ${column}${place(column)}`),
      ),
    ];
    items.push(
      verdict(
        'write_view',
        withFile(faults, resource),
        'The role may write the fields of the write scope and no other.',
        name,
      ),
    );
  }
  return items;
}
