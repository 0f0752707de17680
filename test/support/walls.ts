import type pg from 'pg';
import { wallFiles } from '../../src/operate/migrate/sql-files.js';
import { withTypes } from '../../src/operate/migrate/views.js';
import { loadResources } from '../../src/resource/definition/load.js';
import type { Resource } from '../../src/resource/definition/resource.js';

/** Makes the views of the roles that the database lacks, for the definitions or those in a folder, as `migrate` does. */
export async function makeWalls(primary: pg.Client, definitions: string | readonly Resource[]): Promise<void> {
  const resources = typeof definitions === 'string' ? loadResources(definitions) : definitions;
  for (const file of wallFiles(resources)) {
    const [, view] = /create view (\S+)/.exec(file.sql) ?? [];
    const { rows } = await primary.query('select to_regclass($1) as it', [view]);
    if (rows[0].it === null) await primary.query(await withTypes(primary, file));
  }
}
