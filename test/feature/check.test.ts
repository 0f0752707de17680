import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { urlAs } from '../../demo/cluster/passwords.js';
import type { Finding } from '../../src/check/finding.js';
import { projectRoot } from '../../src/paths.js';
import { RoundTrip } from '../../src/wire/queries.js';
import { commandLine, connections } from '../support/command-line.js';
import { gatewayTest, shared } from '../support/workspace.js';

// `check` and `migrate` as processes, as an operator runs them.

const test = gatewayTest();

test.serial(
  'check --json prints one document with level, code, place and advice, and exits with 1 when an item failed',
  async (t) => {
    const { database } = t.context;
    const fits = await commandLine(['check', '--json'], connections(database));
    const report = JSON.parse(fits.stdout) as { ok: boolean; findings: Finding[] };
    t.deepEqual(
      [fits.code, report.ok],
      [0, true],
      'a warning, such as of damaged values of the data set, is no failure',
    );
    t.deepEqual(
      report.findings.filter(({ level }) => level !== 'ok').map(({ level, code, object }) => [level, code, object]),
      [['warning', 'values', 'klanten']],
    );
    await database.primary.query('revoke insert on gateway.idempotency from gateway_writer');
    const failed = await commandLine(['check'], connections(database));
    await database.primary.query(
      'grant insert (workspace_id, token_id, key, fingerprint) on gateway.idempotency to gateway_writer',
    );
    t.is(failed.code, 1);
    t.regex(
      failed.stdout,
      /^primary \(127\.0\.0\.1:\d+\/\w+\)$[\s\S]*^ {2}FAILED {3}writes installaties: permission denied .*\n {11}Run migrate/m,
    );
  },
);

test.serial('check exits with 2 where the definitions cannot be used, as with settings', async (t) => {
  const { code, stderr } = await commandLine(['check'], {
    ...connections(t.context.database),
    resourcesDir: '/nowhere',
  });
  t.is(code, 2);
  t.regex(stderr, /^RESOURCES_DIR \/nowhere cannot be read: ENOENT/);
});

test.serial('rules of the app that refuse every trial of a write are a warning of check, and no failure', async (t) => {
  const { database } = t.context;
  const { primary } = database;
  const raise = (condition: string): [rule: string, undo: string] => [
    `create function app.closed() returns trigger language plpgsql as $$ begin raise ${condition}; end $$;
      create trigger closed before insert or update on app.installaties for each row execute function app.closed()`,
    'drop function app.closed cascade',
  ];
  const rules = [
    raise("exception 'closed'"),
    raise('unique_violation'),
    raise('check_violation'),
    raise('numeric_value_out_of_range'),
  ];
  for (const [rule, undo] of rules) {
    await primary.query(rule);
    const { stdout } = await commandLine(['check', '--json'], connections(database));
    await primary.query(undo);
    const { findings } = JSON.parse(stdout) as { findings: Finding[] };
    const writes = findings.filter(({ code, level }) => code === 'writes' && level !== 'ok');
    t.deepEqual(
      writes.map(({ level }) => level),
      ['warning'],
      rule,
    );
  }
});

test.serial(
  'a batch of a check is late after its time without an answer, and one that was answered never',
  async (t) => {
    const client = new pg.Client({ connectionString: t.context.database.settings.primaryUrls, query_timeout: 700 });
    await client.connect();
    const outcomes: string[] = [];
    const batch = (text: string): RoundTrip => {
      const statement = { name: 'any', text, parameters: [] };
      return new RoundTrip([{ statement, values: [] }], false, (error, [tag]) =>
        outcomes.push(error?.message ?? `${tag}`),
      );
    };
    client.query(batch('select 1'));
    await sleep(1000);
    t.deepEqual(outcomes, ['SELECT 1']);
    client.query(batch('select pg_sleep(1)'));
    await sleep(1300);
    t.deepEqual(outcomes, ['SELECT 1', 'Query read timeout']);
    await client.end();
  },
);

test.serial(
  'migrate takes TEMPORARY from PUBLIC and leaves it to the roles that are there, logins of the gateway apart',
  async (t) => {
    const name = `${t.context.database.name}_new`;
    const app = `${t.context.database.name}_app`;
    const login = `${t.context.database.name}_login`;
    const { primary } = t.context.database;
    await primary.query(`create database ${name}`);
    await primary.query(`create role ${app}`);
    await primary.query(
      `set gateway.login = '${login}'; set gateway.role = 'gateway_reader'; ${await readFile(join(projectRoot, 'deploy/login.sql'), 'utf8')}`,
    );
    await primary.query(`alter role ${login} password 'secret'`);
    const adminUrl = urlAs(shared.primary, 'postgres', name);
    const client = new pg.Client(adminUrl);
    await client.connect();
    try {
      await client.query(await readFile(join(projectRoot, 'sql/apps/first/schema.sql'), 'utf8'));
      const { stdout, code } = await commandLine(['migrate'], { adminUrl });
      t.is(code, 0, stdout);
      const { rows } = await client.query<{ role: string; temporary: boolean }>(
        `select rolname as role, has_database_privilege(rolname, current_database(), 'temporary') as temporary
       from pg_roles where rolname = any ($1) order by 1`,
        [['gateway_reader', 'gateway_writer', app, login]],
      );
      t.deepEqual(
        new Map(rows.map(({ role, temporary }) => [role, temporary])),
        new Map([
          ['gateway_reader', false],
          ['gateway_writer', false],
          [app, true],
          [login, false],
        ]),
      );
      const as = Object.assign(new URL(shared.replicas[0] as string), {
        username: login,
        password: 'secret',
        pathname: name,
      });
      const roleOf = async (): Promise<Finding | undefined> => {
        await t.context.database.caughtUp();
        const checked = await commandLine(['check', '--json'], { replicaUrls: as.href });
        return (JSON.parse(checked.stdout) as { findings: Finding[] }).findings.find(({ code }) => code === 'role');
      };
      t.like(await roleOf(), { level: 'ok', object: login });
      await client.query(`grant temporary on database ${name} to ${login}`);
      t.regex((await roleOf())?.detail ?? '', new RegExp(`: revoke TEMPORARY on the database from ${login}\\.$`));
    } finally {
      await client.end();
      await primary.query(`drop database ${name} with (force)`);
      // `migrate` of a test file beside this one may have given all roles TEMPORARY on its own database.
      await primary.query(`drop owned by ${app}, ${login}; drop role ${app}, ${login}`);
    }
  },
);
