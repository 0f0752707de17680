import { parseArgs } from 'node:util';
import { createIndexes } from '../migrate/indexes.js';
import { gatewaySql, listMigrations, migrate } from '../migrate/migrations.js';
import { adminUrl } from './admin-url.js';
import { type Command, print, program, UsageError } from './command.js';

const help = `Usage: ${program} migrate [options]

Brings the schema "gateway" of the primary up to date: applies the files NNN_name.sql that it lacks, in order, each
in a transaction of its own. Forward only; files applied before a failure stay applied.

Options:
  --sql DIR   Take the files from DIR instead of sql/gateway: an operator's views over another app schema
  --list      Show every migration and whether it is applied; change nothing
  --dry-run   Show the migrations that would be applied; change nothing
  --indexes   Instead, create the indexes proposed in DIR/indexes that are missing, concurrently, without blocking
              writes. On a partitioned table every partition gets its own; an index left invalid is made again.
  --help      This text

ADMIN_URL (or ADMIN_URL_FILE) is the connection URL of the primary. It may be a superuser's, or that of a role which
  - has CREATEROLE, or finds gateway_owner, gateway_reader and gateway_writer made for it (PostgreSQL 16 and later:
    roles that another role has made must be granted to it WITH ADMIN OPTION),
  - has CREATE on the database, and
  - owns the app's schema and tables, or may grant USAGE and column-level SELECT on them.
It should own the database: only its owner can revoke TEMPORARY from PUBLIC, and without that \`check\` refuses.
Connect directly, not through a pooler. The login roles get no password: set one with
ALTER ROLE gateway_reader PASSWORD '…', or use certificates.

Exit codes: 0 done, 1 something to put right, 2 wrong usage or settings.`;

/** `migrate`: applies migrations and index proposals. */
export const migrateCommand: Command = {
  help,
  async run(args) {
    const { values } = parseArgs({
      args: [...args],
      options: {
        sql: { type: 'string', default: gatewaySql },
        list: { type: 'boolean', default: false },
        'dry-run': { type: 'boolean', default: false },
        indexes: { type: 'boolean', default: false },
      },
    });
    const { sql: sqlDir, list, 'dry-run': dryRun, indexes } = values;
    if ([list, dryRun, indexes].filter(Boolean).length > 1)
      throw new UsageError('Give one of --list, --dry-run and --indexes.');
    if (list) await show(sqlDir);
    else if (dryRun) await preview(sqlDir);
    else if (indexes) done(await createIndexes(adminUrl(), { sqlDir, onCreated: (name) => print(`created ${name}`) }));
    else done(await migrate(adminUrl(), { sqlDir, onApplied: (name) => print(`applied ${name}`) }));
    return 0;
  },
};

async function show(sqlDir: string): Promise<void> {
  for (const { name, applied } of await listMigrations(adminUrl(), sqlDir))
    print(`${applied ? 'applied' : 'pending'} ${name}`);
}

async function preview(sqlDir: string): Promise<void> {
  const pending = (await listMigrations(adminUrl(), sqlDir)).filter(({ applied }) => !applied);
  for (const { name } of pending) print(`would apply ${name}`);
  done(pending);
}

function done(changes: readonly unknown[]): void {
  if (changes.length === 0) print('nothing to do');
}
