import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { projectRoot } from '../../src/base/paths.js';
import { loadResources } from '../../src/resource/definition/load.js';
import type { Resource } from '../../src/resource/definition/resource.js';
import type { TestContext } from './workspace.js';

/** Loads definitions from a folder of these files; a file is its text or what becomes its JSON. */
export function load(files: Readonly<Record<string, unknown>>): readonly Resource[] {
  const folder = mkdtempSync(join(tmpdir(), 'definitions-'));
  try {
    for (const [name, content] of Object.entries(files))
      writeFileSync(join(folder, name), typeof content === 'string' ? content : JSON.stringify(content));
    return loadResources(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

export function definitionsWith(
  t: ExecutionContext,
  added: Readonly<Record<string, object>>,
  from = join(projectRoot, 'config/resources'),
): string {
  const folder = mkdtempSync(join(tmpdir(), 'definitions-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  cpSync(from, folder, { recursive: true });
  for (const [name, content] of Object.entries(added))
    writeFileSync(join(folder, `${name}.json`), JSON.stringify(content));
  return folder;
}

export function withInstallations(
  t: ExecutionContext<TestContext>,
  change: (definition: ReturnType<typeof JSON.parse>) => void,
): { readonly resourcesDir: string } {
  const from = t.context.database.settings.resourcesDir || join(projectRoot, 'config/resources');
  const definition = JSON.parse(readFileSync(join(from, 'installaties.json'), 'utf8'));
  change(definition);
  return { resourcesDir: definitionsWith(t, { installaties: { ...definition, $schema: undefined } }, from) };
}

export const field = (column: string, type: string, more: object = {}): object => ({
  column,
  type,
  description: 'A.',
  ...more,
});
export const items = {
  name: 'items',
  record: 'item',
  description: 'Items.',
  view: 'records.items',
  auditEntity: 'Item',
  version: 'version',
  order: ['made_at', 'id'],
  filters: { state: { column: 'state', kind: 'equals', description: 'Only these.' } },
  write: {
    view: 'records.items_write',
    audit: { created: 'create', changed: 'update', actorType: 'token' },
  },
  fields: {
    id: field('id', 'uuid'),
    ownerId: field('owner_id', 'bigint', { references: 'owners', write: { required: true } }),
    entity: field('entity', 'text', { example: 'item' }),
    state: field('state', 'text', { nullable: true, write: {} }),
    place: { description: 'A.', group: { town: field('town', 'text', { nullable: true, codec: 'base64' }) } },
    size: field('size', 'number'),
    data: field('data', 'json', { show: ['/a'] }),
    madeAt: field('made_at', 'timestamp'),
    version: field('version', 'integer'),
  },
};
export const owners = {
  name: 'owners',
  record: 'owner',
  description: 'Owners.',
  view: 'records.owners',
  order: ['id'],
  fields: { id: field('id', 'bigint'), name: field('name', 'text') },
};

export function altered<T>(definition: T, path: string, value: unknown): T {
  const copy = structuredClone(definition) as Record<string, unknown>;
  const names = path.split('/');
  const last = names.pop() as string;
  let at = copy;
  for (const name of names) at = at[name] as Record<string, unknown>;
  if (value === undefined) delete at[last];
  else at[last] = value;
  return copy as T;
}
