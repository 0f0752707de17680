import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import pg from 'pg';
import { urlAs } from '../../demo/cluster/passwords.js';
import { projectRoot } from '../../src/paths.js';
import { shared } from '../support/workspace.js';

// Commands whose output has no reader any more, such as behind `| head -1`, or stands on a full disk.

const name = `closed_${randomUUID().slice(0, 8)}`;
const adminUrl = urlAs(shared.primary, 'postgres', name);

async function run<Row extends object>(url: string, sql: string): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return (await client.query<Row>(sql).finally(() => client.end())).rows;
}

test.before(async () => {
  await run(shared.primary, `create database ${name}`);
  await run(adminUrl, readFileSync(join(projectRoot, 'sql/apps/first/schema.sql'), 'utf8'));
});
test.after.always(() => run(shared.primary, `drop database ${name} with (force)`));

/** Runs the program with its stdout closed at the other end, or as this descriptor. */
function commandTo(stdout: 'nothing' | number, args: string[]): Promise<{ code: number | null; stderr: string }> {
  const child = spawn(process.execPath, [join(projectRoot, 'dist/src/main.js'), ...args], {
    env: { PATH: process.env.PATH, ADMIN_URL: adminUrl },
    stdio: ['ignore', stdout === 'nothing' ? 'pipe' : stdout, 'pipe'],
  });
  child.stdout?.destroy();
  let stderr = '';
  child.stderr?.on('data', (bytes: Buffer) => (stderr += String(bytes)));
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, stderr })));
}

test.serial('migrate does all of its work when its output has no reader, such as behind head', async (t) => {
  t.deepEqual(await commandTo('nothing', ['migrate']), { code: 0, stderr: '' });
  t.deepEqual(await commandTo('nothing', ['migrate', '--pending']), { code: 0, stderr: '' });
  t.deepEqual(await commandTo('nothing', ['migrate', '--indexes']), { code: 0, stderr: '' });
  const invalid = 'select from pg_index where not indisvalid';
  t.deepEqual(await run(adminUrl, invalid), []);
  const [indexes] = await run<{ count: number }>(
    adminUrl,
    "select count(*)::int from pg_indexes where schemaname = 'app' and indexname ~ '^gateway_'",
  );
  t.true((indexes?.count ?? 0) > 5);
});

test.serial('the exit code of a command is that of its work, also when its output has no reader', async (t) => {
  await run(adminUrl, `update gateway.applied_files set hash = 'other' where name = 'klanten.sql'`);
  t.is((await commandTo('nothing', ['migrate', '--pending'])).code, 1);
});

test.serial('a token that could not be shown is named as lost, with the way to another', async (t) => {
  const [workspace] = await run<{ id: string; owner: string }>(
    adminUrl,
    `with made as (insert into app.workspaces (id, naam) values (gen_random_uuid(), 'Closed') returning id)
     insert into app.users (id, workspace_id, naam, email, rol)
     select gen_random_uuid(), id, 'A', 'a@closed.example', 'owner' from made returning workspace_id as id, email as owner`,
  );
  const create = ['tokens', 'create', '--workspace', workspace?.id ?? '', '--owner', workspace?.owner ?? ''];
  const { code, stderr } = await commandTo('nothing', [...create, '--name', 'x', '--scopes', 'read:klanten']);
  t.is(code, 1, stderr);
  const [, id = ''] = /and is lost: `tokens rotate (\S+)` makes another in its place[.]\n$/.exec(stderr) ?? [];
  t.deepEqual(await run(adminUrl, 'select id::text from gateway.api_tokens'), [{ id }]);
});

const full = '/dev/full';
(existsSync(full) ? test.serial : test.serial.skip)(
  'a full disk under the output is a failure that is named',
  async (t) => {
    const descriptor = openSync(full, 'w');
    t.teardown(() => closeSync(descriptor));
    const { code, stderr } = await commandTo(descriptor, ['migrate', '--list']);
    t.is(code, 1);
    t.is(stderr, 'The output could not be written (ENOSPC).\n');
  },
);
