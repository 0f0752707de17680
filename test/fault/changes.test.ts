import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import suite, { type ExecutionContext } from 'ava';
import type { PgNode } from '../../demo/cluster/node.js';
import { readProject } from '../../src/base/paths.js';
import { type Finding, getTitle } from '../../src/doctor/finding.js';
import { defaultViewsDir } from '../../src/operate/migrate/sql-files.js';
import { composePolicy } from '../../src/resource/statements/walls.js';
import { hashToken, makeToken } from '../../src/serve/http/token-format.js';
import type { StatusReport } from '../../src/serve/ops/status.js';
import { type ApiClient, apiClient } from '../support/client.js';
import { type CommandResult, commandLine } from '../support/command-line.js';
import { asApplied, type FaultCluster, type FaultGateway, faultCluster } from '../support/fault-cluster.js';
import { codeOf } from '../support/lists.js';
import { eventually } from '../support/workspace.js';
import { post } from '../support/writes.js';

const test = suite.serial;

// A release of the app changes what the views read, in each way there is. docs/operate/upgrade.md has the same table, and the commands that
// run here.

const page = readProject('docs/operate/upgrade.md');
const folder = mkdtempSync(join(tmpdir(), 'changes-'));
let setUp: FaultCluster;
let fault: FaultGateway;
let client: ApiClient;
let usual: readonly string[];

test.before(async () => {
  cpSync(defaultViewsDir, folder, { recursive: true });
  setUp = await faultCluster({ replicas: 1 });
  // A superuser, which owns the views of the demo, is above row-level security.
  await setUp.sql(`drop view probe.werkbonnen cascade; create function app.genoemd(text) returns text language sql immutable as 'select $1'; create role shop_owner;
    grant usage on schema app to shop_owner; grant select on all tables in schema app to shop_owner`);
  const shipped = readFileSync(path('werkbonnen'), 'utf8');
  const view = shipped.replace('w.omschrijving,', 'app.genoemd(w.omschrijving) as omschrijving,');
  writeFileSync(path('werkbonnen'), `${view}alter view records.werkbonnen owner to shop_owner;\n`);
  await gateway('migrate', '--views', folder);
  usual = await wrong();
  fault = await setUp.gateway({ fitnessIntervalMs: 600 });
  client = await clientOf(fault);
});
test.after.always(async () => {
  client?.close();
  await setUp?.stop();
  rmSync(folder, { recursive: true });
});

const path = (file: string): string => join(folder, `${file}.sql`);
const scopes = ['read:klanten', 'read:installaties', 'read:werkbonnen', 'write:installaties'];
const clientOf = async ({ gateway: { url } }: FaultGateway) =>
  apiClient(`${url}/api/v1`, { token: await setUp.token({ scopes }) });

async function gateway(...args: string[]): Promise<CommandResult> {
  const { replicaUrls, primaryUrls, dataKeys, wallKey } = setUp.settings();
  const adminUrl = setUp.cluster.primary.url(primaryUrls.slice(primaryUrls.lastIndexOf('/') + 1));
  return commandLine(args, { replicaUrls, primaryUrls, dataKeys, wallKey, adminUrl });
}

/** Lists the findings of `check`, such as "failed migrated klanten: …". */
async function wrong(): Promise<string[]> {
  await setUp.caughtUp();
  const { stdout } = await gateway('check', '--json');
  const { findings } = JSON.parse(stdout) as { findings: Finding[] };
  const found = findings.filter(({ level }) => level !== 'ok');
  return found.map((finding) => `${finding.level} ${getTitle(finding)}: ${finding.detail}`);
}

const statusOf = async (target: string, from = client): Promise<string> => {
  const reply =
    target === '/installaties' ? await post(from, { naam: 'x', customerId: setUp.customerId }) : await from.get(target);
  if (reply.status === 503) return `503 ${codeOf(reply)} ${reply.headers['retry-after']}`;
  return String(reply.status);
};
const refused = '503 replica_unavailable 2';
const again = 'gateway migrate --views DIR';
const indexes = 'gateway migrate --indexes --views DIR';

