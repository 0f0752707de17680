import { randomUUID } from 'node:crypto';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import pg from 'pg';
import { urlAs } from '../../demo/cluster/passwords.js';
import { defaultViewsDir } from '../../src/migrate/sql-files.js';
import { projectRoot } from '../../src/paths.js';
import { commandLine } from '../support/command-line.js';
import { until } from '../support/patience.js';
import { shared } from '../support/workspace.js';

// `migrate` beside another run, with a faulty file, and after a run that was killed.

const name = `migrate_${randomUUID().slice(0, 8)}`;
const adminUrl = urlAs(shared.primary, 'postgres', name);
const migrate = (...args: string[]) => commandLine(['migrate', ...args], { adminUrl });

/** Runs SQL on a connection of its own. */
async function run(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(sql).finally(() => client.end());
}

test.before(async (t) => {
  await run(shared.primary, `create database ${name}`);
  await run(adminUrl, readFileSync(join(projectRoot, 'sql/apps/first/schema.sql'), 'utf8'));
  const { code, stderr } = await migrate();
  t.is(code, 0, stderr);
});
test.after.always(() => run(shared.primary, `drop database ${name} with (force)`));

test.serial(
  'an error names the file, the line and the statement, also where PostgreSQL gives no position',
  async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'migrate-'));
    t.teardown(() => rmSync(folder, { recursive: true }));
    cpSync(defaultViewsDir, folder, { recursive: true });
    const faults = {
      'alter view gateway.extra\n  owner to no_such_role': '3: role "no_such_role" does not exist',
      'create view gateway.other as\n  select 1 as a,\n  nothing from app.klanten':
        '5: column "nothing" does not exist',
    };
    for (const [statement, message] of Object.entries(faults)) {
      writeFileSync(
        join(folder, 'zz.sql'),
        `create view gateway.extra as select ';' as a;\n\n${statement};\nselect 1;\n`,
      );
      const { stderr, code } = await migrate('--views', folder);
      t.is(code, 1);
      t.is(stderr, `views/zz.sql:${message}. Statement: ${statement.replace(/\s+/g, ' ')}\n`);
    }
  },
);

test.serial('a folder of views without index proposals is no error, and one that does not exist is', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'migrate-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const none = { code: 0, stdout: `no index is proposed: ${folder} has no folder indexes\n`, stderr: '' };
  t.deepEqual(await migrate('--views', folder, '--indexes'), none);
  const absent = join(folder, 'absent');
  const { code, stderr } = await migrate('--views', absent, '--indexes');
  t.is(code, 1);
  t.is(stderr, `The folder ${absent} cannot be read: ENOENT.\n`);
});

test.serial(
  'files of Windows are read with their line ends and byte order mark; another encoding than UTF-8 is refused',
  async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'migrate-'));
    t.teardown(() => rmSync(folder, { recursive: true }));
    cpSync(defaultViewsDir, folder, { recursive: true });
    for (const file of ['klanten.sql', 'indexes/werkbonnen_nummer.sql']) {
      const text = readFileSync(join(folder, file), 'utf8');
      writeFileSync(join(folder, file), `\ufeff${text.replaceAll('\n', '\r\n')}`);
    }
    const { code, stdout, stderr } = await migrate('--views', folder);
    t.is(code, 0, stderr);
    t.regex(stdout, /klanten[.]sql changed/);
    t.is((await migrate('--views', folder, '--indexes')).code, 0);
    writeFileSync(join(folder, 'klanten.sql'), Buffer.from('\ufeffselect 1;', 'utf16le'));
    const refused = await migrate('--views', folder);
    t.is(refused.code, 1);
    t.is(refused.stderr, `The file ${folder}/klanten.sql cannot be read: it is not UTF-8.\n`);
  },
);

test.serial('migrate waits for another run, says for which, and gives up after its time', async (t) => {
  const holder = new pg.Client({ connectionString: adminUrl, application_name: 'another migrate' });
  await holder.connect();
  const { rows } = await holder.query<{ pid: number }>(
    `select pg_backend_pid() as pid, pg_advisory_lock(hashtext('gateway.migrations'))`,
  );
  const process = `process ${rows[0]?.pid} \\(another migrate, user postgres, since [-0-9: ]+\\)`;
  const refused = await migrate('--wait', '1');
  t.is(refused.code, 1);
  t.regex(
    refused.stderr,
    new RegExp(
      `^Waiting up to 1 s for another migration: ${process}\\.\nAnother migration has run for more than 1 s: ${process}\\. Nothing was changed\\.`,
    ),
  );
  const waiting = migrate('--wait', '30');
  // It has asked for the holder, and has the answer.
  const isWaited = `select from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
    and state = 'idle' and query like '%pg_locks l join%gateway.migrations%'`;
  t.true(await until(async () => (await holder.query(isWaited)).rows.length > 0, 20_000, 50));
  await holder.end();
  const { code, stderr } = await waiting;
  t.is(code, 0, stderr);
  t.regex(stderr, new RegExp(`^Waiting up to 30 s for another migration: ${process}\\.\n$`));
});

test.serial('a lock that a killed run of knex left behind keeps no later run out', async (t) => {
  await run(adminUrl, 'update gateway.migrations_lock set is_locked = 1');
  const { code, stderr } = await migrate();
  t.is(code, 0, stderr);
});
