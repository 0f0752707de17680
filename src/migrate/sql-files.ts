import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type pg from 'pg';
import { projectRoot, readFault, readText } from '../paths.js';
import { lineAt, type SqlStatement } from './sql-statements.js';

/** The gateway's own SQL, applied by number and never changed. */
export const coreDir: string = join(projectRoot, 'sql/core');
/** Views and functions over the reference app, which an operator replaces by a folder of views over another app. */
export const defaultViewsDir: string = join(projectRoot, 'sql/views');

/** A migration that PostgreSQL refused, or a folder that does not fit the database; the message names the file and the reason. */
export class MigrationFailed extends Error {
  override readonly name = 'MigrationFailed';
}

/** The two roots of SQL files: `core` is applied by number and only once, `views` as often as a file of it changes. */
export type Root = 'core' | 'views';

/** A file of one of the roots. */
export interface SqlFile {
  readonly root: Root;
  /** Such as 001_roles.sql. */
  readonly name: string;
  readonly sql: string;
  /** SHA-256 of the text, hexadecimal. */
  readonly hash: string;
}

const shapes: Readonly<Record<Root, { readonly name: RegExp; readonly example: string }>> = {
  core: { name: /^\d{3}_\w+\.sql$/, example: '001_roles.sql' },
  views: { name: /^[\w-]+\.sql$/, example: 'klanten.sql' },
};

/** The SQL files of the folder in the order in which they are applied. Throws MigrationFailed when there are none, or one of another name. */
export function readSqlFiles(root: Root, folder: string): SqlFile[] {
  const names = sqlNames(folder).filter((name) => !name.startsWith('.')); // such as those that macOS leaves on other disks
  const others = names.filter((name) => !shapes[root].name.test(name));
  if (others.length > 0)
    throw new MigrationFailed(
      `The folder ${folder} holds files that are not named such as ${shapes[root].example}, in letters, digits, _ and - alone: ${others.join(', ')}. Rename them, or move them elsewhere.`,
    );
  if (names.length === 0)
    throw new MigrationFailed(`The folder ${folder} holds no files such as ${shapes[root].example}.`);
  return names.map((name) => {
    const sql = sqlText(folder, name);
    return { root, name, sql, hash: createHash('sha256').update(sql).digest('hex') };
  });
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

/** State of a file in a database; `removed`: the database has it and the folder does not. */
export interface FileState {
  readonly name: string;
  readonly state: 'applied' | 'pending' | 'changed' | 'removed';
}

/** The hashes of the applied files, and for files of `views` what they created, as DROP names it, and granted, as REVOKE statements. */
const appliedFiles = `create table if not exists gateway.applied_files (
  root text, name text, hash text not null, objects text[] not null default '{}', primary key (root, name));
  alter table gateway.applied_files add column if not exists revokes text[] not null default '{}'`;

/** Creates the schema and the table of applied files where they are missing. */
export async function prepare(client: pg.Client): Promise<void> {
  await client.query(`create schema if not exists gateway; ${appliedFiles}`);
}

/** All objects of the schema in the order of their creation, named as DROP does: parts of an object, such as the row type of a view, are not listed. */
export const objectsInSchema = `select concat(d.classid, ' ', d.objid) as id, o.type, concat(o.type, ' ', o.identity) as object
  from pg_depend d, pg_identify_object(d.classid, d.objid, 0) o
  where d.refclassid = 'pg_namespace'::regclass and d.refobjid = 'gateway'::regnamespace and d.deptype = 'n'
  order by d.objid`;

/** Compares the files of a root with those that the database has. A file whose objects are gone, as by DROP … CASCADE, is pending. Changes nothing. */
export async function fileStates(client: pg.Client, root: Root, files: readonly SqlFile[]): Promise<FileState[]> {
  const table = await client.query(`select to_regclass('gateway.applied_files') is not null as present`);
  const text = `select name, hash, objects <@ array(select object from (${objectsInSchema}) present) as "isWhole"
    from gateway.applied_files where root = $1 order by name`;
  const rows: { name: string; hash: string; isWhole: boolean }[] = table.rows[0].present
    ? (await client.query(text, [root])).rows
    : [];
  const applied = new Map(rows.map((row) => [row.name, row]));
  const removed = [...applied.keys()].filter((name) => !files.some((file) => file.name === name));
  return [
    ...files.map(({ name, hash }): FileState => {
      const before = applied.get(name);
      if (!before?.isWhole) return { name, state: 'pending' };
      return { name, state: before.hash === hash ? 'applied' : 'changed' };
    }),
    ...removed.map((name): FileState => ({ name, state: 'removed' })),
  ];
}

/** Notes that the file was applied; to be called in the transaction that applies it. */
export async function noteApplied(
  client: pg.ClientBase,
  { root, name, hash }: SqlFile,
  { objects, revokes }: { objects: readonly string[]; revokes: readonly string[] } = { objects: [], revokes: [] },
): Promise<void> {
  const text = 'insert into gateway.applied_files (root, name, hash, objects, revokes) values ($1, $2, $3, $4, $5)';
  await client.query(text, [root, name, hash, objects, revokes]);
}

/** Characters of a statement that an error shows. */
const shownMax = 160;

/** The error of PostgreSQL with file, line and the beginning of the statement. */
export function refused({ root, name }: SqlFile, statement: SqlStatement, error: unknown): MigrationFailed {
  const { message, hint, ...places } = error as {
    message: string;
    hint?: string;
    position?: string;
    internalPosition?: string;
    internalQuery?: string;
  };
  // Other internal positions belong to statements inside the statement.
  const position = places.internalQuery === statement.text ? places.internalPosition : places.position;
  const line = statement.line + (position === undefined ? 0 : lineAt(statement.text, Number(position) - 1) - 1);
  const text = statement.text.replace(/\s+/g, ' ');
  const shown = text.length > shownMax ? `${text.slice(0, shownMax)} …` : text;
  return new MigrationFailed(`${root}/${name}:${line}: ${message}${hint ? ` (${hint})` : ''}. Statement: ${shown}`, {
    cause: error,
  });
}
