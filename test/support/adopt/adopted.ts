import { randomUUID } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import pg from 'pg';
import { urlAs } from '../../../demo/cluster/passwords.js';
import type { Finding } from '../../../src/doctor/finding.js';
import { runAsAdmin } from '../../../src/postgres/admin.js';
import { loadResources } from '../../../src/resource/definition/load.js';
import type { Resource } from '../../../src/resource/definition/resource.js';
import { startGateway } from '../../../src/serve/gateway.js';
import { loadSettings, type Settings } from '../../../src/settings.js';
import { type CommandResult, commandLine } from '../command-line.js';
import { shared, type TestContext } from '../workspace.js';

export function emptyFolder(t: ExecutionContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'adopt-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  return folder;
}

export async function newDatabase(
  t: ExecutionContext<TestContext>,
  name: string,
  fill: (client: pg.Client) => Promise<unknown>,
): Promise<Partial<Settings>> {
  const { database } = t.context;
  const own = `${database.name}_${name}`;
  await database.primary.query(`create database ${own}`);
  t.teardown(() => database.primary.query(`drop database if exists ${own} with (force)`));
  const adminUrl = urlAs(shared.primary, 'postgres', own);
  const client = new pg.Client(adminUrl);
  await client.connect();
  await fill(client).finally(() => client.end());
  const { dataKeys, wallKey } = database.settings;
  const replicaUrls = urlAs(shared.replicas[0] as string, 'gateway_reader', own);
  return { adminUrl, replicaUrls, primaryUrls: urlAs(shared.primary, 'gateway_writer', own), dataKeys, wallKey };
}

export interface Adopted {
  readonly folder: string;
  readonly output: string;
  readonly resources: ReadonlyMap<string, Resource>;
  readonly settings: Partial<Settings>;
  readonly run: (...args: string[]) => Promise<CommandResult>;
  /** Runs as the admin. */
  readonly query: (sql: string) => Promise<pg.QueryResult>;
}

export function commandsIn(folder: string, settings: Partial<Settings>): Pick<Adopted, 'run' | 'settings' | 'query'> {
  const own = { ...settings, resourcesDir: join(folder, 'config/resources') };
  const query: Adopted['query'] = (sql) => runAsAdmin(settings.adminUrl as string, (client) => client.query(sql));
  return { settings: own, run: (...args) => commandLine(args, own), query };
}

export async function adopted(t: ExecutionContext, settings: Partial<Settings>, ...args: string[]): Promise<Adopted> {
  const folder = emptyFolder(t);
  const commands = commandsIn(folder, settings);
  const drafted = await commands.run('adopt', ...args, '--out', folder);
  t.is(drafted.code, 0, drafted.stderr);
  const views = ['--views', join(folder, 'sql/views')];
  for (const args of [
    ['migrate', ...views],
    ['migrate', ...views, '--indexes'],
    ['views', '--create', ...views],
  ]) {
    const { code, stderr } = await commands.run(...args);
    t.is(code, 0, `${args.join(' ')}: ${stderr}`);
  }
  const found = loadResources(join(folder, 'config/resources'));
  return {
    folder,
    output: drafted.stdout + notesIn(join(folder, 'sql/views')),
    resources: new Map(found.map((each) => [each.name, each])),
    ...commands,
  };
}

function notesIn(folder: string): string {
  const files = readdirSync(folder).filter((name) => name.endsWith('.sql'));
  return files
    .flatMap((name) =>
      [...readFileSync(join(folder, name), 'utf8').matchAll(/^-- Note: (.*)$/gm)].map(
        ([, text]) => `  sql/views/${name}: ${text}\n`,
      ),
    )
    .join('');
}

/** The schema shop has two companies with an owner each, and more tables, in which $own stands for id and company. */
export const shopOf = (tables: string): string => `
  create schema shop; set search_path = shop;
  create table companies (id bigint primary key, name text not null);
  create table staff (id bigint primary key, company_id bigint not null references companies, email text not null, is_owner boolean not null);
  insert into companies values (1, 'North'), (2, 'South');
  insert into staff select id, id, name || '@shop.example', true from companies;
  ${tables.replaceAll('$own', 'id bigint generated always as identity primary key, company_id bigint not null references companies')};
  analyze`;

