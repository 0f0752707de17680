import pg from 'pg';
import { urlAs } from '../../demo/cluster/passwords.js';
import { loadResources } from '../../src/resource/definition/load.js';
import { getViews } from '../../src/resource/statements/walls.js';
import { makeMac } from '../support/walls.js';
import { words } from '../support/words.js';
import { gatewayTest, shared } from '../support/workspace.js';

const test = gatewayTest();
const views = ['klanten', 'installaties', 'werkbonnen', 'logboeken', 'werkbonnen_handelingen', 'werkbonnen_uren'];
const all = loadResources('').flatMap(getViews);
const refused = '42501'; // insufficient_privilege
const nowhere = makeMac('00000000-0000-0000-0000-000000000000');

async function reader(server: string, database: string): Promise<pg.Client> {
  const client = new pg.Client(urlAs(server, 'gateway_reader', database));
  await client.connect();
  return client;
}

test.beforeEach(async (t) => {
  Object.assign(t.context, { hand: await reader(shared.replicas[0] as string, t.context.database.name) });
});
test.afterEach.always((t) => handOf(t.context).end());
const handOf = (context: unknown) => (context as { hand: pg.Client }).hand;

async function failure(client: pg.Client, sql: string): Promise<string | undefined> {
  try {
    await client.query(sql);
    return undefined;
  } catch (error) {
    return (error as { code: string }).code;
  }
}

test('without a workspace the views show nothing', async (t) => {
  const hand = handOf(t.context);
  t.true(all.length > 20);
  for (const view of all) {
    const count = async () => (await hand.query<{ n: string }>(`select count(*) as n from ${view}`)).rows[0]?.n;
    t.is(await count(), '0', view);
    await hand.query("select set_config('gateway.workspace_id', '', false)");
    t.is(await count(), '0', `${view}, with an empty setting`);
    await hand.query("select set_config('gateway.workspace_id', $1, false)", [nowhere]);
    t.is(await count(), '0', `${view}, in a workspace that does not exist`);
    await hand.query('reset gateway.workspace_id');
  }
});

test('no condition sees a row of another workspace, whatever it costs and however the view is read', async (t) => {
  const hand = handOf(t.context);
  const texts = {
    klanten: 'naam',
    installaties: 'naam',
    werkbonnen: 'nummer',
    logboeken: 'entity',
    werkbonnen_uren: 'part_id::text',
  };
  const { rows } = await hand.query<{ version: number }>(
    `select current_setting('server_version_num')::int as version`,
  );
  const version = rows[0]?.version as number;
  for (const scan of ['indexscan', 'indexonlyscan', 'bitmapscan']) await hand.query(`set enable_${scan} = off`);
  for (const workspace of ['', nowhere]) {
    await hand.query("select set_config('gateway.workspace_id', $1, false)", [workspace]);
    for (const [view, text] of Object.entries(texts)) {
      for (const condition of [
        `${text}::integer = 1`,
        `${text} like any (array['n%\\'])`,
        `set_config('', ${text}, true) is null`,
        ...(version < 160_000 ? [] : [`json_object(${text}: 1, ${text}: 2 with unique keys) is null`]),
      ]) {
        for (const order of ['', '_asc', '_desc'].slice(0, view === 'werkbonnen_uren' ? 2 : 3)) {
          const sql = `select from gateway.${view}${order} where ${order === '' ? condition : condition.replaceAll('part_id', 'id')}`;
          t.is(await failure(hand, sql), undefined, `${sql}, workspace "${workspace}"`);
        }
      }
    }
  }
});

test('neither role can create a function, which could be cheaper than the wall', async (t) => {
  for (const role of ['gateway_reader', 'gateway_writer']) {
    const hand = new pg.Client(urlAs(shared.primary, role, t.context.database.name));
    await hand.connect();
    try {
      await hand.query('set default_transaction_read_only = off');
      for (const schema of ['pg_temp', 'public', 'app', 'gateway']) {
        const sql = `create function ${schema}.f(text) returns boolean language plpgsql cost 0.0000001 as 'begin return true; end'`;
        t.is(await failure(hand, sql), refused, `${role} in ${schema}`);
      }
      t.is(await failure(hand, 'create temporary table t ()'), refused, role);
    } finally {
      await hand.end();
    }
  }
});

test('with one workspace the views show all of it and nothing of the other, whatever the condition', async (t) => {
  const hand = handOf(t.context);
  const { database } = t.context;
  for (const { id: own } of database.workspaces.slice(0, 2)) {
    await hand.query("select set_config('gateway.workspace_id', $1, false)", [makeMac(own)]);
    for (const view of views) {
      const column = view.startsWith('werkbonnen_') ? 'part_id' : 'id';
      const digest = `count(*) as n, md5(string_agg(${column}::text, ' ' order by ${column})) as ids`;
      const shown = await hand.query(
        `select ${digest} from gateway.${view} where ${column}::text <> '' or ${column} is null or true`,
      );
      const stored = await database.replica.query<{ n: string }>(
        `select ${digest.replaceAll(column, 'id')} from app.${view.replace('werkbonnen_', 'werkbon_')} where workspace_id = $1`,
        [own],
      );
      t.deepEqual(shown.rows, stored.rows, view);
      t.true(Number(stored.rows[0]?.n) > 0);
    }
  }
});

