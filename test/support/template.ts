import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import type { Cluster } from '../../src/demo/cluster/cluster.js';
import { apps, type SeededApp } from '../../src/demo/seed/apps.js';
import { seed } from '../../src/demo/seed/seed.js';
import { createIndexes } from '../../src/migrate/indexes.js';
import { migrate } from '../../src/migrate/migrations.js';
import { projectRoot } from '../../src/paths.js';

/** The seeded workspaces of the template; [0] has some 20,000 rows, [1] few. */
export interface SharedTemplate {
  readonly workspaces: { id: string; name: string; ownerId: string }[];
}

/** The database that test files clone: a reference app, small data set, gateway schema. */
export const templateName = 'template_workspace';
/** The same of the second app. */
export const secondTemplateName = 'template_second';

export async function makeTemplate(
  cluster: Cluster,
  keys: Readonly<Record<string, string>>,
  app: SeededApp = apps.first,
  name = templateName,
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
      rows: 'small',
      keys: bytes,
      now: new Date('2026-11-21T12:00:00Z'),
    });
    await migrate(url, { viewsDir: app.viewsDir });
    await createIndexes(url, { viewsDir: app.viewsDir });
    await client.query(await readFile(join(projectRoot, `test/support/probe/${app.name}.sql`), 'utf8'));
    await cluster.setPasswords(['gateway_reader', 'gateway_writer']);
    return { workspaces };
  } finally {
    await client.end();
  }
}
