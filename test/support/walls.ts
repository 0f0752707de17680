import type pg from 'pg';
import { listWallFiles } from '../../src/operate/migrate/sql-files.js';
import { addTypes } from '../../src/operate/migrate/views.js';
import type { WorkspaceId } from '../../src/postgres/statement.js';
import { makeWorkspaceMac } from '../../src/postgres/workspace-mac.js';
import { loadResources } from '../../src/resource/definition/load.js';
import type { Resource } from '../../src/resource/definition/resource.js';

export const wallKey = Buffer.alloc(32, 'wall').toString('base64');

const computeMac = makeWorkspaceMac(wallKey);
export const makeMac = (workspace: string): string => computeMac(workspace as WorkspaceId);

export async function makeWalls(primary: pg.Client, definitions: string | readonly Resource[]): Promise<void> {
  const resources = typeof definitions === 'string' ? loadResources(definitions) : definitions;
  for (const file of listWallFiles(resources)) {
    const [, view] = /create view (\S+)/.exec(file.sql) ?? [];
    const { rows } = await primary.query('select to_regclass($1) as it', [view]);
    if (rows[0].it === null) await primary.query(await addTypes(primary, file));
  }
}
