import type pg from 'pg';
import { columnsOf, leaves, placeOf, type Resource } from '../definition/resource.js';
import type { Settings } from '../settings.js';
import { checkSql, failure, type Item, verdict, withFile } from './finding.js';
import { type ViewRow, viewFaults } from './views.js';

type Grants = Readonly<Record<'updates' | 'inserts', readonly string[]>>;

/** Checks that the grants on the write views let the writer change exactly the fields of the write scope, and the wall and the owner of these views. */
export async function checkWriteViews(
  client: pg.Client,
  resources: readonly Resource[],
  { primaryReadsPerSecond }: Pick<Settings, 'primaryReadsPerSecond'>,
): Promise<Item[]> {
  const items: Item[] = [];
  for (const resource of resources) {
    if (resource.write === undefined) continue;
    const [grants] = (await client.query<Grants>(checkSql('write_view'), [resource.write.view])).rows;
    const [view] = (await client.query<ViewRow>(checkSql('views'), [[resource.write.view]])).rows;
    const faults =
      grants && view
        ? [...faultsOf(grants, resource, Object.keys(resource.write.onChange)), ...viewFaults(new Map(), view)]
        : ['it does not exist (/write/view): run `migrate`, or write it'];
    const whenOk = 'The role may write the fields of the write scope and no other.';
    const hidden = faults.length > 0 || primaryReadsPerSecond === 0 ? [] : await hiddenColumns(client, resource);
    items.push(
      hidden.length > 0
        ? failure(
            'write_view',
            `The role cannot select ${hidden.join(', ')} of ${resource.view}, so a workspace that has just written gets 500 for reads while replicas are behind: grant it SELECT there.`,
            resource.write.view,
          )
        : verdict('write_view', withFile(faults, resource), whenOk, resource.write.view),
    );
  }
  return items;
}

/** The columns of the view that the role cannot select: reads go to the primary where no replica has a workspace's last write. */
async function hiddenColumns(client: pg.Client, resource: Resource): Promise<string[]> {
  const [row] = (await client.query<ViewRow>(checkSql('views'), [[resource.view]])).rows;
  return ['workspace_id', ...columnsOf(resource)].filter((column) => row?.columns[column]?.readable !== true);
}

function faultsOf({ updates, inserts }: Grants, resource: Resource, onChange: readonly string[]): string[] {
  const fields = leaves(resource);
  const writable = fields.flatMap(({ field }) => (field.write ? [field.column] : []));
  const updated = [...writable, ...onChange];
  const readOnly = columnsOf(resource).filter((column) => !writable.includes(column));
  // An INSERT gives the new row its id and workspace; no column that only the app fills.
  const appFilled = readOnly.filter((column) => column !== 'id' && column !== 'workspace_id');
  const places = new Map(fields.map(({ field, path }) => [field.column, ` (${placeOf(path)}/write)`]));
  const faults = (text: string, columns: readonly string[]): string[] =>
    columns.map((column) => `the role ${text} ${column}${places.get(column) ?? ''}`);
  return [
    ...faults('cannot update', without(updated, updates)),
    ...faults('cannot insert', without(writable, inserts)),
    ...faults(
      'may update',
      without(updates, updated).filter((column) => readOnly.includes(column)),
    ),
    ...faults(
      'may insert',
      inserts.filter((column) => appFilled.includes(column)),
    ),
  ];
}

function without(columns: readonly string[], others: readonly string[]): readonly string[] {
  return columns.filter((column) => !others.includes(column));
}