interface Change {
  /** The row of the page says what clients meet, the finding of `check`, and what mends it. */
  readonly row?: string;
  readonly sql: string;
  readonly met?: string;
  /** Writes of installations, or reads of another resource: by default work orders. */
  readonly of?: 'installaties' | 'klanten';
  /** `check` and the status have it so. */
  readonly finds: RegExp | null;
  /** All resources are affected. */
  readonly all?: true;
  /** The files of the views change before the mend. */
  readonly edit?: readonly (readonly [name: string, from: string, to: string])[];
  readonly mend?: readonly string[];
}

const changes: Readonly<Record<string, Change>> = {
  'a column is added': {
    met: '200',
    row: '| Add a column, a table or an index | 200 | – | – |',
    sql: 'alter table app.werkbonnen add column kenmerk text',
    finds: null,
    mend: [],
  },
  'a column is renamed': {
    met: '200',
    row: '| Rename a column or a table | 200 | `migrated`, failed | the new name in the files of views and indexes; `migrate --views DIR` |',
    sql: 'alter table app.werkbonnen rename nummer to volgnummer',
    finds:
      /migrated werkbonnen: the views of views\/werkbonnen\.sql read what has another name since.*app\.werkbonnen\.nummer/,
    edit: [
      ['werkbonnen', 'w.nummer,', 'w.volgnummer as nummer,'],
      ['indexes/werkbonnen_nummer', ' nummer,', ' volgnummer,'],
    ],
  },
  'a column is dropped with cascade': {
    row: '| Drop a column with `CASCADE` | 503 | `dropped`, failed | the view without the column; `migrate --views DIR` |',
    sql: 'alter table app.werkbonnen drop column ondertekend_op cascade',
    finds: /dropped gateway\.werkbonnen: dropped since `migrate` made them: gateway\.werkbonnen,/,
    edit: [['werkbonnen', 'w.ondertekend_op', 'null::timestamptz as ondertekend_op']],
  },
  'a column becomes not null': {
    row: '| `SET NOT NULL` on a column that no client writes | reads 200, new records 500; no start | `write_view`, refused | a default of the column |',
    sql: `alter table app.installaties add column kenmerk text default ''; update app.installaties set kenmerk = '' where kenmerk is null;
      alter table app.installaties alter kenmerk set not null, alter kenmerk drop default`,
    of: 'installaties',
    met: '500',
    finds: /write view gateway\.installaties_write: .*leaves kenmerk of app\.installaties without a value/,
    mend: ["alter table app.installaties alter kenmerk set default ''"],
  },
  'a partitioned table takes the place of another': {
    row: '| Swap a table for another, such as a partitioned one | 503 | `migrated`, refused | `migrate --views DIR`; drop the old table; `migrate --indexes` |',
    sql: `alter table app.werkbonnen rename to werkbonnen_los;
      create table app.werkbonnen (like app.werkbonnen_los including defaults) partition by hash (workspace_id);
      create table app.werkbonnen_0 partition of app.werkbonnen for values with (modulus 1, remainder 0);
      create unique index on app.werkbonnen (workspace_id, id); create index on app.werkbonnen (workspace_id, datum, id);
      insert into app.werkbonnen select * from app.werkbonnen_los; grant select on app.werkbonnen to shop_owner`,
    finds: /migrated werkbonnen: .*do not read app\.werkbonnen any more: the name belongs to another table/,
    mend: [again, 'drop table app.werkbonnen_los cascade', indexes],
  },
  'row-level security is forced on the owner': {
    row: '| Switch row-level security on, or force it | 503 | `view`, refused | the policy that `check` prints |',
    sql: `alter table app.werkbonnen owner to shop_owner; alter table app.werkbonnen enable row level security; alter table app.werkbonnen force row level security`,
    finds: /view gateway\.werkbonnen: row-level security of app\.werkbonnen hides rows/,
    mend: [composePolicy('app.werkbonnen', 'select', 'shop_owner')],
  },
  'a table has another owner': {
    row: '| Change the owner of a table, or revoke it from the owner of the view | 503 | `view`, refused | `GRANT SELECT` to the owner of the view |',
    sql: 'alter table app.werkbonnen owner to postgres; revoke all on app.werkbonnen from shop_owner',
    finds: /view gateway\.werkbonnen: the role shop_owner cannot select app\.werkbonnen: grant it/,
    mend: ['grant select on app.werkbonnen to shop_owner'],
  },
  'the schema of the app is revoked': {
    met: '200',
    row: '| Revoke the schema of the app | 200 | `keyring`, refused | `GRANT USAGE` to gateway_owner |',
    sql: 'revoke usage on schema app from gateway_owner, shop_owner',
    finds: /keyring: gateway\.key_ids\(\) cannot be executed: permission denied for schema app/,
    mend: ['grant usage on schema app to gateway_owner, shop_owner'],
  },
  'an index of the gateway is dropped': {
    met: '200',
    row: '| Drop an index of the gateway | 200, slower | `indexes`, failed | `migrate --indexes` |',
    sql: 'drop index app.gateway_klanten_gewijzigd',
    finds:
      /indexes: Gone, not valid, or of another table since `migrate --indexes` made them: app\.gateway_klanten_gewijzigd/,
    mend: [indexes],
  },
  'the wall of a view is replaced by hand': {
    of: 'klanten',
    sql: `do $$ begin execute 'create or replace view gateway.klanten_asc as ' || regexp_replace(pg_get_viewdef('gateway.klanten_asc'), 'WHERE.*ORDER', 'ORDER'); end $$`,
    finds: /migrated klanten: changed since `migrate`.*gateway\/klanten/,
  },
  'a view of the records shows no row': {
    of: 'klanten',
    sql: `do $$ begin execute 'create or replace view records.klanten as ' || rtrim(pg_get_viewdef('records.klanten'), ';') || ' where false'; end $$`,
    finds: /migrated klanten: changed since `migrate`.*views\/klanten\.sql/,
  },
  'a policy that restricts is added': {
    sql: `alter table app.werkbonnen enable row level security; create policy all_rows on app.werkbonnen to shop_owner using (true);
      create policy no_rows on app.werkbonnen as restrictive using (current_setting('app.tenant', true) = 'x')`,
    finds: /view gateway\.werkbonnen: row-level security of app\.werkbonnen hides rows/,
    mend: ['drop policy no_rows on app.werkbonnen'],
  },
  'the reader loses a privilege': {
    of: 'klanten',
    sql: 'revoke select on gateway.klanten_desc from gateway_reader',
    finds: /migrated klanten: changed since `migrate` made them: the views of gateway\/klanten/,
  },
  'a view of the records reads as its caller': {
    sql: 'alter view records.werkbonnen set (security_invoker)',
    finds: /migrated werkbonnen: changed since `migrate` made them: the views of views\/werkbonnen\.sql/,
  },
  'a function of the wall is revoked': {
    of: 'klanten',
    sql: 'revoke execute on function gateway.workspace() from gateway_reader',
    finds: /migrated: changed since `migrate` made it: function gateway\.workspace\(\) \(privileges\)/,
    mend: ['gateway migrate --repair'],
    all: true,
  },
  'a view of tokens shows no owner, so that valid tokens look unknown': {
    of: 'klanten',
    sql: `do $$ begin execute 'create or replace view gateway.token_owners as ' || rtrim(pg_get_viewdef('gateway.token_owners'), ';') || ' limit 0'; end $$`,
    finds: /migrated: changed since `migrate` made them: the views of views\/tokens\.sql/,
    all: true,
  },
  'a view has another owner': {
    of: 'klanten',
    sql: 'alter view gateway.klanten owner to postgres',
    finds: /view gateway\.klanten: .*its owner postgres is a superuser/,
  },
  'a function that a view calls is revoked': {
    row: '| Revoke a function that a view calls | 503 | `scans`, failed | `GRANT EXECUTE` to gateway_reader |',
    sql: 'revoke execute on function app.genoemd(text) from public',
    finds: /gateway\.werkbonnen: it cannot be (read|planned): permission denied for function genoemd/i,
    mend: ['grant execute on function app.genoemd(text) to public'],
  },
  'the writer may change a column that no client may write': {
    of: 'installaties',
    sql: 'grant update (koudemiddel) on gateway.installaties_write to gateway_writer',
    met: '503 primary_unavailable 2',
    finds: /write view .* may update koudemiddel/,
    mend: ['revoke update (koudemiddel) on gateway.installaties_write from gateway_writer'],
  },
  'the reader cannot use the schema of the views': {
    row: '| Revoke the schema of the gateway | 503 for all | `schema_usage`, refused | `GRANT USAGE` to the logins |',
    of: 'klanten',
    sql: 'revoke usage on schema gateway from gateway_reader',
    finds: /permission denied for schema gateway/,
    mend: ['grant usage on schema gateway to gateway_reader'],
    all: true,
  },
};