export async function adoptedShop(
  t: ExecutionContext<TestContext>,
  app: string,
  { args = [], findings = [] }: { args?: readonly string[]; findings?: readonly string[] } = {},
): Promise<Adopted> {
  const settings = await newDatabase(t, 'shop', (client) => client.query(app));
  const draft = await adopted(t, settings, '--schema', 'shop', ...args);
  t.deepEqual((await wrong(t, draft)).map(titleOf).sort(), [...findings]);
  return draft;
}

export const titleOf = ({ level, code, object }: Finding): string => `${level} ${code} ${object}`;

export async function wrong(t: ExecutionContext<TestContext>, { run }: Pick<Adopted, 'run'>): Promise<Finding[]> {
  await t.context.database.caughtUp();
  const { stdout } = await run('check', '--json');
  const { findings } = JSON.parse(stdout) as { findings: Finding[] };
  return findings.filter(({ level }) => level !== 'ok');
}

export interface Answer<Body> {
  readonly status: number;
  readonly etag: string;
  readonly body: Body;
}

/** Asks the API below /api/v1; a body is a POST, and with an ETag a PATCH. An ETag alone is If-None-Match. */
export type Ask = <Body = Readonly<Record<string, unknown>>>(
  path: string,
  more?: { readonly body?: object; readonly etag?: string },
) => Promise<Answer<Body>>;

export async function served(
  t: ExecutionContext,
  { settings }: Pick<Adopted, 'settings'>,
  lines: string[] = [],
): Promise<string> {
  const own = { host: '127.0.0.1', port: 0, opsPort: 0 };
  const gateway = await startGateway(loadSettings({}, { ...settings, ...own }), { write: (line) => lines.push(line) });
  t.teardown(() => gateway.stop());
  return gateway.url;
}

/** Waits until the replicas have the new token: asked for it before, a gateway would count failures of this address. */
export async function tokenOf(
  t: ExecutionContext<TestContext>,
  { run }: Pick<Adopted, 'run'>,
  scopes: string,
  workspace = 'North',
  owner = `${workspace}@shop.example`,
): Promise<string> {
  const options = ['--workspace', workspace, '--owner', owner, '--name', 'test', '--scopes', scopes];
  const { stdout, stderr } = await run('tokens', 'create', ...options);
  t.regex(stdout, /^wdg_/, stderr);
  await t.context.database.caughtUp();
  return stdout.trim();
}

export async function apiOf(
  t: ExecutionContext<TestContext>,
  draft: Pick<Adopted, 'settings' | 'run'>,
  lines: string[] = [],
): Promise<(scopes: string, workspace?: string, owner?: string) => Promise<Ask>> {
  const url = await served(t, draft, lines);
  return async (...of) => {
    const token = await tokenOf(t, draft, ...of);
    return async (path, { body, etag } = {}) => {
      const headers = {
        authorization: `Bearer ${token}`,
        ...(body && { 'content-type': 'application/json', 'idempotency-key': randomUUID() }),
        ...(etag && { [body ? 'if-match' : 'if-none-match']: etag }),
      };
      const method = body ? (etag ? 'PATCH' : 'POST') : 'GET';
      const answer = await fetch(path.startsWith('/') ? `${url}/api/v1${path}` : path, {
        method,
        headers,
        ...(body && { body: JSON.stringify(body) }),
      });
      const text = await answer.text();
      return { status: answer.status, etag: String(answer.headers.get('etag')), body: text && JSON.parse(text) };
    };
  };
}

export interface Page<Item = { readonly id: string }> {
  readonly data: readonly Item[];
  readonly pagination: { readonly next: string | null; readonly total?: number };
}

/** The records of all pages. */
export async function walk<Item = { readonly id: string }>(ask: Ask, path: string): Promise<Item[]> {
  const items: Item[] = [];
  for (let next: string | null = path; next !== null; ) {
    const { data, pagination }: Page<Item> = (await ask<Page<Item>>(next)).body;
    items.push(...data);
    next = pagination.next;
  }
  return items;
}