test('the reader cannot select any column of any table of the app, nor anything else that is not a view of it', async (t) => {
  const hand = handOf(t.context);
  const { rows } = await t.context.database.replica.query<{ relation: string; column: string }>(
    `select format('%I.%I', n.nspname, c.relname) as relation, quote_ident(a.attname) as column
     from pg_class c join pg_namespace n on n.oid = c.relnamespace join pg_attribute a on a.attrelid = c.oid
     where c.relkind in ('r', 'p', 'v', 'm') and a.attnum > 0 and n.nspname in ('app', 'records', 'gateway')
       and not n.nspname || '.' || c.relname = any ($1)`,
    [[...all, 'gateway.applied_files']],
  );
  t.true(rows.length > 100);
  for (const { relation, column } of rows)
    t.is(await failure(hand, `select ${column} from ${relation} limit 1`), refused, `${relation}.${column}`);
});

test('the reader may call nine functions, and none of them lists workspaces', async (t) => {
  const hand = handOf(t.context);
  const { rows } = await t.context.database.replica.query<{ name: string; callable: boolean }>(
    `select p.oid::regprocedure::text as name,
       has_schema_privilege('gateway_reader', n.oid, 'usage') and has_function_privilege('gateway_reader', p.oid, 'execute') as callable
     from pg_proc p join pg_namespace n on n.oid = p.pronamespace where n.nspname in ('app', 'gateway')`,
  );
  t.deepEqual(
    rows
      .filter(({ callable }) => callable)
      .map(({ name }) => name)
      .sort(),
    words(`
      gateway.digest_of(text[]) gateway.find_token(bytea) gateway.hidden_token_rows() gateway.key_ids() gateway.received_timeline()
      gateway.sources_of(text[]) gateway.states_of(text[]) gateway.sync_keys() gateway.workspace()`),
  );
  t.true(rows.length > 6);
  t.is(await failure(hand, 'select app.installaties_versie()'), refused);
  t.is(await failure(hand, 'select gateway.list_tokens(null)'), refused);
  t.is(await failure(hand, 'select gateway.sample_workspaces()'), refused);
  t.is(await failure(hand, 'select id from records.klanten limit 1'), refused);
  t.is(await failure(hand, 'select id from gateway.workspaces limit 1'), refused);
  t.is(await failure(hand, "select pg_read_file('/etc/passwd')"), refused);
  t.is(await failure(hand, 'select * from pg_authid'), refused);
  t.is(await failure(hand, 'set role gateway_owner'), refused);
  t.is(await failure(hand, 'set role postgres'), refused);
});

test('even on the primary the reader can write nothing', async (t) => {
  const { database } = t.context;
  const hand = await reader(shared.primary, database.name);
  try {
    await hand.query('set default_transaction_read_only = off');
    await hand.query("select set_config('gateway.workspace_id', $1, false)", [
      makeMac(database.workspaces[0]?.id as string),
    ]);
    for (const view of views) {
      t.is(await failure(hand, `delete from gateway.${view}`), refused);
      t.is(await failure(hand, `update gateway.${view} set id = id`), refused);
      t.is(await failure(hand, `insert into gateway.${view} (id) values (null)`), refused);
    }
    t.is(await failure(hand, 'create table public.x ()'), refused);
    t.is(await failure(hand, 'create table gateway.x ()'), refused);
  } finally {
    await hand.end();
  }
});

test('the writer learns the user of a token of its own workspace alone', async (t) => {
  const { workspaces, primary, token } = t.context.database;
  const writer = new pg.Client(urlAs(shared.primary, 'gateway_writer', t.context.database.name));
  await Promise.all([token({ workspace: 0 }), token({ workspace: 1 }), writer.connect()]);
  await writer.query("select set_config('gateway.workspace_id', $1, false)", [makeMac(workspaces[0]?.id as string)]);
  const { rows } = await primary.query('select id, workspace_id, created_by::text from gateway.api_tokens');
  for (const { id, workspace_id, created_by } of rows) {
    const found = await writer.query('select gateway.token_owner($1) as it', [id]);
    t.is(found.rows[0].it, workspace_id === workspaces[0]?.id ? created_by : null);
  }
  await writer.end();
});

test('the reader is no superuser, member of nothing, and the signature is in no view', async (t) => {
  const { replica } = t.context.database;
  const { rows } = await replica.query(
    `select rolsuper or rolbypassrls or rolcreaterole or rolcreatedb or rolreplication as strong,
       exists (select from pg_auth_members m where m.member = r.oid) as member from pg_roles r where rolname = 'gateway_reader'`,
  );
  t.deepEqual(rows, [{ strong: false, member: false }]);
  const columns = await replica.query(
    `select 1 from pg_attribute a join pg_class c on c.oid = a.attrelid
     where c.relnamespace in ('gateway'::regnamespace, 'records'::regnamespace) and a.attname ~ 'handtekening|email|telefoon'
       and (has_column_privilege('gateway_reader', c.oid, a.attnum, 'select') or has_column_privilege('gateway_writer', c.oid, a.attnum, 'select'))`,
  );
  t.is(columns.rowCount, 0);
});
