import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import pg from 'pg';
import { urlAs } from '../../src/demo/cluster/passwords.js';
import { projectRoot } from '../../src/paths.js';
import { commandLine, connections } from '../support/command-line.js';
import { gatewayTest, shared, type TestContext } from '../support/workspace.js';

// `check` and `migrate` as processes, as an operator runs them.

const test = gatewayTest();

interface Finding {
  readonly server: string;
  readonly subject: string;
  readonly ok: boolean;
  readonly detail: string;
}

/** The faults that `check --json` finds in the test's database. */
async function wrong(t: ExecutionContext<TestContext>): Promise<string[]> {
  await t.context.database.caughtUp();
  const { stdout, code } = await commandLine(['check', '--json'], connections(t.context.database));
  const faults = (JSON.parse(stdout) as Finding[]).filter(({ ok }) => !ok);
  t.is(code, faults.length === 0 ? 0 : 1);
  return faults.map(({ server, subject, detail }) => `${server.split(' ')[0]}: ${subject}: ${detail}`);
}

test.serial('check finds nothing wrong with a migrated database', async (t) => {
  t.deepEqual(await wrong(t), []);
});

test.serial('check reports a role that can create temporary objects', async (t) => {
  const { primary, name } = t.context.database;
  await primary.query(`grant temporary on database ${name} to public`);
  const advice = 'it may create temporary objects: revoke TEMPORARY on the database from PUBLIC.';
  t.deepEqual(await wrong(t), [`replica: role gateway_reader: ${advice}`, `primary: role gateway_writer: ${advice}`]);
  await primary.query(`revoke temporary on database ${name} from public`);
});

test.serial('check reports a function that costs less than a comparison', async (t) => {
  const { primary } = t.context.database;
  await primary.query(`create function public.cheap(text) returns boolean language sql cost 0.1 as 'select true'`);
  const faults = await wrong(t);
  t.is(faults.length, 2);
  for (const fault of faults) t.regex(fault, /may execute the function cheap\(text\), whose cost of 0.1 is below 1/);
  await primary.query('drop function public.cheap');
});

test.serial('check reports a view whose other conditions see rows of other workspaces', async (t) => {
  const { primary } = t.context.database;
  const columns =
    'workspace_id, id, naam, straat, huisnummer, toevoeging, postcode, plaats, land, kvk_nummer, created_at, updated_at';
  const view = (wall: string) =>
    primary.query(
      `create or replace view gateway.klanten as select ${columns} from app.klanten where workspace_id = gateway.workspace()::uuid${wall}`,
    );
  await view('');
  t.deepEqual(await wrong(t), [
    'replica: view gateway.klanten: other conditions see rows without a workspace: its filter must be the cheapest condition; ' +
      'other conditions see rows in a workspace that does not exist: its filter must be the cheapest condition.',
  ]);
  await view(' and coalesce(workspace_id = any (array[(select gateway.workspace()::uuid)]), false)');
  t.deepEqual(await wrong(t), []);
});

test.serial(
  'check reports a view that shows every workspace the rows of all, and serve refuses to start with it',
  async (t) => {
    const { primary } = t.context.database;
    const { rows } = await primary.query<{ definition: string }>(
      `select pg_get_viewdef('gateway.klanten') as definition`,
    );
    const columns =
      'id, naam, straat, huisnummer, toevoeging, postcode, plaats, land, kvk_nummer, created_at, updated_at';
    const set = `exists (select from app.workspaces w where w.id = (select gateway.workspace()::uuid))`;
    const leaks = {
      'two workspaces see the same rows': `select gateway.workspace()::uuid as workspace_id, ${columns} from app.klanten where ${set}`,
      'in a workspace it shows rows of another one; two workspaces see the same rows': `select workspace_id, ${columns} from app.klanten where ${set}`,
    };
    await primary.query('grant select (id) on app.workspaces to gateway_owner');
    for (const [fault, select] of Object.entries(leaks)) {
      await primary.query(`create or replace view gateway.klanten as ${select}`);
      t.deepEqual(
        (await wrong(t)).filter((line) => line.includes('tenant wall')),
        [`replica: tenant wall of gateway.klanten: ${fault}.`],
      );
      const { code, stderr } = await commandLine(
        ['serve', '--port', '0', '--ops-port', '0'],
        connections(t.context.database),
      );
      t.is(code, 1);
      t.true(stderr.includes(`tenant wall of gateway.klanten: ${fault}.`), stderr);
    }
    await primary.query(`create or replace view gateway.klanten as ${rows[0]?.definition}`);
    t.deepEqual(await wrong(t), []);
  },
);

test.serial('migrate takes TEMPORARY from PUBLIC and leaves it to the roles that are there', async (t) => {
  const name = `${t.context.database.name}_new`;
  const app = `${t.context.database.name}_app`;
  const { primary } = t.context.database;
  await primary.query(`create database ${name}`);
  await primary.query(`create role ${app}`);
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
      [['gateway_reader', 'gateway_writer', app]],
    );
    t.deepEqual(
      new Map(rows.map(({ role, temporary }) => [role, temporary])),
      new Map([
        ['gateway_reader', false],
        ['gateway_writer', false],
        [app, true],
      ]),
    );
  } finally {
    await client.end();
    await primary.query(`drop database ${name} with (force)`);
    await primary.query(`drop role ${app}`);
  }
});