async function run(t: ExecutionContext, line: string): Promise<void> {
  if (!line.startsWith('gateway ')) return void (await setUp.sql(line));
  const { code, stderr, stdout } = await gateway(...line.replace('DIR', folder).split(' ').slice(1));
  t.is(code, 0, `${line}: ${stderr}${stdout}`);
}

const status = async () => (await (await fetch(`${fault.gateway.opsUrl}/status.json`)).json()) as StatusReport;

for (const [name, change] of Object.entries(changes)) {
  const { row, sql, met = refused, of = 'werkbonnen', finds, all, edit = [], mend = [again] } = change;
  const [own, other] = [`/${of}`, of === 'klanten' ? '/werkbonnen' : '/klanten'];
  const labels = { resource: of, use: of === 'installaties' ? 'write' : 'read' };
  test(`${name}: clients meet ${met} for it alone, check names the cause, and what mends it`, async (t) => {
    t.regex(await statusOf(own), /^20/);
    await setUp.sql(sql);
    await setUp.caughtUp();
    await eventually(t, `${own} is ${met}`, async () => (await statusOf(own)) === met);
    const found = (await wrong()).filter((each) => !usual.includes(each));
    t.notRegex(found.join(), /prepared statement/);
    t.is(finds === null ? found.length === 0 : found.some((each) => finds.test(each)), true, found.join('\n'));
    if (met.startsWith('503')) {
      await eventually(t, 'a sentence of the status', async () => {
        const { level, faults } = await status();
        return (
          level === 'failing' &&
          faults.some(({ sentence }) => / refused with 503: /.test(sentence) && finds?.test(sentence))
        );
      });
      t.is(await fault.metric('gateway_resource_refused', labels), 1);
      t.regex(fault.log(), new RegExp(`"resource":"${of}".*"msg":"resource_refused"`));
      if (labels.use === 'read') t.is(await statusOf(`/sync/${of}/digest`), refused);
    }
    t.is(await statusOf(other), all ? refused : '200');
    for (const [file, from, to] of edit) writeFileSync(path(file), readFileSync(path(file), 'utf8').replace(from, to));
    for (const line of mend) await run(t, line);
    await setUp.caughtUp();
    await eventually(
      t,
      'the end of the refusal',
      async () => fault.gateway.readiness().refused.length === 0 && /^20/.test(await statusOf(own)),
    );
    t.is(await fault.metric('gateway_resource_refused', labels), 0);
    t.deepEqual(await wrong(), usual);
    if (row) t.true(page.includes(row), row);
  });
}

