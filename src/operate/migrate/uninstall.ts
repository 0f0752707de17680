import pg from 'pg';
import { readProject } from '../../base/paths.js';
import { runAsAdmin } from '../../postgres/admin.js';
import { lockNotAvailable } from '../../postgres/database-errors.js';
import { MigrationFailed } from './sql-files.js';
import { composeDrops, dropInOrder, readSchemaObjects, repeatWhileInUse } from './views.js';

const roles = ['gateway_owner', 'gateway_reader', 'gateway_writer', 'gateway_issuer'] as const;

/** Returns a sentence for each object to remove; the list is empty without a gateway. */
export async function listInstalled(adminUrl: string): Promise<string[]> {
  return runAsAdmin(adminUrl, async (client) => {
    const { rows: installed } = await client.query(`select from pg_class where oid = to_regclass('gateway.undo')`);
    if (installed.length === 0) return [];
    const objects = await readSchemaObjects(client, []);
    const { rows: tables } = await client.query<{ name: string }>(
      `select c.oid::regclass::text as name from pg_class c where relkind = 'r' and relnamespace = 'gateway'::regnamespace`,
    );
    const counted: string[] = [];
    for (const { name } of tables) {
      const { rows } = await client.query(`select count(*)::int as n from ${name}`);
      if (rows[0].n > 0) counted.push(`${name} (${rows[0].n} rows)`);
    }
    return [
      `the schemas gateway and records with ${objects.length} objects; with rows: ${counted.join(', ') || 'none'}`,
      ...(await readRoles(client)).map(({ name, isUsed, members }) => {
        const kept = isUsed ? ', which is kept, because another database uses it' : '';
        const logins = members.length > 0 ? `; its members stay: ${members.join(', ')}` : '';
        return `every privilege of the role ${name} in this database, and the role${kept}${logins}`;
      }),
      ...(await readUndoStatements(client)),
    ];
  });
}

/** Removes the gateway in one transaction. Throws MigrationFailed when another object depends on an object of the gateway. */
export async function uninstall(adminUrl: string, note: (change: string) => void): Promise<void> {
  await runAsAdmin(adminUrl, async (client) => {
    let changes: string[] = [];
    await repeatWhileInUse(client, async () => {
      changes = [];
      await client.query(lockMigrations).catch((error: pg.DatabaseError) => {
        if (error.code !== lockNotAvailable) throw error;
        throw new MigrationFailed('Another migration is under way: repeat the command when it has ended.');
      });
      await undo(client);
      await dropInOrder(client, composeDrops((await readSchemaObjects(client, [])).map(({ object }) => object)));
      for (const role of await readRoles(client)) changes.push(await removeRole(client, role));
      await dropInOrder(client, ['drop schema gateway, records']);
      changes.unshift('gave back what was taken from PUBLIC', 'dropped the schemas gateway and records');
    });
    for (const change of changes) note(change);
  });
}

const lockMigrations = 'lock table gateway.migration_lock in share update exclusive mode nowait';

const missingObjectCodes: ReadonlySet<string | undefined> = new Set(['42704', '42883', '42P01', '3D000', '3F000']);

async function readUndoStatements(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query<{ statement: string }>('select statement from gateway.undo order by place');
  return rows.map(({ statement }) => statement);
}

async function undo(client: pg.Client): Promise<void> {
  for (const statement of await readUndoStatements(client))
    await client.query(`savepoint undone; ${statement}`).catch(async (error: pg.DatabaseError) => {
      if (!missingObjectCodes.has(error.code)) throw error;
      await client.query('rollback to savepoint undone');
    });
}

interface Role {
  readonly name: string;
  readonly isUsed: boolean;
  readonly members: readonly string[];
}

/** `members` leaves out the admin. */
async function readRoles(client: pg.Client): Promise<Role[]> {
  return (await client.query<Role>(readProject('sql/catalog/roles.sql'), [roles])).rows;
}

/** Grants privileges on other databases again, because DROP OWNED takes them too. */
async function removeRole(client: pg.Client, { name, isUsed }: Role): Promise<string> {
  const role = pg.escapeIdentifier(name);
  const elsewhere = readProject('sql/catalog/role-elsewhere.sql');
  const { rows } = await client.query<{ isMember: boolean; others: string[] }>(elsewhere, [name]);
  const [{ isMember, others } = { isMember: true, others: [] }] = rows;
  if (!isMember) await client.query(`grant ${role} to current_user`);
  await client.query(`drop owned by ${role}`);
  for (const grant of others) await client.query(grant);
  if (!isUsed) await client.query(`drop role ${role}`);
  else if (!isMember) await client.query(`revoke ${role} from current_user`);
  return isUsed ? `took the privileges of ${name}, which another database uses` : `dropped the role ${name}`;
}
