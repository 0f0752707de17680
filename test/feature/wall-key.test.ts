import { randomBytes } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import pg from 'pg';
import { urlAs } from '../../demo/cluster/passwords.js';
import { runAsAdmin } from '../../src/postgres/admin.js';
import type { WorkspaceId } from '../../src/postgres/statement.js';
import { makeWorkspaceMac } from '../../src/postgres/workspace-mac.js';
import { loadResources } from '../../src/resource/definition/load.js';
import { getViews } from '../../src/resource/statements/walls.js';
import { hashToken, makeToken } from '../../src/serve/http/token-format.js';
import type { Settings } from '../../src/settings.js';
import { commandLine, connections } from '../support/command-line.js';
import type { Page } from '../support/lists.js';
import { cloned } from '../support/template.js';
import { makeMac, wallKey } from '../support/walls.js';
import { eventually, gatewayTest, shared, type TestDatabase } from '../support/workspace.js';

// The login of a gateway with its password alone, and the life of the key that it lacks.
const test = gatewayTest();
const logins = ['gateway_reader', 'gateway_writer'] as const;
const [denied, noColumn, wrongMac] = ['42501', '42703', 'WG006'];

/** Runs `work` as a thief of the URL of a login would, on the primary. */
async function asThief<T>(
  database: TestDatabase,
  login: string,
  work: (run: (sql: string, values?: string[]) => Promise<string | number>) => Promise<T>,
): Promise<T> {
  const client = new pg.Client(urlAs(shared.primary, login, database.name));
  await client.connect();
  const run = (sql: string, values: string[] = []): Promise<string | number> =>
    client.query(sql, values).then(
      ({ rowCount }) => rowCount ?? 0,
      ({ code }: { code: string }) => code,
    );
  return work(run).finally(() => client.end());
}

test('a workspace without its MAC shows nothing, and neither does a forged one', async (t) => {
  const { database } = t.context;
  const [own, other] = database.workspaces.map(({ id }) => id) as [string, string];
  const [mac = '', hour = ''] = makeMac(own).split('\x1f');
  const away = (hours: number): string =>
    makeWorkspaceMac(wallKey, () => Date.now() + hours * 3_600_000)(own as WorkspaceId);
  const forged = [
    own,
    ...[mac.toUpperCase(), mac.slice(1), `0${mac}`, ` ${mac}`, '', '0'.repeat(64)].map(
      (each) => `${each}\x1f${hour}\x1f${own}`,
    ),
    `${mac.slice(0, 63)}${mac.endsWith('0') ? '1' : '0'}\x1f${hour}\x1f${own}`,
    `${mac}\x1f${hour}\x1f${other}`,
    `${makeMac(other).split('\x1f')[0]}\x1f${hour}\x1f${own}`,
    `${mac}\x1f${hour}\x1f${own} `,
    `${mac}\x1f${hour}${own}`,
    `${mac}\x1f${own}\x1f${hour}`,
    `${mac}\x1f${Number(hour) + 1}\x1f${own}`,
    away(-2),
    away(2),
    `${mac}\x1f${own}`,
    mac,
    `${mac}\x1f`,
    '\x1f',
    '\\x',
    "'",
  ];
  for (const login of logins)
    await asThief(database, login, async (run) => {
      const read = 'select id from gateway.klanten limit 1';
      t.is(await run(read), 0, 'without a workspace');
      for (const text of forged) {
        t.is(await run("select set_config('gateway.workspace_id', $1, false)", [text]), 1);
        t.is(await run(read), wrongMac, text);
      }
      await run("select set_config('gateway.workspace_id', $1, false)", [makeMac(own)]);
      t.is(await run(read), 1);
    });
});

test('no login can name the workspace of a row, so no estimate of the planner lists them', async (t) => {
  const { database } = t.context;
  const reads = loadResources('').flatMap(getViews);
  const writes = ['gateway.installaties_write', 'gateway.logboeken_write', 'gateway.idempotency'];
  for (const login of logins)
    await asThief(database, login, async (run) => {
      for (const relation of [...reads, ...writes]) {
        const outcome = await run(`explain select from ${relation} where workspace_id::text < '8'`);
        t.true(outcome === denied || outcome === noColumn, `${login} ${relation}: ${outcome}`);
        const whole = await run(`explain select ${relation.split('.')[1]}::text from ${relation}`);
        if (writes.includes(relation)) t.is(whole, denied, `${login} ${relation} as a whole row`);
      }
    });
});

