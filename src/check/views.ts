import type pg from 'pg';
import { type FieldType, type FilterKind, leaves, type Resource } from '../definition/resource.js';
import { resources } from '../definition/resources/all.js';
import { checkSql } from './check-sql.js';
import { type Item, verdict } from './finding.js';

/** Column types whose text form the row writer of a field type can put into JSON. */
const accepted: Readonly<Record<FieldType, readonly string[]>> = {
  uuid: ['uuid'],
  bigint: ['bigint', 'integer'],
  text: ['text', 'character varying', 'character'],
  integer: ['smallint', 'integer', 'bigint'],
  number: ['numeric', 'smallint', 'integer', 'bigint', 'real', 'double precision'],
  boolean: ['boolean'],
  date: ['date'],
  timestamp: ['timestamp with time zone'],
  json: ['json', 'jsonb'],
};

const filterType: Readonly<Record<Exclude<FilterKind, 'equals'>, FieldType>> = {
  dateFrom: 'date',
  dateTo: 'date',
  dayFrom: 'timestamp',
  dayTo: 'timestamp',
};

interface ViewRow {
  readonly name: string;
  readonly is_view: boolean;
  readonly owner: string;
  readonly owner_superuser: boolean;
  readonly owner_bypasses: boolean;
  readonly invoker: boolean;
  readonly filtered: boolean;
  readonly owned_tables: string[];
  readonly columns: Readonly<Record<string, { readonly type: string; readonly readable: boolean }>>;
}

/** The views of all resources: there, with the columns they need, owned as they must be, and closed without a workspace. */
export async function checkViews(client: pg.Client): Promise<Item[]> {
  const { rows } = await client.query<ViewRow>(checkSql('views'), [resources.map(({ view }) => view)]);
  const found = new Map(rows.map((row) => [row.name, row]));
  const items: Item[] = [];
  for (const resource of resources) {
    const view = found.get(resource.view);
    const faults = view === undefined ? ['it does not exist: run `migrate`, or write it'] : viewFaults(resource, view);
    if (view?.columns.workspace_id?.readable) faults.push(...(await wallFaults(client, resource.view)));
    items.push(
      verdict(`view ${resource.view}`, faults, 'Every column is there; without its workspace it shows no row.'),
    );
  }
  return items;
}

/** The columns a resource needs of its view, each with the field type it is used as. */
function columnsOf(resource: Resource): Map<string, FieldType> {
  return new Map<string, FieldType>([
    ['workspace_id', 'uuid'],
    ...leaves(resource).map(({ field }) => [field.column, field.type] as const),
    ...Object.values(resource.filters).map(
      ({ column, kind, type }) => [column, kind === 'equals' ? type : filterType[kind]] as const,
    ),
    ...resource.order.map(({ column, type }) => [column, type] as const),
  ]);
}

function viewFaults(resource: Resource, view: ViewRow): string[] {
  const faults: string[] = [];
  if (!view.is_view) faults.push('it is not a view');
  for (const [column, type] of columnsOf(resource)) {
    const actual = view.columns[column];
    if (actual === undefined) faults.push(`column ${column} is missing`);
    else if (!accepted[type].includes(actual.type)) {
      faults.push(`column ${column} is ${actual.type}, not ${accepted[type].join(' or ')}`);
    } else if (!actual.readable) faults.push(`the role may not select column ${column}`);
  }
  if (!view.filtered) faults.push('its definition does not call gateway.workspace(): the workspace filter is missing');
  if (view.invoker) faults.push('it has security_invoker, and the role may read no table');
  if (view.owner_superuser) faults.push(`its owner ${view.owner} is a superuser`);
  else if (view.owner_bypasses) faults.push(`its owner ${view.owner} has BYPASSRLS`);
  else if (view.owned_tables.length > 0)
    faults.push(`its owner ${view.owner} also owns ${view.owned_tables.join(', ')}`);
  return faults;
}

/** Proven by behaviour: no row without a workspace, and none in a workspace that cannot be. One round trip. */
async function wallFaults(client: pg.Client, view: string): Promise<string[]> {
  const open = `select exists (select from ${view}) as open`;
  const nobody = "set local gateway.workspace_id = '00000000-0000-0000-0000-000000000000'";
  try {
    const results = await client.query(`begin read only; ${open}; ${nobody}; ${open}; commit`);
    const [, without, , elsewhere] = results as unknown as pg.QueryResult<{ open: boolean }>[];
    return [
      ...(without?.rows[0]?.open ? ['it shows rows without a workspace'] : []),
      ...(elsewhere?.rows[0]?.open ? ['it shows rows in a workspace that does not exist'] : []),
    ];
  } catch (error) {
    if ((error as { severity?: string }).severity === undefined) throw error;
    await client.query('rollback');
    return [`it cannot be read: ${(error as Error).message}`];
  }
}
