import { setTimeout as sleep } from 'node:timers/promises';
import knexModule, { type Knex } from 'knex';
import type pg from 'pg';
import { coreDir, fileStates, MigrationFailed, noteApplied, readSqlFiles, refused, type SqlFile } from './sql-files.js';
import { statementsOf } from './sql-statements.js';

const { knex } = knexModule;
const attemptsMax = 20;
/** A statement of these files that waits for a lock of the app delays the app behind it. */
const lockTimeoutSeconds = 10;

/** The files of sql/core. Throws MigrationFailed when one changed after the database has applied it, or is missing. */
export async function unchangedCore(client: pg.Client): Promise<{ files: SqlFile[]; pending: string[] }> {
  const files = readSqlFiles('core', coreDir);
  const states = await fileStates(client, ['core'], files);
  const named = (state: string): string[] =>
    states.filter((file) => file.state === state).map(({ name }) => `core/${name}`);
  const [changed, removed] = [named('changed'), named('removed')];
  if (changed.length > 0)
    throw new MigrationFailed(
      `Changed after the database applied it: ${changed.join(', ')}. Restore the text, and write the change as a new file with the next number.`,
    );
  if (removed.length > 0)
    throw new MigrationFailed(
      `The database has applied ${removed.join(', ')}, which this version of the gateway lacks. Is it an older one?`,
    );
  return { files, pending: named('pending') };
}

/** Applies the pending files in order, each in its own transaction. Those applied before a failure stay. */
export async function applyCore(
  adminUrl: string,
  files: readonly SqlFile[],
  onApplied: (file: string) => void,
): Promise<void> {
  const silent = (): void => undefined;
  const connection = knex({
    client: 'pg',
    connection: { connectionString: adminUrl, application_name: 'gateway-migrate' },
    pool: { min: 0, max: 2 },
    log: { warn: silent, error: silent, debug: silent, deprecate: silent },
  });
  const config = { migrationSource: migrationsOf(files), tableName: 'migrations', schemaName: 'gateway' };
  try {
    // A run that was killed left knex's lock behind; the caller holds the lock that counts.
    await connection.migrate.forceFreeMigrationsLock(config);
    for (;;) {
      const name = await applyNext(connection, config);
      if (name === undefined) return;
      onApplied(`core/${name}`);
    }
  } finally {
    await connection.destroy();
  }
}

/** Retries when two databases of a cluster are migrated at the same moment, because roles belong to the cluster. */
async function applyNext(connection: Knex, config: Knex.MigratorConfig): Promise<string | undefined> {
  for (let attempt = 1; ; attempt++) {
    try {
      const [, names] = (await connection.migrate.up(config)) as [number, string[]];
      return names[0];
    } catch (error) {
      const { message, cause } = error as Error;
      if (/migration directory is corrupt/.test(message))
        throw new MigrationFailed(
          'gateway.migrations names files that sql/core never had: drop the schema gateway, and migrate.',
        );
      if (attempt >= attemptsMax || !isRoleCollision(cause)) throw error;
      await sleep(20 + Math.random() * 100);
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

/** The files as knex reads migrations, by the names of the files. */
function migrationsOf(files: readonly SqlFile[]): Knex.MigrationSource<SqlFile> {
  return {
    getMigrations: () => Promise.resolve([...files]),
    getMigrationName: ({ name }) => name,
    getMigration: (file) =>
      Promise.resolve({
        up: async (transaction) => {
          // Not by knex, which would take a "?" in the file for a parameter.
          const connection = (await transaction.client.acquireConnection()) as pg.Client;
          await connection.query(`set local lock_timeout = '${lockTimeoutSeconds}s'`);
          for (const statement of statementsOf(file.sql))
            await connection.query(statement.text).catch((error: unknown) => {
              throw refused(file, statement, error);
            });
          await noteApplied(connection, file);
        },
        down: () => Promise.reject(new MigrationFailed('Migrations go forward only.')),
      }),
  };
}
