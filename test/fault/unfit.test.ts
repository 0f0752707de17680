import { randomUUID } from 'node:crypto';
import suite from 'ava';
import type { StatusReport } from '../../src/serve/ops/status.js';
import { type ApiClient, apiClient } from '../support/client.js';
import { type FaultCluster, type FaultGateway, faultCluster } from '../support/fault-cluster.js';
import { codeOf } from '../support/lists.js';
import { eventually } from '../support/workspace.js';
import { post } from '../support/writes.js';

const test = suite.serial;

// The database stops fitting while the gateway serves: the resource is refused, never answered with rows of others or without rows.

let setUp: FaultCluster;
let fault: FaultGateway;
let client: ApiClient;
test.before(async () => {
  setUp = await faultCluster();
  // A superuser, which owns the views of the demo, is above row-level security.
  await setUp.sql(`create role shop_owner; grant usage on schema app to shop_owner; grant select on app.klanten to shop_owner;
    alter view records.klanten owner to shop_owner;
    update gateway.applied_files set digest = gateway.digest_of(objects), sources = gateway.sources_of(objects) where digest is not null`);
  fault = await setUp.gateway({ fitnessIntervalMs: 1000 });
  const scopes = ['read:klanten', 'read:installaties', 'write:installaties'];
  client = apiClient(`${fault.gateway.url}/api/v1`, { token: await setUp.token({ scopes }) });
});
test.after.always(async () => {
  client?.close();
  await setUp?.stop();
});

const status = async () => (await (await fetch(`${fault.gateway.opsUrl}/status.json`)).json()) as StatusReport;
const codeAt = async (path: string): Promise<string> => {
  const reply = await client.get(path);
  return reply.status === 200 ? '200' : codeOf(reply);
};

interface Unfit {
  readonly change: string;
  readonly undo: string;
  readonly sentence: RegExp;
  /** Faults of writes, and those of all resources. */
  readonly writes?: true;
  readonly all?: true;
}

const withoutWall = `create table fault.definition as select pg_get_viewdef('gateway.klanten_asc') as text;
  do $$ begin execute (select 'create or replace view gateway.klanten_asc as ' || regexp_replace(text, 'WHERE.*ORDER', 'ORDER') from fault.definition); end $$`;
const withWall = `do $$ begin execute (select 'create or replace view gateway.klanten_asc with (security_barrier) as ' || text from fault.definition); end $$;
  drop table fault.definition`;

const faults: Readonly<Record<string, Unfit>> = {
  'the wall of a view is replaced by hand': {
    change: withoutWall,
    undo: withWall,
    sentence: /^Reads of klanten are refused with 503: migrated klanten: changed since `migrate`.*gateway\/klanten/,
  },
  'a view of the records shows no row': {
    change: `create table fault.definition as select pg_get_viewdef('records.klanten') as text;
      do $$ begin execute (select 'create or replace view records.klanten as ' || rtrim(text, ';') || ' where false' from fault.definition); end $$`,
    undo: `do $$ begin execute (select 'create or replace view records.klanten as ' || text from fault.definition); end $$; drop table fault.definition`,
    sentence: /^Reads of klanten are refused with 503: migrated klanten: changed since `migrate`.*views\/klanten\.sql/,
  },
  'row-level security is forced on a table': {
    change: 'alter table app.klanten enable row level security; alter table app.klanten force row level security',
    undo: 'alter table app.klanten disable row level security; alter table app.klanten no force row level security',
    sentence: /klanten are refused.*row-level security of app\.klanten hides rows: create a policy .* `to shop_owner/,
  },
  'a policy that restricts is added': {
    change: `alter table app.klanten enable row level security; create policy all_rows on app.klanten to shop_owner using (true);
      create policy no_rows on app.klanten as restrictive using (current_setting('app.tenant', true) = 'x')`,
    undo: 'drop policy no_rows on app.klanten; drop policy all_rows on app.klanten; alter table app.klanten disable row level security',
    sentence: /klanten are refused.*row-level security of app\.klanten hides rows/,
  },
  'the owner of a view loses a privilege': {
    change: 'revoke select on app.klanten from shop_owner',
    undo: 'grant select on app.klanten to shop_owner',
    sentence: /klanten are refused.*the role shop_owner cannot select app\.klanten: grant it/,
  },
  'the reader loses a privilege': {
    change: 'revoke select on gateway.klanten_desc from gateway_reader',
    undo: 'grant select on gateway.klanten_desc to gateway_reader',
    sentence: /klanten are refused.*changed since `migrate` made them: the views of gateway\/klanten/,
  },
  'a view has another owner': {
    change: 'alter view gateway.klanten owner to postgres',
    undo: 'alter view gateway.klanten owner to gateway_owner; grant select on gateway.klanten to gateway_reader',
    sentence: /klanten are refused.*its owner postgres is a superuser/,
  },
  'another table takes the name of one below a view': {
    change: 'alter table app.klanten rename to klanten_old; create table app.klanten (like app.klanten_old)',
    undo: 'drop table app.klanten; alter table app.klanten_old rename to klanten',
    sentence: /klanten are refused.*do not read app\.klanten any more/,
  },
  'the writer may change a column that no client may write': {
    change: 'grant update (koudemiddel) on gateway.installaties_write to gateway_writer',
    undo: 'revoke update (koudemiddel) on gateway.installaties_write from gateway_writer',
    sentence: /^Writes of installaties are refused with 503: write view .* may update koudemiddel/,
    writes: true,
  },
  'the reader cannot use the schema of the views': {
    change: 'revoke usage on schema gateway from gateway_reader',
    undo: 'grant usage on schema gateway to gateway_reader',
    sentence:
      /^Reads of .*klanten.* are refused with 503: .*permission denied for schema gateway.*grant usage on schema gateway/,
    all: true,
  },
};

for (const [name, { change, undo, sentence, writes, all }] of Object.entries(faults)) {
  test(`${name}: the resource is refused and named, and served again after the mend`, async (t) => {
    const own = writes ? '/installaties' : '/klanten';
    const other = writes ? '/klanten' : '/installaties';
    t.is(await codeAt(own), '200');
    await setUp.sql(change);
    await setUp.caughtUp();
    await eventually(t, 'a sentence of the status', async () => {
      const { level, faults } = await status();
      return level === 'failing' && faults.some((each) => sentence.test(each.sentence));
    });
    if (writes) {
      const reply = await post(client, { naam: 'x', customerId: randomUUID() });
      t.deepEqual([reply.status, codeOf(reply), reply.headers['retry-after']], [503, 'primary_unavailable', '2']);
    } else {
      const reply = await client.get(own);
      t.deepEqual([reply.status, codeOf(reply), reply.headers['retry-after']], [503, 'replica_unavailable', '2']);
      t.is(await codeAt('/sync/klanten/digest'), 'replica_unavailable');
    }
    t.is(await codeAt(other), all ? 'replica_unavailable' : '200');
    const labels = { resource: own.slice(1), use: writes ? 'write' : 'read' };
    t.is(await fault.metric('gateway_resource_refused', labels), 1);
    t.regex(fault.log(), new RegExp(`"resource":"${own.slice(1)}".*"msg":"resource_refused"`));

    await setUp.sql(undo);
    await eventually(t, 'the end of the refusal', () => fault.gateway.readiness().refused.length === 0);
    t.is(await codeAt(own), '200');
    t.is(await fault.metric('gateway_resource_refused', labels), 0);
  });
}