test('estimates of the planner tell nothing of the values of columns that no filter and no order uses', async (t) => {
  const { database } = t.context;
  await database.primary.query('analyze');
  /** With statistics they differ, so that a thief who asks on spells out a value. */
  const estimates = async (column: string, relation: string): Promise<number> => {
    const client = new pg.Client(urlAs(shared.primary, 'gateway_reader', database.name));
    await client.connect();
    const texts = ['', 'A', 'K', 'M', 'W', 'WB-2021', 'zzz'];
    const explain = (text: string) =>
      `explain (format json) select from gateway.${relation} where ${column} < '${text}'`;
    const rows = new Set<number>();
    for (const text of texts) rows.add((await client.query(explain(text))).rows[0]['QUERY PLAN'][0].Plan['Plan Rows']);
    await client.end();
    return rows.size;
  };
  t.true((await estimates('nummer', 'werkbonnen')) > 1, 'a filter needs its statistics');
  t.is(await estimates('interne_notities', 'installaties'), 1);
  t.is(await estimates('omschrijving', 'installaties_desc'), 1);
  t.is(await estimates('naam', 'klanten_by_id'), 1);
});

test('no login can read the key, change the function that compares, or stand in for it', async (t) => {
  const { database } = t.context;
  for (const login of logins)
    await asThief(database, login, async (run) => {
      await run('set default_transaction_read_only = off');
      for (const sql of [
        'select * from gateway.wall_keys',
        'select * from gateway.verified_workspace',
        'explain select from gateway.wall_keys where inner_pad > $$x$$',
        "insert into gateway.wall_keys values ('x', 'x')",
        'delete from gateway.wall_keys',
        'do $$ begin lock table gateway.wall_keys; end $$',
        'alter function gateway.workspace() stable',
        'create function public.sha256(bytea) returns bytea language sql return $1',
      ])
        t.is(await run(sql), denied, `${login}: ${sql}`);
      await run(`set search_path = app, gateway, public`);
      await run("select set_config('gateway.workspace_id', $1, false)", [`${'0'.repeat(64)}\x1fx`]);
      t.is(await run('select gateway.workspace()'), wrongMac);
    });
  const { rows } = await database.primary.query<{ flags: string; body: string }>(
    `select concat(provolatile, proparallel, prosecdef) as flags, prosrc as body from pg_proc where oid = 'gateway.workspace()'::regprocedure`,
  );
  t.is(rows[0]?.flags, 'sst');
  t.deepEqual(
    rows[0]?.body
      .match(/(?<![.\w])(?!exists|if|using)\w+(?= ?\()|(?<!operator\(pg_catalog[.])\|\|/g)
      ?.filter((name) => name !== 'operator'),
    [],
    'no search_path is set, so each function and operator has its schema',
  );
});

test.serial(
  'no log, plan or view of PostgreSQL holds a MAC, whatever a role or an operator has it print without parameters',
  async (t) => {
    const { database } = t.context;
    const own = `${database.name}_logged`;
    await runAsAdmin(urlAs(shared.primary, 'postgres', 'postgres'), async (client) => {
      await client.query(`create database ${own} template ${cloned.first} strategy file_copy`);
      await client.query(`revoke temporary on database ${own} from public`);
    });
    t.teardown(() => database.primary.query(`drop database ${own} with (force)`));
    const at = (url: string, login = 'postgres'): string => urlAs(url, login, own);
    const settings = await runAsAdmin(at(shared.primary), async (client) => {
      await client.query(`load 'auto_explain'`);
      const { rows } = await client.query<{ name: string; context: string; value: string }>(
        `select name, context, case when name ~ 'parameter_max_length' then '0' when vartype = 'bool' then 'on' when name ~ '_min_duration' then '0'
          when name = 'log_statement' then 'all' when name = 'log_error_verbosity' then 'verbose' else setting end as value
        from pg_settings where name ~ '^(log_|debug_|auto_explain[.])' and context in ('user', 'superuser') and name !~ '_(sample_rate|discard_caches|stats)$'`,
      );
      for (const { name, value } of rows) await client.query(`alter database ${own} set ${name} = '${value}'`);
      await client.query('create extension pg_stat_statements');
      await client.query(`alter database ${own} set session_preload_libraries = 'auto_explain'`);
      return [...rows, { name: 'plan_cache_mode', context: 'user', value: 'force_custom_plan' }]; // plans with parameters
    });
    t.true(settings.length > 20, settings.map(({ name }) => name).join());
    for (const login of logins)
      await runAsAdmin(at(shared.primary, login), async (client) => {
        await client.query('set default_transaction_read_only = off');
        for (const { name, context, value } of settings)
          if (context === 'user') await client.query(`alter role ${login} in database ${own} set ${name} = '${value}'`);
      });
    await database.caughtUp();
    const files = Object.values(shared.logs);
    const before = files.map((file) => statSync(file).size);
    const { client } = await database.gateway({
      replicaUrls: at(shared.replicas[0] as string, 'gateway_reader'),
      primaryUrls: at(shared.primary, 'gateway_writer'),
    });
    const token = await tokenIn(at(shared.primary), database);
    await database.caughtUp();
    await eventually(
      t,
      'the replica has the token',
      async () => (await client.get('/klanten?perPage=5', { token })).status === 200,
    );
    const [installatie] = (await client.get('/installaties', { token })).json<{ data: { id: string }[] }>().data;
    const path = `/installaties/${installatie?.id}`;
    for (const naam of ['een', 'twee']) {
      const { headers } = await client.get(path, { token });
      const sent = { 'if-match': headers.etag as string, 'idempotency-key': naam };
      const patched = await client.request('PATCH', path, { token, body: { naam }, headers: sent });
      t.is(patched.status, 200, patched.text);
    }
    const shown = await runAsAdmin(at(shared.primary), (admin) =>
      admin.query<{ query: string }>(
        'select query from pg_stat_activity union all select query from pg_stat_statements',
      ),
    );
    const texts = JSON.stringify(shown.rows);
    t.true(texts.includes('set_config($'), 'pg_stat_statements has the guard, its constants as parameters');
    const logged = files
      .map((file, i) => readFileSync(file).subarray(before[i]).toString().replace(/\s+/g, ' ')) // plans break lines within values
      .filter((text) => text.includes(own));
    t.true(
      logged.every((text) => text.includes(`set_config('gateway.workspace_id', $1, true)`)) && logged.length === 2,
    );
    t.regex(logged.join(''), /Query Text/, 'auto_explain printed its plans');
    for (const { id } of database.workspaces) {
      const [mac = ''] = makeMac(id).split('\x1f');
      const asPlansPrintIt = Buffer.from(mac).join(' ');
      t.false([...logged, texts].some((text) => text.includes(mac) || text.includes(asPlansPrintIt)));
    }
  },
);

async function tokenIn(adminUrl: string, { workspaces }: TestDatabase): Promise<string> {
  const [text, { id, ownerId } = { id: '', ownerId: '' }] = [makeToken(), workspaces[0]];
  const scopes = ['klanten', 'installaties'].map((name) => `read:${name}`).concat('write:installaties');
  await runAsAdmin(adminUrl, (client) =>
    client.query(
      `insert into gateway.api_tokens (id, workspace_id, created_by, name, token_hash, scopes) values (gen_random_uuid(), $1, $2, 'test', $3, $4)`,
      [id, ownerId, hashToken(text), scopes],
    ),
  );
  return text;
}

test.serial('no text of a statement holds a MAC, which other sessions of the role could see', async (t) => {
  const texts: string[] = [];
  const { query } = pg.Client.prototype as { query: (...args: unknown[]) => unknown };
  t.teardown(() => Object.assign(pg.Client.prototype, { query }));
  Object.assign(pg.Client.prototype, {
    query(this: pg.Client, ...args: unknown[]) {
      texts.push(typeof args[0] === 'string' ? args[0] : String((args[0] as { text?: string }).text));
      return query.apply(this, args);
    },
  });
  t.is((await commandLine(['check'], connections(t.context.database))).code, 0);
  t.true(texts.some((text) => text.includes("set_config('gateway.workspace_id', $1")));
  const withMac = texts.filter((text) => text.includes('\x1f'));
  t.deepEqual(withMac, []);
});

test('no login can store large objects, write messages into the WAL, or hold up a migration', async (t) => {
  for (const login of logins)
    await asThief(t.context.database, login, async (run) => {
      await run('set default_transaction_read_only = off');
      for (const sql of [
        "select lo_from_bytea(0, 'x')",
        'select lo_create(0)',
        'select lo_creat(-1)',
        "select lo_put(1, 0, 'x')",
        'select lo_unlink(1)',
        "select pg_logical_emit_message(false, 'x', 'x')",
        'do $$ begin lock table gateway.migration_lock in share update exclusive mode; end $$',
        'do $$ begin lock table gateway.migration_lock in access share mode; end $$',
        'select statement from gateway.undo',
      ])
        t.is(await run(sql), denied, `${login}: ${sql}`);
    });
});

const newKey = (): string => randomBytes(32).toString('base64');

test('serve and check refuse a gateway without the key, or with another, and say how to get it', async (t) => {
  const { database } = t.context;
  const refusal = async (own: Partial<Settings>): Promise<string> =>
    ((await t.throwsAsync(database.gateway(own))) as Error).message;
  t.regex(await refusal({ wallKey: '' }), /WALL_KEY is not set.*openssl rand -base64 32.*migrate/);
  t.regex(await refusal({ wallKey: newKey() }), /wall key: the database has another WALL_KEY: run `migrate`/);
  for (const wallKey of ['', newKey()]) {
    const checked = await commandLine(['check'], { ...connections(database), wallKey });
    t.is(checked.code, 1);
    t.regex(checked.stdout, /wall key.*WALL_KEY/);
  }
  const migrated = await commandLine(['migrate'], { ...connections(database), wallKey: 'short' });
  t.is(migrated.code, 2);
  t.regex(migrated.stderr, /WALL_KEY must be the base64 of exactly 32 random bytes: make one with/);
  t.notRegex(migrated.stderr, /short/);
});

test('a database without a key is not migrated without one', async (t) => {
  const { database } = t.context;
  const own = `${database.name}_new`;
  await database.primary.query(`create database ${own}`);
  t.teardown(() => database.primary.query(`drop database ${own} with (force)`));
  const settings = { adminUrl: urlAs(shared.primary, 'postgres', own) };
  const { code, stderr } = await commandLine(['migrate'], settings);
  t.is(code, 1);
  t.regex(stderr, /WALL_KEY is not set.*openssl rand -base64 32/);
});

test.serial(
  'a key is replaced under load: no request fails or lacks a record until the old key is retired',
  async (t) => {
    const { database, client: before } = t.context;
    const expected = (await before.get('/klanten?perPage=100')).text;
    const customers = JSON.parse(expected).data.length as number;
    t.true(customers > 0);
    let [isOver, requests] = [false, 0];
    const clients = [before];
    const load = Promise.all(
      [0, 1, 2, 3].map(async (n) => {
        while (!isOver) {
          const { status, json } = await (clients[n % clients.length] as typeof before).get('/klanten?perPage=100');
          t.is(status, 200);
          t.is(json<Page>().data.length, customers);
          requests++;
        }
      }),
    );
    const next = newKey();
    const admin = { ...connections(database), wallKey: next };
    const run = (...args: string[]) => commandLine(['migrate', ...args], { ...admin, resourcesDir: '/nowhere' });
    const stored = await run('--wall-key');
    t.is(stored.code, 0, stored.stderr);
    const [, fingerprint = ''] = /^stored WALL_KEY ([0-9a-f]{8})\n/.exec(stored.stdout) ?? [];
    t.regex(
      stored.stdout,
      new RegExp(`\nkey ${fingerprint} \\(this WALL_KEY\\): stored .* UTC, not used by a gateway yet\nkey `),
    );
    t.regex((await run('--wall-key')).stdout, /^key .*\nnothing to do\n$/s, 'a repetition makes no third key');
    await database.caughtUp();
    const { client: after } = await database.gateway({ wallKey: next });
    clients.push(after);
    const soFar = requests;
    await eventually(t, 'both gateways answer', () => requests > soFar + 20);
    const { client: busy, gateway: old } = await database.gateway({ upkeepIntervalMs: 50 });
    await eventually(t, 'a gateway notes the key that it uses', async () =>
      /^key (?!.*this WALL_KEY).*, last used by a gateway .* UTC$/m.test((await run('--wall-key')).stdout),
    );
    isOver = true;
    await load;
    const sinceOf = async (client: typeof before): Promise<string> =>
      (await client.get('/sync/klanten?perPage=10000')).json<{ pagination: { since: string } }>().pagination.since;
    const since = await sinceOf(before);
    for (const [reader, token] of [
      [after, since],
      [busy, await sinceOf(after)],
    ] as const)
      t.is((await reader.get(`/sync/klanten?since=${token}`)).status, 200, 'sealed with the other key');
    await old.stop();
    const wrong = await commandLine(['migrate', '--retire-wall-keys'], { ...admin, wallKey: newKey() });
    t.is(wrong.code, 1);
    t.regex(wrong.stderr, /does not have this WALL_KEY/);
    const inUse = await run('--retire-wall-keys');
    t.is(inUse.code, 1);
    t.regex(
      inUse.stderr,
      /^A gateway has used the key [0-9a-f]{8} within the last two minutes: restart it .*--force\.\n$/,
    );
    t.regex((await run('--retire-wall-keys', '--force')).stdout, /^retired the key [0-9a-f]{8} of the tenant wall\n$/);
    await database.caughtUp();
    t.is((await after.get('/klanten?perPage=100')).json<Page>().data.length, customers);
    t.is((await before.get('/klanten?perPage=100')).status, 503, 'never an empty list');
    t.is((await after.get(`/sync/klanten?since=${since}`)).json<{ code: string }>().code, 'sync_expired');
    t.is((await commandLine(['migrate', '--wall-key'], { ...admin, wallKey })).code, 0);
  },
);
