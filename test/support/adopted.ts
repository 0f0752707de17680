import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import pg from 'pg';
import { urlAs } from '../../demo/cluster/passwords.js';
import type { Finding } from '../../src/check/finding.js';
import { loadResources } from '../../src/definition/load.js';
import type { Resource } from '../../src/definition/resource.js';
import { startGateway } from '../../src/gateway.js';
import { loadSettings, type Settings } from '../../src/settings.js';
import { type CommandResult, commandLine } from './command-line.js';
import { eventually, shared, type TestContext } from './workspace.js';

/** A new folder, removed after the test. */
export function emptyFolder(t: ExecutionContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'adopt-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  return folder;
}

/** A database that the function fills, dropped after the test, and the settings that lead to it. */
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
  const { dataKeys } = database.settings;
  const replicaUrls = urlAs(shared.replicas[0] as string, 'gateway_reader', own);
  return { adminUrl, replicaUrls, primaryUrls: urlAs(shared.primary, 'gateway_writer', own), dataKeys };
}

export interface Adopted {
  readonly folder: string;
  readonly output: string;
  readonly resources: ReadonlyMap<string, Resource>;
  readonly resourcesDir: string;
  readonly run: (...args: string[]) => Promise<CommandResult>;
}

/** Runs commands of the gateway with the definitions in the folder. */
export function commandsIn(folder: string, settings: Partial<Settings>): Pick<Adopted, 'run' | 'resourcesDir'> {
  const resourcesDir = join(folder, 'config/resources');
  return { resourcesDir, run: (...args) => commandLine(args, { ...settings, resourcesDir }) };
}

/** Drafts into a new folder, and runs the commands on it. */
export async function adopted(t: ExecutionContext, settings: Partial<Settings>, ...args: string[]): Promise<Adopted> {
  const folder = emptyFolder(t);
  const { resourcesDir, run } = commandsIn(folder, settings);
  const drafted = await run('adopt', ...args, '--out', folder);
  t.is(drafted.code, 0, drafted.stderr);
  const views = ['--views', join(folder, 'sql/views')];
  for (const args of [
    ['migrate', ...views],
    ['migrate', ...views, '--indexes'],
    ['views', '--create', ...views],
  ]) {
    const { code, stderr } = await run(...args);
    t.is(code, 0, `${args.join(' ')}: ${stderr}`);
  }
  const resources = new Map(loadResources(resourcesDir).map((resource) => [resource.name, resource]));
  return { folder, output: drafted.stdout, resources, resourcesDir, run };
}

/** The findings of check that are not ok, as soon as the replica has the views. */
export async function wrong(t: ExecutionContext, { run }: Pick<Adopted, 'run'>): Promise<Finding[]> {
  let findings: readonly Finding[] = [];
  await eventually(
    t,
    'the replica has the views',
    async () => {
      const { stdout } = await run('check', '--json');
      findings = (JSON.parse(stdout) as { findings: Finding[] }).findings;
      return !findings.some(({ level }) => level === 'refused');
    },
    60_000,
  );
  return findings.filter(({ level }) => level !== 'ok');
}

/** A gateway with the definitions, stopped after the test. */
export async function served(t: ExecutionContext, settings: Partial<Settings>, resourcesDir: string): Promise<string> {
  const own = { host: '127.0.0.1', port: 0, opsPort: 0, resourcesDir };
  const gateway = await startGateway(loadSettings({}, { ...settings, ...own }), { write: () => undefined });
  t.teardown(() => gateway.stop());
  return gateway.url;
}

/** The Authorization header of a new token that the replicas have: asked for it before, a gateway would count failures of this address. */
export async function authorizationOf(
  t: ExecutionContext<TestContext>,
  { run }: Pick<Adopted, 'run'>,
  { workspace, owner, scopes }: { workspace: string; owner: string; scopes: string },
): Promise<string> {
  const options = ['--workspace', workspace, '--owner', owner, '--name', 'test', '--scopes', scopes];
  const { stdout, stderr } = await run('tokens', 'create', ...options);
  t.regex(stdout, /^wdg_/, stderr);
  await t.context.database.caughtUp();
  return `Bearer ${stdout.trim()}`;
}

/** The schema of an app with names in mixed case, keys of several columns, and a log; beside it schemas that cannot be adopted. */
export const shop = `
  create schema "Shop Floor";
  set search_path = "Shop Floor";
  create table "Companies" ("Id" text primary key, "Name" text);
  create table "AppUser" ("CompanyId" text not null references "Companies", "userNo" bigint generated always as identity, "e-mail" text,
    "role" text, primary key ("CompanyId", "userNo"));
  create table "Orders" ("CompanyId" text not null references "Companies", "orderNo" bigint generated always as identity,
    "createdAt" timestamptz not null default now(), "order" text, "remarkText" varchar(40), "total price" numeric(14,4) not null default 1.1,
    "isDeleted" boolean not null default false, "Secret" bytea, "Default" boolean, primary key ("CompanyId", "orderNo"));
  create table "OrderLine" ("CompanyId" text not null, "orderNo" bigint not null, "lineNo" integer not null, "label" text,
    primary key ("CompanyId", "orderNo", "lineNo"), foreign key ("CompanyId", "orderNo") references "Orders");
  create table "ChangeLog" ("logId" bigint generated always as identity primary key, "CompanyId" text not null,
    "happenedAt" timestamptz not null default now(), "entityType" text not null, "entityId" text not null, "action" text not null,
    "actorType" text not null, "actorId" text, "changes" json not null);
  insert into "Companies" values ('3f2b8a52-7a43-4a57-9d6e-1b1f6a4a0001', 'North'), ('3f2b8a52-7a43-4a57-9d6e-1b1f6a4a0002', 'South');
  insert into "AppUser" ("CompanyId", "e-mail", "role") select "Id", "Name" || '@x.example', 'owner' from "Companies";
  insert into "Orders" ("CompanyId", "order") select "Id", 'x' from "Companies", generate_series(1, 20);
  insert into "OrderLine" select "CompanyId", "orderNo", 1, 'y' from "Orders";
  insert into "ChangeLog" ("CompanyId", "entityType", "entityId", "action", "actorType", "changes")
    select "CompanyId", 'Order', "orderNo"::text, 'update', 'user', '[{"field": "remarkText", "from": null, "to": "a"}]' from "Orders";
  create schema lonely; create table lonely.things (id integer primary key, name text);
  create schema bare;
`;
