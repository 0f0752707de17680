import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import knexModule, { type Knex } from 'knex';
import type pg from 'pg';
import { asAdmin } from '../db/admin.js';
import { projectRoot } from '../paths.js';

const { knex } = knexModule;

/** The gateway's own migrations; operators with another app schema keep their own folder. */
export const gatewaySql: string = join(projectRoot, 'sql/gateway');

/** The folder of the migrations, and a listener to each one that is committed. */
export interface MigrateOptions {
  readonly sqlDir?: string;
  readonly onApplied?: (name: string) => void;
}

/** A migration that PostgreSQL refused, or a folder that does not fit the database; the message names the file and the reason. */
export class MigrationFailed extends Error {
  override readonly name = 'MigrationFailed';
}

const attemptsMax = 20;

/**
 * Applies NNN_*.sql of the folder in order, each in its own transaction, and returns the names of those it applied.
 * Migrations applied before a failure stay. Throws MigrationFailed, or pg's error when it cannot connect.
 */
export async function migrate(adminUrl: string, options: MigrateOptions = {}): Promise<string[]> {
  const source = new SqlFolder(options.sqlDir ?? gatewaySql);
  return asAdmin(adminUrl, async (client) => {
    await lock(client);
    await client.query('create schema if not exists gateway');
    return applyAll(adminUrl, source, options.onApplied ?? (() => undefined));
  });
}

/** The folder's migrations in order, and whether the database has them. Changes nothing. */
export async function listMigrations(
  adminUrl: string,
  sqlDir = gatewaySql,
): Promise<{ name: string; applied: boolean }[]> {
  const names = await new SqlFolder(sqlDir).getMigrations();
  return asAdmin(adminUrl, async (client) => {
    const table = await client.query(`select to_regclass('gateway.migrations') is not null as present`);
    const done = table.rows[0].present ? (await client.query('select name from gateway.migrations')).rows : [];
    const applied = new Set(done.map((row: { name: string }) => row.name));
    return names.map((name) => ({ name, applied: applied.has(name) }));
  });
}

/**
 * Lets one migration at a time run per database. Polls for the lock: a waiting statement would hold a snapshot, and CREATE
 * INDEX CONCURRENTLY in the session that has the lock would wait for that snapshot for ever.
 */
export async function lock(client: pg.Client): Promise<void> {
  const text = `select pg_try_advisory_lock(hashtext('gateway.migrations')) as locked`;
  while (!(await client.query(text)).rows[0].locked) await sleep(200);
}

async function applyAll(adminUrl: string, source: SqlFolder, onApplied: (name: string) => void): Promise<string[]> {
  const silent = (): void => undefined;
  const connection = knex({
    client: 'pg',
    connection: { connectionString: adminUrl, application_name: 'gateway-migrate' },
    pool: { min: 0, max: 2 },
    log: { warn: silent, error: silent, debug: silent, deprecate: silent },
  });
  try {
    const applied: string[] = [];
    for (;;) {
      const name = await applyNext(connection, source);
      if (name === undefined) return applied;
      applied.push(name);
      onApplied(name);
    }
  } finally {
    await connection.destroy();
  }
}

/** Retries when two databases of a cluster are migrated at the same moment, because roles belong to the cluster. */
async function applyNext(connection: Knex, source: SqlFolder): Promise<string | undefined> {
  for (let attempt = 1; ; attempt++) {
    try {
      const config = { migrationSource: source, tableName: 'migrations', schemaName: 'gateway' };
      const [, names] = (await connection.migrate.up(config)) as [number, string[]];
      return names[0];
    } catch (error) {
      const cause = (error as Error).cause;
      if (attempt < attemptsMax && isRoleCollision(cause)) await sleep(20 + Math.random() * 100);
      else if (/migration directory is corrupt/.test((error as Error).message)) throw unknownMigrations(error, source);
      else throw error;
    }
  }
}

/** SQLSTATE 42710 or 23505: both created the role; 40P01, or XX000 from simple_heap_update: both altered it. */
function isRoleCollision(error: unknown): boolean {
  const { code, routine } = (error ?? {}) as { code?: string; routine?: string };
  return (
    code === '42710' || code === '23505' || code === '40P01' || (code === 'XX000' && routine === 'simple_heap_update')
  );
}

function unknownMigrations(error: unknown, source: SqlFolder): MigrationFailed {
  const names = (error as Error).message.replace(/^.*: /s, '');
  return new MigrationFailed(
    `The database has migrations that ${source.folder} lacks: ${names}. Is it the right folder?`,
  );
}

/** knex reads migrations from here: one per file NNN_name.sql, named NNN_name. */
class SqlFolder implements Knex.MigrationSource<string> {
  constructor(readonly folder: string) {}

  async getMigrations(): Promise<string[]> {
    let files: string[];
    try {
      files = readdirSync(this.folder);
    } catch (error) {
      throw new MigrationFailed(`The folder ${this.folder} cannot be read: ${(error as NodeJS.ErrnoException).code}.`);
    }
    const names = files.filter((file) => /^\d{3}_\w+\.sql$/.test(file)).map((file) => file.slice(0, -'.sql'.length));
    if (names.length === 0)
      throw new MigrationFailed(`The folder ${this.folder} holds no files such as 001_roles.sql.`);
    return names.sort();
  }

  getMigrationName(name: string): string {
    return name;
  }

  async getMigration(name: string): Promise<Knex.Migration> {
    const sql = readFileSync(join(this.folder, `${name}.sql`), 'utf8');
    return {
      up: async (transaction) => {
        // Not by knex, which would take a "?" in the file for a parameter.
        const connection = (await transaction.client.acquireConnection()) as pg.Client;
        await connection.query(sql).catch((error: unknown) => {
          throw refused(name, sql, error);
        });
      },
      down: () => Promise.reject(new MigrationFailed('Migrations go forward only.')),
    };
  }
}

function refused(name: string, sql: string, error: unknown): MigrationFailed {
  const { message, position, hint } = error as { message: string; position?: string; hint?: string };
  const line = position === undefined ? '' : `:${sql.slice(0, Number(position)).split('\n').length}`;
  return new MigrationFailed(`${name}.sql${line}: ${message}${hint ? ` (${hint})` : ''}`, { cause: error });
}
