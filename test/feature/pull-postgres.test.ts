import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { urlAs } from '../../demo/cluster/passwords.js';
import { DestinationUnusable } from '../../pull/destination.js';
import { postgresDestination } from '../../pull/postgres.js';
import { projectRoot } from '../../src/paths.js';
import { type CommandResult, commandLine } from '../support/command-line.js';
import { eventually, gatewayTest, shared } from '../support/workspace.js';

// Characters that PostgreSQL cannot hold, and a restart of the database of copies, must not end a copy in it.

const test = gatewayTest();

test.serial('U+0000 and half surrogates in a record are copied as U+FFFD, and nothing else changes', async (t) => {
  const { database } = t.context;
  const destination = await postgresDestination(database.settings.adminUrl);
  t.teardown(() => destination.close());
  const copy = await destination.open('odd_texts', [
    { name: 'id', type: 'text' },
    { name: 'name', type: 'text' },
    { name: 'more', type: 'jsonb' },
  ]);
  const texts: [json: string, stored: string][] = [
    [String.raw`Bakkerij\u0000Jansen`, 'Bakkerij\ufffdJansen'],
    [String.raw`Bakkerij \ud83d`, 'Bakkerij \ufffd'],
    [String.raw`\uDE00 \uD83D\uDE00 \ud83d\ud83d\ude00`, '\ufffd 😀 \ufffd😀'],
    [String.raw`C:\\u0000 \\\\ud83d \n \" é 😀`, 'C:\\u0000 \\\\ud83d \n " é 😀'],
  ];
  const data = texts.map(
    ([json], i) => `{"id":"${i}","name":"${json}","more":{"n":12345678901234567890.10,"a":"${json}"}}`,
  );
  await copy.store(`{"data":[${data.join(',')}],"pagination":{}}`, { since: '1', cursor: null });
  await copy.commit();
  const { rows } = await database.primary.query(
    `select name, more ->> 'a' as a, more ->> 'n' as n from workspace_data.odd_texts order by id`,
  );
  t.deepEqual(
    rows,
    texts.map(([, stored]) => ({ name: stored, a: stored, n: '12345678901234567890.10' })),
  );
});

test.serial('a column whose type is no longer that of the API is named with the way on', async (t) => {
  const { database } = t.context;
  await database.primary.query('create schema if not exists workspace_data');
  await database.primary.query('create table workspace_data.old_types (id text primary key, code integer)');
  const destination = await postgresDestination(database.settings.adminUrl);
  t.teardown(() => destination.close());
  const columns = [
    { name: 'id', type: 'text' },
    { name: 'code', type: 'text' },
  ];
  const page = '{"data":[{"id":"1","code":"A7"}],"pagination":{}}';
  const stored = (await destination.open('old_types', columns)).store(page, { since: '1', cursor: null });
  await t.throwsAsync(stored, {
    instanceOf: DestinationUnusable,
    message: /^A column of workspace_data\."old_types" cannot hold .*"A7".* drop the table/,
  });
  await database.primary.query('drop table workspace_data.old_types');
  const copy = await destination.open('old_types', columns);
  t.is(await copy.store(page, { since: '1', cursor: null }), 1);
  await copy.commit();
});

test.serial('pull --every goes on after its database was started again', async (t) => {
  const { database, gateway, token } = t.context;
  const own = `${database.name}_copy`;
  await database.primary.query(`create database ${own}`);
  t.teardown(() => database.primary.query(`drop database if exists ${own} with (force)`));
  const folder = mkdtempSync(join(tmpdir(), 'pull-postgres-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, 'token'), token);
  const to = urlAs(shared.primary, 'postgres', own);
  const options = ['--base', gateway.url, '--token-file', join(folder, 'token'), '--to', to, '--every', '1s'];
  const args = [...options, '--resources', 'installaties'];
  const child = spawn(process.execPath, [join(projectRoot, 'dist/pull/main.js'), ...args], {
    env: { PATH: process.env.PATH },
  });
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  t.teardown(() => child.kill('SIGKILL'));
  let [passes, stderr] = [0, ''];
  child.stdout.on('data', (bytes: Buffer) => (passes += String(bytes).split('\n').length - 1));
  child.stderr.on('data', (bytes: Buffer) => (stderr += String(bytes)));
  await eventually(t, 'a pass', () => passes > 0);

  await database.primary.query(`alter database ${own} allow_connections false`);
  await database.primary.query(`select pg_terminate_backend(pid) from pg_stat_activity where datname = '${own}'`);
  await eventually(t, 'it waits', () => /Waiting \d+ s for the destination: .*not currently accepting/.test(stderr));
  await database.primary.query(`alter database ${own} allow_connections true`);
  const before = passes;
  await eventually(t, 'another pass', () => passes > before + 1);
  child.kill('SIGTERM');
  t.is(await ended, 0, stderr);
});

test.serial(
  'pull --every ends with the reason when the database of copies refuses to store, as with a full disk',
  async (t) => {
    const { database, gateway, token } = t.context;
    const own = `${database.name}_full`;
    await database.primary.query(`create database ${own}`);
    t.teardown(() => database.primary.query(`drop database if exists ${own} with (force)`));
    const folder = mkdtempSync(join(tmpdir(), 'pull-postgres-'));
    t.teardown(() => rmSync(folder, { recursive: true }));
    writeFileSync(join(folder, 'token'), token);
    const to = urlAs(shared.primary, 'postgres', own);
    const pull = (...more: string[]): Promise<CommandResult> =>
      commandLine(
        [
          '--base',
          gateway.url,
          '--token-file',
          join(folder, 'token'),
          '--to',
          to,
          '--resources',
          'installaties',
          ...more,
        ],
        {},
        projectRoot,
        'dist/pull/main.js',
      );
    t.is((await pull()).code, 0);
    const copies = new pg.Client({ connectionString: to });
    await copies.connect();
    await copies.query(`
    create function full_disk() returns trigger language plpgsql as $$ begin raise exception 'could not extend file' using errcode = '53100'; end $$;
    truncate workspace_data.installaties;
    create trigger full_disk before insert on workspace_data.installaties execute function full_disk()`);
    await copies.end();
    const { code, stderr } = await pull('--every', '1h');
    t.is(code, 1);
    t.regex(stderr, /could not extend file/);
    t.notRegex(stderr, /Waiting/);
  },
);
