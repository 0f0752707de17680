import pg from 'pg';
import { urlAs } from '../../demo/cluster/passwords.js';
import { commandLine, connections } from '../support/command-line.js';
import type { Page } from '../support/lists.js';
import { customerOf } from '../support/primary-side.js';
import { gatewayTest, shared } from '../support/workspace.js';
import { post } from '../support/writes.js';

// A role can change its own settings: what the gateway relies on is sent at each login, so they change nothing.
const test = gatewayTest().serial;

/** Each stops reads or writes, changes values, or loses confirmed writes where it is in force. */
const hostile = {
  statement_timeout: '1ms',
  lock_timeout: '1ms',
  idle_session_timeout: '1ms',
  idle_in_transaction_session_timeout: '1ms',
  default_transaction_isolation: 'serializable',
  search_path: 'nowhere',
  row_security: 'off',
  extra_float_digits: '-15',
  bytea_output: 'escape',
  standard_conforming_strings: 'off',
  DateStyle: 'SQL, DMY',
  TimeZone: 'Asia/Tokyo',
  plan_cache_mode: 'force_custom_plan',
  enable_indexscan: 'off',
  synchronous_commit: 'off',
  local_preload_libraries: 'nowhere',
};
/** Not every server has these. */
const ofLater = { transaction_timeout: '1ms', restrict_nonsystem_relation_kind: 'view' };

test('settings that a thief gives to the logins change no read and no write', async (t) => {
  const { database, client } = t.context;
  const { name, primary } = database;
  const path = '/installaties?perPage=50';
  const before = (await client.get(path)).json<Page>().data;
  await primary.query(`create table app.seen (setting text);
    create function app.see() returns trigger language plpgsql security definer as $$ begin
      insert into app.seen values (current_setting('synchronous_commit')); return new; end $$;
    create trigger see after insert on app.installaties for each row execute function app.see()`);
  const { rows } = await primary.query<{ name: string }>('select name from pg_settings');
  const known = Object.entries(ofLater).filter(([setting]) => rows.some((row) => row.name === setting));
  const all = { ...hostile, ...Object.fromEntries(known) };
  for (const role of ['gateway_reader', 'gateway_writer']) {
    const thief = new pg.Client(urlAs(shared.primary, role, name));
    await thief.connect();
    await thief.query('set default_transaction_read_only = off');
    for (const [setting, value] of Object.entries(all))
      await thief.query(`alter role ${role} in database ${name} set ${setting} = '${value}'`);
    await thief.end();
  }
  try {
    await database.caughtUp();
    const own = await database.gateway();
    t.deepEqual((await own.client.get(path)).json<Page>().data, before);
    const text = String.raw`a\b 'c' \'`;
    const created = await post(own.client, { customerId: await customerOf(database), naam: text });
    t.is(created.status, 201, created.text);
    t.is(created.json<{ naam: string }>().naam, text);
    t.deepEqual((await primary.query('select setting from app.seen')).rows, [{ setting: 'on' }]);
    const { stdout } = await commandLine(['check'], connections(database));
    t.regex(stdout, /WARNING +role settings: .*search_path=nowhere.*statement_timeout=1ms/);
    t.notRegex(stdout, /FAILED|REFUSED/);
  } finally {
    for (const role of ['gateway_reader', 'gateway_writer'])
      await primary.query(`alter role ${role} in database ${name} reset all`);
    await primary.query('drop trigger see on app.installaties; drop function app.see; drop table app.seen');
  }
});

test('a database that writes strings and names otherwise is migrated, checked and served', async (t) => {
  const { database } = t.context;
  const { name, primary } = database;
  await primary.query(`alter database ${name} set standard_conforming_strings = off`);
  await primary.query(`alter database ${name} set quote_all_identifiers = on`);
  await primary.query(`drop index app.werkbon_uren_sync`);
  try {
    await database.caughtUp();
    t.is((await commandLine(['views', '--drop'], connections(database))).code, 0);
    for (const args of [
      ['views', '--create'],
      ['migrate', '--indexes'],
    ]) {
      const { code, stderr } = await commandLine(args, connections(database));
      t.is(code, 0, stderr);
    }
    await database.caughtUp();
    const checked = await commandLine(['check'], connections(database));
    t.is(checked.code, 0, checked.stdout);
    const { client } = await database.gateway();
    const text = String.raw`a\b`;
    const made = await post(client, { customerId: await customerOf(database), naam: text });
    t.is(made.json<{ naam: string }>().naam, text);
  } finally {
    await primary.query(`alter database ${name} reset all`);
  }
});
