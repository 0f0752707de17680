import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { projectRoot, readFault, readText } from '../../base/paths.js';
import type { Resource } from '../../resource/definition/resource.js';
import { wallsOf } from '../../resource/statements/walls.js';

/** Views and functions over the reference app, which an operator replaces by a folder of views over another app. */
export const defaultViewsDir: string = join(projectRoot, 'sql/views');

/** A migration that PostgreSQL refused, or a folder that does not fit the database; the message names the file and the reason. */
export class MigrationFailed extends Error {
  override readonly name = 'MigrationFailed';
}

/**
 * The roots of SQL files: `core` is applied by number and only once, `views` as often as a file of it changes, and so is `gateway`, the
 * views of the roles, which are made of the definitions.
 */
export type Root = 'core' | 'views' | 'gateway';

/** A file of one of the roots. */
export interface SqlFile {
  readonly root: Root;
  /** Such as 001_roles.sql, or klanten for the views of a definition. */
  readonly name: string;
  readonly sql: string;
  /** SHA-256 of the text, hexadecimal. */
  readonly hash: string;
}

/** The SQL files of the folder in the order in which they are applied. Throws MigrationFailed when there are none, or one of another name. */
export function readSqlFiles(root: 'core' | 'views', folder: string): SqlFile[] {
  const names = sqlNames(folder).filter((name) => !name.startsWith('.')); // such as those that macOS leaves on other disks
  const others = names.filter((name) => !/^[\w-]+\.sql$/.test(name));
  if (others.length > 0)
    throw new MigrationFailed(
      `The folder ${folder} holds files that are not named such as klanten.sql, in letters, digits, _ and - alone: ${others.join(', ')}. Rename them, or move them elsewhere.`,
    );
  if (names.length === 0) throw new MigrationFailed(`The folder ${folder} holds no files such as klanten.sql.`);
  return names.map((name) => {
    const sql = sqlText(folder, name);
    return { root, name, sql, hash: createHash('sha256').update(sql).digest('hex') };
  });
}

/** The views of the roles, one file for each definition and each log. */
export function wallFiles(resources: readonly Resource[]): SqlFile[] {
  return wallsOf(resources).map((wall) => ({ root: 'gateway', ...wall }));
}

/** The text of an SQL file. Throws MigrationFailed. */
export function sqlText(folder: string, name: string): string {
  try {
    return readText(join(folder, name));
  } catch (error) {
    throw new MigrationFailed(`The file ${join(folder, name)} cannot be read: ${readFault(error)}.`);
  }
}

/** The names of the folder's .sql files, sorted. Throws MigrationFailed when the folder cannot be read. */
export function sqlNames(folder: string): string[] {
  try {
    return readdirSync(folder)
      .filter((name) => name.endsWith('.sql'))
      .sort();
  } catch (error) {
    throw new MigrationFailed(`The folder ${folder} cannot be read: ${(error as NodeJS.ErrnoException).code}.`);
  }
}

/**
 * State of a file in a database; `removed`: the database has it and there is no such file; `altered`: what it created is not as it was created,
 * such as a view that was replaced by hand.
 */
export interface FileState {
  readonly root: Root;
  readonly name: string;
  readonly state: 'applied' | 'pending' | 'changed' | 'removed' | 'altered';
}

/** Objects that a file created, as DROP names them, with a digest of them and the names below its views; of core files the functions. */
const appliedFiles = `create table if not exists gateway.applied_files (
  root text, name text, hash text not null, objects text[] not null default '{}', digest text, sources jsonb,
  primary key (root, name))`;

/** Statements that give back what the gateway's own files took from PUBLIC, and drop the indexes that `migrate` made: what stands outside its schemas. */
const undo =
  'create table if not exists gateway.undo (place integer generated always as identity primary key, statement text not null)';

/** Creates the schema, and the tables of applied files, of what to undo, and of the lock, where they are missing. */
export async function prepare(client: pg.Client): Promise<void> {
  await client.query(
    `create schema if not exists gateway; ${appliedFiles}; ${undo}; create table if not exists gateway.migration_lock ()`,
  );
}