test('a release under clients that share one connection is no sign of a pooler: statements are prepared afterwards as before', async (t) => {
  const { replicas } = setUp.cluster;
  const [replica] = replicas as [PgNode];
  const busy = await setUp.gateway({ fitnessIntervalMs: 600, shortConnections: 1 });
  const id = (await client.get('/werkbonnen?perPage=1')).json<{ data: { id: string }[] }>().data[0]?.id;
  const met = new Set<string>();
  let isOver = false;
  const asking = Array.from({ length: 12 }, async () => {
    const own = await clientOf(busy);
    while (!isOver) met.add(await statusOf(`/werkbonnen/${id}`, own));
    own.close();
  });
  for (let round = 0; round < 3; round++) {
    await run(t, 'gateway views --drop --tables app.werkbonnen');
    await eventually(t, 'it is refused', async () => busy.gateway.readiness().refused.length > 0);
    await run(t, 'gateway views --create --views DIR');
    await eventually(t, 'it is served', async () => busy.gateway.readiness().refused.length === 0);
  }
  await replica.configure({ log_statement: 'all' });
  const named = () => /execute werkbonnen\.detail_/.test(readFileSync(replica.log, 'utf8'));
  await eventually(t, 'statements with names', async () => named());
  isOver = true;
  await Promise.all(asking);
  await replica.configure({ log_statement: null });
  t.deepEqual([...met].sort(), ['200', refused]);
  t.notRegex(busy.log(), /named_statements_off|"code":"(26000|42P05)"/);
  t.notRegex(readFileSync(replica.log, 'utf8'), /execute <unnamed>: select .*"gateway"\."werkbonnen"/);
  t.is(await busy.metric('gateway_replica_ejections_total'), 0);
  await busy.stop();
});

