import pg from 'pg';
import { runAsAdmin } from '../../postgres/admin.js';
import { getDatabaseErrorKind } from '../../postgres/database-errors.js';
import type { WorkspaceId } from '../../postgres/statement.js';
import { getPlace, type Leaf, listLeaves, nameRecords, type Resource } from '../../resource/definition/resource.js';
import { runReadOnly } from '../check-session.js';
import { type Item, makeItem, summarizeFaults } from '../finding.js';
import { readPlan } from '../plan-scans.js';

const rowsMax = 200;
const limits = `set local statement_timeout = '2s'; set local search_path = ''`;

/**
 * Reads all workspaces of the sample, as the admin. If another table has the row's workspace, a foreign reference shows the row to the
 * wrong one, so it is refused. If the row's own column has it, the reference is only odd.
 */
export async function checkReferences(
  adminUrl: string,
  resources: readonly Resource[],
  workspaces: readonly WorkspaceId[],
): Promise<Item[]> {
  const referring = resources.map((resource) => ({
    resource,
    references: listLeaves(resource).filter(({ field }) => resources.some(({ name }) => name === field.references)),
  }));
  const asked = referring.filter(({ references }) => references.length > 0);
  if (asked.length === 0 || workspaces.length === 0) return [];
  try {
    return await runAsAdmin(adminUrl, async (client) => {
      const items: Item[] = [];
      for (const { resource, references } of asked)
        items.push(...(await compareReferences(client, resource, references, resources, workspaces)));
      return items;
    });
  } catch (error) {
    if ((error as { code?: unknown }).code === undefined) throw error; // the error is not of the database or of its connection
    return []; // the item `workspaces` says that ADMIN_URL does not work
  }
}

function compareReferences(
  client: pg.Client,
  resource: Resource,
  references: readonly Leaf[],
  resources: readonly Resource[],
  workspaces: readonly WorkspaceId[],
): Promise<Item[]> {
  const { name, file } = resource;
  const view = nameRecords(resource.view);
  const columns = references.map(({ field }) => pg.escapeIdentifier(field.column));
  const selectSample = (id: WorkspaceId): string =>
    `(select workspace_id::text as own, ${columns.map((column, i) => `${column} as r${i}`).join(', ')} from ${view}
      where workspace_id = ${pg.escapeLiteral(id)} limit ${rowsMax})`;
  const ask = async (): Promise<Item[]> => {
    const counts = references.map(({ field }, i) => {
      const target = nameRecords((resources.find((each) => each.name === field.references) as Resource).view);
      // an id can be unique only within its workspace
      return `count(*) filter (where (select bool_and(o.workspace_id::text <> s.own) from ${target} o where o.id = s.r${i}))::int`;
    });
    const text = `select count(*)::int, ${counts.join(', ')} from (${workspaces.map(selectSample).join(' union all ')}) s`;
    const { rows } = await client.query<number[]>({ text, rowMode: 'array' });
    const [count = 0, ...foreign] = rows[0] ?? [];
    const faults = references.flatMap(({ path }, i) =>
      (foreign[i] ?? 0) > 0
        ? [`${getPlace(path)}: ${foreign[i]} of ${count} rows refer to a record of another workspace`]
        : [],
    );
    const whenOk = `${count} records refer to records of their workspace.`;
    const level = faults.length > 0 && (await isOfOneTable(client, view)) ? 'warning' : 'refused';
    return [summarizeFaults('references', faults, { whenOk, object: name, level, file })];
  };
  const describeRefusal = (error: Error): Item[] =>
    // an item of the view names what is missing
    getDatabaseErrorKind(error) === 'unfit'
      ? []
      : [makeItem('failed', 'references', `They cannot be compared: ${error.message}.`, name)];
  return runReadOnly(client, { settings: limits, object: name }, ask, describeRefusal);
}

/** Tells whether workspace and id come from one table. */
async function isOfOneTable(client: pg.Client, view: string): Promise<boolean> {
  const { Output = [] } = await readPlan(client, `select workspace_id, id from ${view}`);
  const [workspace, id] = Output.map((sql) => /("(?:[^"]|"")+"|\w+)\./.exec(sql)?.[1]);
  return workspace === id;
}
