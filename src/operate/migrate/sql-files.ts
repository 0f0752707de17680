import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { listNames, projectRoot, readFault, readProject, readText } from '../../base/paths.js';
import type { Resource } from '../../resource/definition/resource.js';
import { makeWalls } from '../../resource/statements/walls.js';

export const defaultViewsDir: string = join(projectRoot, 'sql/views');

export class MigrationFailed extends Error {
  override readonly name = 'MigrationFailed';
}

/** `core` is applied once, by number; `views` and `gateway` (made of the definitions) whenever a file changes. */
export type Root = 'core' | 'views' | 'gateway';

export interface SqlFile {
  readonly root: Root;
  readonly name: string;
  readonly sql: string;
  readonly hash: string;
}

/** Returns the files in the order in which they are applied. Throws MigrationFailed when there are none, or one of another name. */
export function readSqlFiles(root: 'core' | 'views', folder: string): SqlFile[] {
  const names = listSqlNames(folder);
  const others = names.filter((name) => !/^[\w-]+\.sql$/.test(name));
  if (others.length > 0)
    throw new MigrationFailed(
      `The folder ${folder} holds files that are not named such as klanten.sql, in letters, digits, _ and - alone: ${others.join(', ')}. Rename them, or move them elsewhere.`,
    );
  if (names.length === 0) throw new MigrationFailed(`The folder ${folder} holds no files such as klanten.sql.`);
  return names.map((name) => {
    const sql = readSqlText(folder, name);
    return { root, name, sql, hash: createHash('sha256').update(sql).digest('hex') };
  });
}

export function listWallFiles(resources: readonly Resource[]): SqlFile[] {
  return makeWalls(resources).map((wall) => ({ root: 'gateway', ...wall }));
}

export function readSqlText(folder: string, name: string): string {
  try {
    return readText(join(folder, name));
  } catch (error) {
    throw new MigrationFailed(`The file ${join(folder, name)} cannot be read: ${readFault(error)}.`);
  }
}

/** Sorts the names. Throws MigrationFailed when the folder cannot be read. */
export function listSqlNames(folder: string): string[] {
  return listNames(folder, '.sql', (fault) => new MigrationFailed(`The folder ${folder} cannot be read: ${fault}.`));
}

/** A `removed` file is only in the database; the objects of an `altered` one were changed by hand. */
export interface FileState {
  readonly root: Root;
  readonly name: string;
  readonly state: 'applied' | 'pending' | 'changed' | 'removed' | 'altered';
}

/** `objects` are named as DROP names them, with their digest; core files note their functions. */
const appliedFiles = `create table if not exists gateway.applied_files (
  root text, name text, hash text not null, objects text[] not null default '{}', digest text, sources jsonb,
  primary key (root, name))`;

/** Statements that grant PUBLIC its former rights, and drop indexes and policies. */
const undo =
  'create table if not exists gateway.undo (place integer generated always as identity primary key, statement text not null)';

export async function createMigrationTables(client: pg.Client): Promise<void> {
  const tables = `${appliedFiles}; ${undo}; create table if not exists gateway.migration_lock ()`;
  await createObjects(client, `create schema if not exists gateway; ${tables}`);
}

/** Runs SQL that creates objects. */
export async function createObjects(client: pg.ClientBase, sql: string): Promise<void> {
  await client.query(sql);
  await client.query(readProject('sql/migrate/ungrant-defaults.sql'));
}

/** Only reads. A file whose objects are missing, as after DROP … CASCADE, is pending. */
export async function readFileStates(
  client: pg.ClientBase,
  roots: readonly Root[],
  files: readonly SqlFile[],
): Promise<FileState[]> {
  const isCore = roots.includes('core');
  const { rows } = await client.query<{ isThere: boolean }>(
    `select to_regclass('gateway.applied_files') is not null and ($1 or to_regproc('gateway.digest_of') is not null) as "isThere"`,
    [isCore],
  );
  const listedFiles = files.map(({ root, name, hash }) => ({ root, name, hash, state: 'pending' as const }));
  if (!rows[0]?.isThere) return listedFiles;
  const text = `
    select root, name, case when f.hash is null then 'removed' when a.hash is null or a.digest is not null and a.now is null then 'pending'
      when a.hash <> f.hash then 'changed' when a.digest is distinct from a.now then 'altered' else 'applied' end as state
    from rows from (jsonb_to_recordset($1) as (root text, name text, hash text)) with ordinality f (root, name, hash, place)
      full join (
        select *, ${isCore ? 'digest' : 'gateway.digest_of(objects)'} as now from gateway.applied_files where root = any ($2)
      ) a using (root, name)
    order by place, root, name`;
  return (await client.query<FileState>(text, [JSON.stringify(listedFiles), roots])).rows;
}

/** Must be called in the transaction that applies the file. */
export async function noteApplied(
  client: pg.ClientBase,
  { root, name, hash }: SqlFile,
  objects: readonly string[] | null = null,
): Promise<void> {
  const notedValues = objects === null ? 'null, null' : 'gateway.digest_of($4), gateway.sources_of($4)';
  const text = `insert into gateway.applied_files (root, name, hash, objects, digest, sources) values ($1, $2, $3, $4, ${notedValues})`;
  await client.query(text, [root, name, hash, objects ?? []]);
}

/** The wall is no better than the gateway's own objects, so their states are kept with the last core file. */
export async function noteCoreObjects(client: pg.ClientBase): Promise<void> {
  await client.query(readProject('sql/migrate/note-core-objects.sql'));
}

export function explainRefusal({ root, name, sql }: SqlFile, error: unknown): MigrationFailed {
  const { message, hint, detail, position, internalPosition, internalQuery } = error as pg.DatabaseError;
  // Other internal positions belong to statements inside a statement.
  const place = internalQuery === undefined ? position : internalQuery === sql ? internalPosition : undefined;
  const line = place === undefined ? '' : `:${sql.slice(0, Number(place) - 1).split('\n').length}`;
  const addition = detail ?? hint;
  return new MigrationFailed(`${root}/${name}${line}: ${message}${addition ? ` (${addition})` : ''}`, { cause: error });
}

interface RetryPolicy {
  readonly lockMs: number;
  readonly pauseMs: number;
  readonly attempts: number;
  readonly isPassing: (error: { readonly code?: string; readonly routine?: string }) => boolean;
}

/** Tries again after a passing error. Throws the last error. */
export async function runInTransaction<T>(
  client: pg.Client,
  { lockMs, pauseMs, attempts, isPassing }: RetryPolicy,
  work: () => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      await client.query(`begin; set local lock_timeout = ${lockMs}`);
      const result = await work();
      await client.query('commit');
      return result;
    } catch (error) {
      await client.query('rollback').catch(() => undefined); // a lost connection has rolled back
      const cause = (error instanceof MigrationFailed ? error.cause : error) ?? {};
      if (attempt >= attempts || !isPassing(cause)) throw error;
      await sleep(pauseMs * (0.5 + Math.random()));
    }
  }
}
