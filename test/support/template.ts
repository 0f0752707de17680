import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import type { Cluster } from '../../src/demo/cluster/cluster.js';
import { seed } from '../../src/demo/seed/seed.js';
import { migrate } from '../../src/migrate/migrations.js';
import { projectRoot } from '../../src/paths.js';

/** The seeded workspaces of the template; [0] has some 20,000 rows, [1] few. */
export interface SharedTemplate {
  readonly workspaces: { id: string; name: string; ownerId: string }[];
}

/** The database every test file clones: reference app, small data set, gateway schema and its proposed indexes. */
export const templateName = 'template_workspace';

export async function makeTemplate(cluster: Cluster, keys: Readonly<Record<string, string>>): Promise<SharedTemplate> {
  const admin = new pg.Client(cluster.primary.url());
  await admin.connect();
  await admin.query(`create database ${templateName}`);
  await admin.end();
  const url = cluster.primary.url(templateName);
  const client = new pg.Client(url);
  await client.connect();
  try {
    await client.query(await readFile(join(projectRoot, 'sql/apps/first/schema.sql'), 'utf8'));
    const bytes = Object.fromEntries(Object.entries(keys).map(([id, key]) => [id, Buffer.from(key, 'base64')]));
    const { workspaces } = await seed(client, { rows: 'small', keys: bytes, now: new Date('2026-11-21T12:00:00Z') });
    await migrate(url);
    await cluster.setPasswords(['gateway_reader', 'gateway_writer']);
    return { workspaces };
  } finally {
    await client.end();
  }
}
