import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import pg from 'pg';
import { projectRoot } from '../../src/paths.js';
import { commandLine } from '../support/command-line.js';
import { shared } from '../support/workspace.js';

const read = (path: string): string => readFileSync(join(projectRoot, path), 'utf8');

test('an admin without CREATEROLE migrates, once a DBA has run deploy/roles.sql', async (t) => {
  const admin = `admin_${randomUUID().slice(0, 8)}`;
  const dba = new pg.Client(shared.primary);
  await dba.connect();
  try {
    await dba.query(`create role ${admin} login password 'secret'`);
    await dba.query(`create database ${admin} owner ${admin}`);
    const adminUrl = Object.assign(new URL(shared.primary), {
      username: admin,
      password: 'secret',
      pathname: admin,
    }).href;
    const app = new pg.Client(adminUrl);
    await app.connect();
    await app.query(read('sql/apps/first/schema.sql')).finally(() => app.end());
    const refused = await commandLine(['migrate'], { adminUrl });
    t.is(refused.code, 1);
    t.regex(refused.stderr, /core\/001_roles\.sql.*(permission denied|must have)/);
    await dba.query(`set gateway.admin = '${admin}'; ${read('deploy/roles.sql')}`);
    const { stderr, code } = await commandLine(['migrate'], { adminUrl });
    t.deepEqual({ stderr, code }, { stderr: '', code: 0 });
    const pending = await commandLine(['migrate', '--pending'], { adminUrl });
    t.is(pending.code, 0, pending.stdout);
  } finally {
    await dba.query(`drop database ${admin} with (force)`);
    await dba.query(`drop role ${admin}`);
    await dba.end();
  }
});

test('deploy/roles.sql gives the roles the settings of sql/core/001_roles.sql', (t) => {
  const settings = (path: string): string[] => read(path).match(/\('gateway_\w+', '\w+', '[^']*'\)/g) ?? [];
  t.is(settings('deploy/roles.sql').length, 18);
  t.deepEqual(settings('deploy/roles.sql'), settings('sql/core/001_roles.sql'));
});