/** Compares files with those of their roots that the database has. A file whose objects are gone, as by DROP … CASCADE, is pending. Changes nothing. */
export async function fileStates(
  client: pg.ClientBase,
  roots: readonly Root[],
  files: readonly SqlFile[],
): Promise<FileState[]> {
  const isCore = roots.includes('core');
  const { rows } = await client.query<{ isThere: boolean }>(
    `select to_regclass('gateway.applied_files') is not null and ($1 or to_regproc('gateway.digest_of') is not null) as "isThere"`,
    [isCore],
  );
  const listed = files.map(({ root, name, hash }) => ({ root, name, hash, state: 'pending' as const }));
  if (!rows[0]?.isThere) return listed;
  const text = `
    select root, name, case when f.hash is null then 'removed' when a.hash is null or a.digest is not null and a.now is null then 'pending'
      when a.hash <> f.hash then 'changed' when a.digest is distinct from a.now then 'altered' else 'applied' end as state
    from rows from (jsonb_to_recordset($1) as (root text, name text, hash text)) with ordinality f (root, name, hash, place)
      full join (
        select *, ${isCore ? 'digest' : 'gateway.digest_of(objects)'} as now from gateway.applied_files where root = any ($2)
      ) a using (root, name)
    order by place, root, name`;
  return (await client.query<FileState>(text, [JSON.stringify(listed), roots])).rows;
}

/** Notes that the file was applied, with the objects that a file of views made; to be called in the transaction that applies it. */
export async function noteApplied(
  client: pg.ClientBase,
  { root, name, hash }: SqlFile,
  objects: readonly string[] | null = null,
): Promise<void> {
  const noted = objects === null ? 'null, null' : 'gateway.digest_of($4), gateway.sources_of($4)';
  const text = `insert into gateway.applied_files (root, name, hash, objects, digest, sources) values ($1, $2, $3, $4, ${noted})`;
  await client.query(text, [root, name, hash, objects ?? []]);
}

/** Notes the functions of the gateway's own files with the last of these, to be called when one was applied: the wall is no better than they are. */
export async function noteCoreFunctions(client: pg.ClientBase): Promise<void> {
  await client.query(`
    with own (objects) as (
      select coalesce(array_agg(concat(o.type, ' ', o.identity) order by o.identity), '{}')
      from pg_proc p, pg_identify_object('pg_proc'::regclass, p.oid, 0) o
      where p.pronamespace = 'gateway'::regnamespace
        and not exists (select from gateway.applied_files f where f.root <> 'core' and concat(o.type, ' ', o.identity) = any (f.objects))
    )
    update gateway.applied_files f set objects = case when f.name = last then own.objects else '{}' end,
      digest = case when f.name = last then gateway.digest_of(own.objects) end
    from own, (select max(name) as last from gateway.applied_files where root = 'core') newest where f.root = 'core'`);
}

/** The error of PostgreSQL with the file, and its line where PostgreSQL gives a position. */
export function refused({ root, name, sql }: SqlFile, error: unknown): MigrationFailed {
  const { message, hint, detail, position, internalPosition, internalQuery } = error as pg.DatabaseError;
  // Other internal positions belong to statements inside a statement, and an outer one to the statement that executes the file.
  const place = internalQuery === undefined ? position : internalQuery === sql ? internalPosition : undefined;
  const line = place === undefined ? '' : `:${sql.slice(0, Number(place) - 1).split('\n').length}`;
  const more = detail ?? hint;
  return new MigrationFailed(`${root}/${name}${line}: ${message}${more ? ` (${more})` : ''}`, { cause: error });
}

/** How often a transaction is tried, and the errors after which it is. */
interface Attempts {
  /** Wait for each lock. */
  readonly lockMs: number;
  readonly pauseMs: number;
  readonly attempts: number;
  readonly isPassing: (error: { readonly code?: string; readonly routine?: string }) => boolean;
}

/** Runs the work in a transaction, again after a passing error. Throws the last error. */
export async function inTransaction(
  client: pg.Client,
  { lockMs, pauseMs, attempts, isPassing }: Attempts,
  work: () => Promise<void>,
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await client.query(`begin; set local lock_timeout = ${lockMs}`);
      await work();
      await client.query('commit');
      return;
    } catch (error) {
      await client.query('rollback').catch(() => undefined); // a lost connection has rolled back
      const cause = (error instanceof MigrationFailed ? error.cause : error) ?? {};
      if (attempt >= attempts || !isPassing(cause)) throw error;
      await sleep(pauseMs * (0.5 + Math.random()));
    }
  }
}
