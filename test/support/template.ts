import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import type { Cluster } from '../../demo/cluster/cluster.js';
import { type AppName, apps, type SeededApp } from '../../demo/seed/apps.js';
import { seed } from '../../demo/seed/seed.js';
import { projectRoot } from '../../src/base/paths.js';
import { createIndexes } from '../../src/operate/migrate/indexes.js';
import { migrate } from '../../src/operate/migrate/migrations.js';
import { wallKey } from './walls.js';

/** The seeded workspaces of a template; [0] has some 10,000 rows, or 20,000 in that of the fault tests, [1] few. */
export interface SharedTemplate {
  readonly workspaces: { id: string; name: string; ownerId: string }[];
}

export const templateName = 'template_workspace';
export const cloned: Readonly<Record<AppName, string>> = { first: 'template_first', second: 'template_second' };
/** The first app has half as many as the demo, because most tests read whole lists; the second has half of that. */
export const clonedRows: Readonly<Record<AppName, string>> = { first: '1500', second: '750' };

export async function makeTemplate(
  cluster: Cluster,
  keys: Readonly<Record<string, string>>,
  { app = apps.first, name = templateName, rows = 'small' }: { app?: SeededApp; name?: string; rows?: string } = {},
): Promise<SharedTemplate> {
  const admin = new pg.Client(cluster.primary.url());
  await admin.connect();
  await admin.query(`create database ${name}`);
  await admin.end();
  const url = cluster.primary.url(name);
  const client = new pg.Client(url);
  await client.connect();
  try {
    await client.query(await readFile(join(projectRoot, `sql/apps/${app.name}/schema.sql`), 'utf8'));
    const bytes = Object.fromEntries(Object.entries(keys).map(([id, key]) => [id, Buffer.from(key, 'base64')]));
    const { workspaces } = await seed(client, app, {
      rows,
      keys: bytes,
      now: new Date('2026-11-21T12:00:00Z'),
    });
    await migrate(url, { viewsDir: app.viewsDir, resourcesDir: app.resourcesDir, wallKey });
    await createIndexes(url, { viewsDir: app.viewsDir });
    await client.query(await readFile(join(projectRoot, `test/support/probe/${app.name}.sql`), 'utf8'));
    await cluster.setPasswords(['gateway_reader', 'gateway_writer']);
    return { workspaces };
  } finally {
    await client.end();
  }
}
