import { randomBytes } from 'node:crypto';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type pg from 'pg';
import { readProject } from '../src/base/paths.js';
import { Failure } from '../src/cli/command.js';
import { createToken, listScopes, revokeToken } from '../src/cli/tokens.js';
import { createIndexes } from '../src/operate/migrate/indexes.js';
import { migrate } from '../src/operate/migrate/migrations.js';
import { runAsAdmin } from '../src/postgres/admin.js';
import { loadResources } from '../src/resource/definition/load.js';
import type { Cluster } from './cluster/cluster.js';
import type { DemoOptions } from './options.js';
import type { AppName, SeededApp } from './seed/apps.js';
import { seed } from './seed/seed.js';

/** The demo's database. */
export const databaseName = 'workspace';
/** The login of the app's settings page. */
export const appRole = 'demo_app';

/** A workspace of the demo with its plain tokens by purpose. */
export interface DemoWorkspace {
  readonly id: string;
  readonly name: string;
  readonly tokens: Readonly<Record<string, string>>;
}

/** The scopes of each token of a workspace. */
function tokenScopes({ resourcesDir }: SeededApp): Readonly<Record<string, readonly string[]>> {
  const scopes = listScopes(loadResources(resourcesDir));
  return {
    all: scopes,
    readOnly: scopes.filter((scope) => scope.startsWith('read:')),
    writeOnly: scopes.filter((scope) => scope.startsWith('write:')),
    klanten: ['read:klanten'],
    werkbonnen: ['read:werkbonnen'],
    logboeken: ['read:logboeken'],
    expired: scopes,
    revoked: scopes,
  };
}
const hourMs = 3_600_000;

/** Makes the database of a reference app with its data, the gateway's schema and the tokens. */
export async function makeDatabase(
  cluster: Cluster,
  app: SeededApp,
  { rows, keys, wallKey }: DemoState,
  onProgress: (done: number, what: string) => void,
): Promise<DemoWorkspace[]> {
  await cluster.primary.query(`drop database if exists ${databaseName} with (force)`);
  await cluster.primary.query(`create database ${databaseName}`);
  const url = cluster.primary.url(databaseName);
  return runAsAdmin(url, async (client) => {
    await client.query(readProject(`sql/apps/${app.name}/schema.sql`));
    const { workspaces } = await seed(client, app, {
      rows,
      keys: Object.fromEntries(Object.entries(keys).map(([id, key]) => [id, Buffer.from(key, 'base64')])),
      onProgress,
    });
    await bringUpToDate(cluster, app, wallKey);
    const made: DemoWorkspace[] = [];
    for (const { id, name, ownerId } of workspaces)
      made.push({ id, name, tokens: await makeTokens(client, app, id, ownerId) });
    return made;
  });
}

/** Applies missing migrations and indexes, which a newer gateway on kept data may have, and sets the roles' passwords. */
export async function bringUpToDate(
  cluster: Cluster,
  { viewsDir, resourcesDir }: SeededApp,
  wallKey: string,
): Promise<void> {
  const url = cluster.primary.url(databaseName);
  await migrate(url, { viewsDir, resourcesDir, wallKey });
  await createIndexes(url, { viewsDir });
  await cluster.primary.query(`do $$ begin
      if to_regrole('${appRole}') is null then create role ${appRole} login; end if;
      grant gateway_issuer to ${appRole};
    end $$`);
  await cluster.setPasswords(['gateway_reader', 'gateway_writer', appRole]);
}

/** Ids of the sealed workspace, to show in examples. */
export async function exampleIds(url: string, sealed: string): Promise<{ installationId: string; customerId: string }> {
  const text =
    'select id as "installationId", customer_id as "customerId" from gateway.installaties order by created_at, id limit 1';
  const ids = await runAsAdmin(url, async (client) => {
    await client.query("select set_config('gateway.workspace_id', $1, false)", [sealed]);
    return client.query<{ installationId: string; customerId: string }>(text);
  });
  return ids.rows[0] ?? { installationId: '', customerId: '' };
}

async function makeTokens(
  client: pg.Client,
  app: SeededApp,
  workspaceId: string,
  ownerId: string,
): Promise<Record<string, string>> {
  const tokens: Record<string, string> = {};
  for (const [name, scopes] of Object.entries(tokenScopes(app))) {
    const expiresAt = name === 'expired' ? new Date(Date.now() - hourMs) : null;
    const { id, token } = await createToken(client, { workspaceId, ownerId, name: `demo ${name}`, scopes, expiresAt });
    if (name === 'revoked') await revokeToken(client, id);
    tokens[name] = token;
  }
  return tokens;
}

/**
 * The state that a demo with --dir keeps beside the data. It holds keys and plain tokens, so only the file's owner
 * can read it.
 */
export interface DemoState {
  /** Name of the reference app. */
  readonly app: AppName;
  readonly rows: string;
  /** Base64 of 32 bytes by key id, as in DATA_KEYS. */
  readonly keys: Readonly<Record<string, string>>;
  /** A key as in WALL_KEY. */
  readonly wallKey: string;
  /** Absent until the database is complete, so that the data of an interrupted run is made again. */
  readonly workspaces?: readonly DemoWorkspace[];
}

/** The state kept in the folder, or a new one. Throws Failure when the kept data is of another app or size than asked for. */
export function demoState({ dir, app, rows }: Pick<DemoOptions, 'dir' | 'app' | 'rows'>): DemoState {
  const found = dir === undefined ? undefined : read(join(dir, 'demo.json'));
  const kept = found && { ...found, app: found.app ?? 'first' };
  if (kept?.workspaces === undefined)
    return { app, rows: rows ?? 'small', keys: kept?.keys ?? newKeys(), wallKey: kept?.wallKey ?? newKey() };
  if (app !== kept.app)
    throw new Failure(`${dir} holds a demo with --app ${kept.app}; name another folder for --app ${app}.`);
  if (rows !== undefined && rows !== kept.rows) {
    throw new Failure(`${dir} holds a demo with --rows ${kept.rows}; name another folder for --rows ${rows}.`);
  }
  return kept;
}

/** Keeps the state in the folder. */
export function keepState(dir: string, state: DemoState): void {
  writeWhole(join(dir, 'demo.json'), state);
}

/** Writes a JSON file of mode 0600, because it holds secrets, in one step: no reader sees it incomplete. */
export function writeWhole(path: string, content: object): void {
  const unfinished = `${path}.${process.pid}.tmp`;
  writeFileSync(unfinished, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600 });
  renameSync(unfinished, path);
}

function read(path: string): (Omit<DemoState, 'app'> & Partial<Pick<DemoState, 'app'>>) | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as DemoState;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new Failure(`${path} cannot be used: ${(error as Error).message}`);
  }
}

/** Three keys, as in an app that has rotated its key twice. */
function newKeys(): Record<string, string> {
  return Object.fromEntries(['k1', 'k2', 'k3'].map((id) => [id, newKey()]));
}

const newKey = (): string => randomBytes(32).toString('base64');
