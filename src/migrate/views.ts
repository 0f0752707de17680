import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { appPrivileges } from './grants.js';
import { MigrationFailed, noteApplied, objectsInSchema, refused, type SqlFile } from './sql-files.js';
import { statementsOf } from './sql-statements.js';

/**
 * DROP VIEW waits for running statements, and all later statements wait behind it: so the wait is short and is repeated. A
 * statement of the gateway waits 1 s for a lock at most (gateway_reader) or 2 s (gateway_writer).
 */
const lockTimeoutMs = 300;
const pauseMs = 700;
const attemptsMax = 60;
/** SQLSTATEs of a lock that was not granted in time, and of a deadlock with a statement of the app. */
const isInUse: ReadonlySet<unknown> = new Set(['55P03', '40P01']);

/**
 * Drops what the files created earlier and creates it again, in one transaction: other sessions see either the old views or
 * the new ones. Throws MigrationFailed with the file, or when the views are in use for a minute.
 */
export function replaceViews(client: pg.Client, files: readonly SqlFile[]): Promise<void> {
  return inTransaction(client, async () => {
    await drop(client);
    for (const file of files) await create(client, file);
  });
}

/** Drops all that the files created, in one transaction. Throws MigrationFailed as replaceViews does. */
export function dropViews(client: pg.Client): Promise<void> {
  return inTransaction(client, () => drop(client));
}

async function inTransaction(client: pg.Client, work: () => Promise<void>): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await client.query(`begin; set local lock_timeout = ${lockTimeoutMs}`);
      await work();
      await client.query('commit');
      return;
    } catch (error) {
      await client.query('rollback').catch(() => undefined); // a lost connection has rolled back
      const cause = error instanceof MigrationFailed ? error.cause : error;
      if (!isInUse.has((cause as { code?: string } | undefined)?.code)) throw error;
      if (attempt >= attemptsMax)
        throw new MigrationFailed(
          `The views are in use: no lock in ${attemptsMax} attempts. pg_stat_activity names the statements that run for so long. Nothing was changed.`,
        );
      await sleep(pauseMs);
    }
  }
}

/** In the reverse order of creation, so that an object goes before those that it is made of. Takes back what the files granted. */
async function drop(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ name: string; objects: string[]; revokes: string[] }>(
    `delete from gateway.applied_files where root = 'views' returning name, objects, revokes`,
  );
  const present = new Set(await appPrivileges(client));
  for (const revoke of rows.flatMap(({ revokes }) => revokes)) if (present.has(revoke)) await client.query(revoke);
  const objects = rows.sort((a, b) => (a.name < b.name ? -1 : 1)).flatMap((row) => row.objects);
  // DROP COLUMN … CASCADE of the app takes views with it.
  for (const object of objects.reverse())
    await client.query(`drop ${object.replace(' gateway.', ' if exists gateway.')}`).catch(refuse);
}

/** Such as a view of the app that reads one of these: PostgreSQL's detail names it. */
function refuse(error: unknown): never {
  const { message, detail } = error as { message: string; detail?: string };
  throw new MigrationFailed([message, ...(detail ? [detail] : [])].join(': '), { cause: error });
}

/** EXECUTE refuses COMMIT and the like, which would leave half of the views behind. */
async function create(client: pg.Client, file: SqlFile): Promise<void> {
  const before = new Set((await schemaObjects(client)).map(({ id }) => id));
  const granted = new Set(await appPrivileges(client));
  await client.query(`savepoint file; ${executed(file.sql)}`).catch(async (error: unknown) => {
    throw isInUse.has((error as { code?: string }).code) ? error : await located(client, file, error);
  });
  const created = (await schemaObjects(client)).filter(({ id }) => !before.has(id));
  const stored = created.find(({ type }) => type === 'table' || type === 'sequence');
  if (stored !== undefined)
    throw new MigrationFailed(
      `views/${file.name}: it creates the ${stored.object}, whose rows would be lost with the next change of a view.`,
    );
  const revokes = (await appPrivileges(client)).filter((revoke) => !granted.has(revoke));
  await noteApplied(client, file, { objects: created.map(({ object }) => object), revokes });
}

function executed(sql: string): string {
  return `do ${pg.escapeLiteral(`begin execute ${pg.escapeLiteral(sql)}; end`)}`;
}

/**
 * The error with its line and statement. A file is executed as a whole, because the locks of its views are held meanwhile; after an error
 * its statements run one by one, in the transaction that is rolled back, until one fails.
 */
async function located(client: pg.Client, file: SqlFile, error: unknown): Promise<MigrationFailed> {
  await client.query('rollback to savepoint file');
  for (const statement of statementsOf(file.sql)) {
    const failed = await client.query(executed(statement.text)).then(
      () => null,
      (reason: unknown) => refused(file, statement, reason),
    );
    if (failed !== null) return failed;
  }
  return new MigrationFailed(`views/${file.name}: ${(error as Error).message}`, { cause: error });
}

interface SchemaObject {
  readonly id: string;
  readonly type: string;
  /** As DROP names it: "view gateway.klanten". */
  readonly object: string;
}

async function schemaObjects(client: pg.Client): Promise<SchemaObject[]> {
  return (await client.query<SchemaObject>(objectsInSchema)).rows;
}
