import pg from 'pg';
import { urlAs } from '../../demo/cluster/passwords.js';
import { readProject } from '../../src/base/paths.js';
import type { Finding } from '../../src/doctor/finding.js';
import { prepareSql } from '../../src/postgres/statement.js';
import { RoundTrip } from '../../src/postgres/wire/queries.js';
import { commandLine, connections } from '../support/command-line.js';
import { limitMs } from '../support/patience.js';
import { wallKey } from '../support/walls.js';
import { eventually, gatewayTest, shared } from '../support/workspace.js';

// `check` and `migrate` as processes, as an operator runs them.

const test = gatewayTest().serial;

test('check --json prints one document with level, code, place and advice, and exits with 1 when an item failed', async (t) => {
  const { database } = t.context;
  const fits = await commandLine(['check', '--json'], connections(database));
  const report = JSON.parse(fits.stdout) as { ok: boolean; findings: Finding[] };
  t.deepEqual([fits.code, report.ok], [0, true], 'a warning, such as of damaged values of the data set, is no failure');
  const faults = report.findings.flatMap(({ level, code, object }) => (level === 'ok' ? [] : [[level, code, object]]));
  t.deepEqual(faults, [
    ['warning', 'values', 'klanten'],
    ['warning', 'shown', 'werkbonnen'],
  ]);
  const insert = 'insert (workspace_id, token_id, key, fingerprint) on gateway.idempotency';
  await database.primary.query(`revoke ${insert} from gateway_writer`);
  const failed = await commandLine(['check'], connections(database));
  await database.primary.query(`grant ${insert} to gateway_writer`);
  t.is(failed.code, 1);
  const fault = / {2}FAILED {3}writes installaties: permission denied .*\n {11}A role lacks a privilege: run `migrate`/;
  t.regex(failed.stdout, new RegExp(`^primary \\(127[\\d.:]+/\\w+\\)$[^]*^${fault.source}`, 'm'));
});

test('check exits with 2 where the definitions cannot be used, as with settings', async (t) => {
  const nowhere = { ...connections(t.context.database), resourcesDir: '/nowhere' };
  const { code, stderr } = await commandLine(['check'], nowhere);
  t.is(code, 2);
  t.regex(stderr, /^RESOURCES_DIR \/nowhere cannot be read: ENOENT/);
});

test('a batch of a check is late after its time without an answer, and one that was answered never', async (t) => {
  const lateMs = limitMs(700);
  const client = new pg.Client({ connectionString: t.context.database.settings.primaryUrls, query_timeout: lateMs });
  await client.connect();
  const outcomes: string[] = [];
  const batch = (text: string): RoundTrip => {
    const statement = prepareSql('any', text);
    const note = (error: Error | null, [tag]: readonly unknown[]) => outcomes.push(`${text}: ${error?.message ?? tag}`);
    return new RoundTrip([{ statement, values: [] }], false, note);
  };
  client.query(batch('select 1'));
  await eventually(t, 'the answer', () => outcomes.length === 1);
  client.query(batch('select pg_sleep(60)')); // it begins after the other
  await eventually(t, 'the time-out', () => outcomes.length === 2);
  t.deepEqual(outcomes, ['select 1: SELECT 1', 'select pg_sleep(60): Query read timeout']);
  await client.end();
});

test('migrate takes TEMPORARY, large objects and WAL messages from PUBLIC and leaves them to roles that are no logins of the gateway', async (t) => {
  const { primary, name: own } = t.context.database;
  const [name, app, login] = ['new', 'app', 'login'].map((end) => `${own}_${end}`) as [string, string, string];
  await primary.query(`create database ${name}`);
  await primary.query(
    `create role ${app}; set gateway.login = '${login}'; set gateway.role = 'gateway_reader'; ${readProject('deploy/login.sql')}`,
  );
  await primary.query(`alter role ${login} password 'secret'`);
  const adminUrl = urlAs(shared.primary, 'postgres', name);
  const client = new pg.Client(adminUrl);
  await client.connect();
  try {
    await client.query(readProject('sql/apps/first/schema.sql'));
    const { stdout, code } = await commandLine(['migrate'], { adminUrl, wallKey });
    t.is(code, 0, stdout);
    const { rows } = await client.query<{ role: string }>(
      `select rolname as role from pg_roles where rolname = any ($1) and has_database_privilege(rolname, current_database(), 'temporary')
           and has_function_privilege(rolname, 'lo_create(oid)', 'execute')`,
      [['gateway_reader', 'gateway_writer', app, login]],
    );
    t.deepEqual(rows, [{ role: app }]);
    const stranger = `select has_database_privilege('public', current_database(), 'temporary') as temporary,
        count(*) filter (where has_function_privilege('public', oid, 'execute'))::int as functions
        from pg_proc where pronamespace = 'pg_catalog'::regnamespace and proname ~ '^(lo_|lo(read|write)$|pg_logical_emit_message$)'`;
    t.deepEqual((await client.query(stranger)).rows, [{ temporary: false, functions: 0 }]);
    await client.query(`begin; do $$ declare back text; begin
        for back in select statement from gateway.undo order by place desc loop execute back; end loop; end $$`);
    const [given] = (await client.query<{ temporary: boolean; functions: number }>(stranger)).rows;
    t.true(given?.temporary && given.functions > 15, 'undo gives all of it back');
    await client.query('rollback');
    const as = { username: login, password: 'secret', pathname: name };
    const replicaUrls = Object.assign(new URL(shared.replicas[0] as string), as).href;
    const roleOf = async (): Promise<Finding | undefined> => {
      await t.context.database.caughtUp();
      const checked = await commandLine(['check', '--json'], { replicaUrls });
      return (JSON.parse(checked.stdout) as { findings: Finding[] }).findings.find(({ code }) => code === 'role');
    };
    t.like(await roleOf(), { level: 'ok', object: login });
    await client.query(`grant temporary on database ${name} to ${login}`);
    t.regex((await roleOf())?.detail ?? '', new RegExp(`: revoke TEMPORARY on the database from ${login}\\.$`));
  } finally {
    await client.end();
    await primary.query(`drop database ${name} with (force)`);
    // Databases of test files beside this one may hold grants to all roles, so that these cannot go before them.
    await primary.query(`drop owned by ${app}, ${login}; drop role ${app}, ${login}`).catch(() => undefined);
  }
});