test('rows that a view hides by hand are noticed by the catalog, long before the next look', async (t) => {
  const slow = await setUp.gateway({ fitnessIntervalMs: 60_000 }); // the look after a change comes after 2 s, the regular one after 30 at least
  const asked = await clientOf(slow);
  const marked = () => slow.log().match(/"msg":"catalog_changed"/g)?.length ?? 0;
  t.is(await statusOf('/klanten', asked), '200');
  const startedMs = performance.now();
  await setUp.sql(
    `do $$ begin execute 'create or replace view records.klanten as ' || rtrim(pg_get_viewdef('records.klanten'), ';') || ' where false'; end $$`,
  );
  await eventually(t, 'the refusal', async () => (await statusOf('/klanten', asked)) === refused, 120_000);
  t.is(marked(), 1);
  t.log(`${Math.round(performance.now() - startedMs)} ms`);
  await run(t, again);
  await eventually(t, 'the end', async () => (await statusOf('/klanten', asked)) === '200', 120_000);
  asked.close();
  await slow.stop();
});

test('the steps of a release: reads of the changed table alone are 503, also of a gateway that starts meanwhile', async (t) => {
  const [, block = ''] = /```sh\n(gateway views --drop --tables [^`]*)```/.exec(page) ?? [];
  const steps = block.replace('app.orders', 'app.werkbonnen').replaceAll(/ +#.*/g, '').trim().split('\n');
  const begins = steps.map((line) => line.slice(0, 14));
  t.deepEqual(begins, ['gateway views ', 'psql "$ADMIN_U', 'gateway views ', 'gateway check']);
  const met = new Set<string>();
  let done = false;
  const asking = (async () => {
    while (!done) met.add(await statusOf('/werkbonnen')).add(await statusOf('/klanten'));
  })();
  const change = 'alter table app.werkbonnen alter omschrijving type varchar(5000)';
  await run(t, steps[0] as string);
  await setUp.sql(change);
  await setUp.caughtUp();
  const started = await setUp.gateway({ fitnessIntervalMs: 600 });
  const other = await clientOf(started);
  for (const [target, status] of [
    ['/werkbonnen', refused],
    ['/klanten', '200'],
    ['/installaties', '201'],
  ] as const)
    t.is(await statusOf(target, other), status, target);
  t.regex((await wrong()).join('\n'), /failed dropped gateway\.werkbonnen: dropped since `migrate` made/);
  t.regex(started.log(), /"resource":"werkbonnen".*"item":"dropped gateway\.werkbonnen".*"msg":"resource_refused"/);
  for (const line of steps.slice(2)) await run(t, line);
  await eventually(t, 'both serve it again', async () => {
    return (await statusOf('/werkbonnen')) === '200' && (await statusOf('/werkbonnen', other)) === '200';
  });
  done = true;
  await asking;
  t.deepEqual([...met].sort(), ['200', refused]);
  other.close();
  await run(t, 'gateway views --drop --tables app.users'); // below the views by which tokens are known
  await setUp.caughtUp();
  const without = await setUp.gateway({ fitnessIntervalMs: 600, tokenCacheMs: 1 });
  const unknown = await clientOf(without);
  t.is(await statusOf('/klanten', unknown), refused);
  await run(t, steps[2] as string);
  await eventually(t, 'tokens are known', async () => (await statusOf('/klanten', unknown)) === '200');
  unknown.close();
  await without.stop();
  await started.stop();
});

test('a token that is looked up while its rows are hidden is 503, never 401, and status and check name the cause', async (t) => {
  const unhurried = await setUp.gateway({ tokenCacheMs: 1 }); // it looks at the database when it must
  const asked = await clientOf(unhurried);
  const sentences = async () =>
    ((await (await fetch(`${unhurried.gateway.opsUrl}/status.json`)).json()) as StatusReport).faults.map(
      ({ sentence }) => sentence,
    );
  const meets = async (met: string, sql: string, from = asked): Promise<void> => {
    await setUp.sql(sql);
    await setUp.caughtUp();
    for (let i = 0; i < 3; i++) t.is(await statusOf('/klanten', from), met, sql);
  };
  t.is(await statusOf('/klanten', asked), '200');
  // As `migrate` makes them, but of a role that is below row security.
  await meets(
    '200',
    `alter view gateway.token_owners owner to shop_owner; alter view gateway.workspaces owner to shop_owner; ${asApplied}`,
  );
  for (const table of ['users', 'workspaces']) {
    await meets(refused, `alter table app.${table} enable row level security`);
    t.regex((await sentences()).join(), /Row security hides rows from the look-up of tokens/);
    t.regex(
      (await wrong()).join(),
      new RegExp(`token look up: row security of app.${table} hides rows of .* from shop_owner`),
    );
    await meets(
      refused,
      `create policy own on app.${table} to shop_owner using (id::text = current_setting('app.tenant', true))`,
    );
    const fresh = await clientOf(await setUp.gateway({ tokenCacheMs: 1 }));
    t.is(await statusOf('/klanten', fresh), refused, 'of a gateway that never knew the token');
    fresh.close();
    await meets('200', `create policy gateway on app.${table} to shop_owner using (current_user in ('gateway_owner'))`);
    await meets(
      refused,
      `create policy no_rows on app.${table} as restrictive to shop_owner using (current_user = 'postgres')`,
    );
    await meets('200', `drop policy no_rows on app.${table}`);
    const unknown = apiClient(`${unhurried.gateway.url}/api/v1`, { token: makeToken() });
    t.is((await unknown.get('/klanten')).status, 401, 'a token that is none');
    unknown.close();
    await meets(
      '200',
      `drop policy own on app.${table}; drop policy gateway on app.${table}; alter table app.${table} disable row level security`,
    );
  }
  const never = await clientOf(unhurried);
  await setUp.caughtUp();
  for (const name of ['token_owners', 'workspaces', 'api_tokens']) {
    await meets(
      refused,
      `do $$ begin execute 'create or replace view gateway.${name} as ' || rtrim(pg_get_viewdef('gateway.${name}'), ';') || ' limit 0'; end $$`,
    );
    t.is(await statusOf('/klanten', never), refused, 'a token that was never looked up');
  }
  never.close();
  await run(t, again);
  await setUp.caughtUp();
  await setUp.sql(
    'alter view gateway.token_owners owner to current_user; alter view gateway.workspaces owner to current_user',
  );

  asked.close();
  await unhurried.stop();
});

test('tokens that worked are 401 when the app takes the right to tokens from their users, and status and metrics say for how many workspaces', async (t) => {
  const running = await setUp.gateway({ tokenCacheMs: 1 });
  const all = await Promise.all([0, 1].map((workspace) => setUp.token({ scopes, workspace })));
  const clients = all.map((token) => apiClient(`${running.gateway.url}/api/v1`, { token }));
  const meet = async (met: string) => {
    for (const each of clients) t.is(await statusOf('/klanten', each), met);
  };
  await meet('200');
  await setUp.sql(
    "create table fault.owners as select id from app.users where rol = 'owner'; update app.users set rol = 'member' where rol = 'owner'",
  );
  await setUp.caughtUp();
  await meet('401');
  await setUp.sql('delete from app.api_tokens where token_hash = any ($1)', [all.slice(1).map(hashToken)]);
  await setUp.sql(
    "update app.users set rol = 'owner' where id in (select id from fault.owners); drop table fault.owners",
  );
  await setUp.caughtUp();
  await eventually(t, 'the tokens are looked up again', async () => (await statusOf('/klanten', clients[0])) === '200');
  t.is(await statusOf('/klanten', clients[1]), '401');
  const { faults } = (await (await fetch(`${running.gateway.opsUrl}/status.json`)).json()) as StatusReport;
  const told = faults.map(({ sentence }) => sentence).join('\n');
  t.regex(
    told,
    /answered 401 though the token worked in .*: the token's user or workspace is gone, .* \(2\), the token itself is gone \(1\), of 2 workspaces/,
  );
  t.is(await running.metric('gateway_token_loss_workspaces', { reason: 'no owner' }), 2);
  t.is(await running.metric('gateway_known_tokens_refused_total', { reason: 'unknown' }), 1);
  for (const each of clients) each.close();
  await running.stop();
});
