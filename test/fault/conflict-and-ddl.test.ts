import test, { type ExecutionContext } from 'ava';
import { type FaultCluster, type FaultGateway, faultCluster } from '../support/fault-cluster.js';
import { type PageRead, readPage, withoutCursors } from '../support/page-reader.js';
import { limitMs, until } from '../support/patience.js';

// Changes of tables and rows on the primary reach the replicas under running pages.

let setUp: FaultCluster;
let gateway: FaultGateway;
let token: string;
let undisturbed: string;
const path = '/installaties?perPage=800';

test.before(async () => {
  setUp = await faultCluster({ replicaSettings: { max_standby_streaming_delay: '200ms' } });
  gateway = await setUp.gateway({ chunkRowsMax: 400 });
  token = await setUp.token();
  undisturbed = (await readPage(gateway.url(path), { token })).body;
  await setUp.pace(2);
});
test.after.always(() => setUp?.stop());

async function readWhile(harm: () => Promise<unknown>): Promise<PageRead> {
  let harmed: Promise<unknown> | undefined;
  const page = await readPage(gateway.url(path), {
    token,
    onFirstBytes: () => {
      harmed = harm();
    },
  });
  await harmed;
  return page;
}

function isWhole(t: ExecutionContext, page: PageRead): void {
  t.is(page.status, 200);
  t.true(page.complete);
  t.true(withoutCursors(page.body) === withoutCursors(undisturbed), 'byte for byte the rows of an undisturbed page');
}

test.serial('a page survives the conflict of its statement with recovery', async (t) => {
  const conflicts = (): Promise<number> => gateway.metric('gateway_replica_failures_total', { code: '40001' });
  // Only a statement whose snapshot still sees the rows that are gone stands in the way of their removal; where the
  // removal comes between two statements there is no conflict, and the page is read again.
  for (let turn = 1; turn <= 5 && (await conflicts()) === 0; turn++) {
    await setUp.sql(
      `insert into app.installaties (id, workspace_id, klant_id, naam)
       select gen_random_uuid(), $1, (select id from app.klanten where workspace_id = $1 limit 1), 'gone soon'
       from generate_series(1, 2000)`,
      [setUp.workspaces[1]?.id],
    );
    await setUp.caughtUp();
    const page = await readWhile(async () => {
      await setUp.sql(`delete from app.installaties where naam = 'gone soon'`);
      await setUp.sql('vacuum app.installaties');
    });
    isWhole(t, page);
  }
  t.true((await conflicts()) > 0, 'there was a conflict');
  await gateway.backToNormal(t);
});

test.serial('a page survives ALTER TABLE, and prepared statements the change of a column type', async (t) => {
  const page = await readWhile(() => setUp.sql('alter table app.installaties add column nieuw text'));
  isWhole(t, page);

  await setUp.pace(0);
  const warm = Array.from({ length: 60 }, () => readPage(gateway.url('/werkbonnen?perPage=3'), { token }));
  await Promise.all(warm); // every connection has the statement prepared
  const before = await readPage(gateway.url('/werkbonnen?perPage=3'), { token });
  await setUp.sql(retyped);
  await setUp.caughtUp();
  const read = (): Promise<PageRead> => readPage(gateway.url('/werkbonnen?perPage=3'), { token });
  const first = await read(); // alone: it can meet one connection after the other
  const answers = [first, ...(await Promise.all(Array.from({ length: 20 }, read)))];
  t.deepEqual([...new Set(answers.map(({ status }) => status))], [200]);
  t.deepEqual([...new Set(answers.map(({ body }) => withoutCursors(body)))], [withoutCursors(before.body)]);
  t.true((await gateway.metric('gateway_replica_failures_total', { code: '0A000' })) > 0, 'a plan was stale');
  await gateway.backToNormal(t);
});

test.serial('a page waits for a lock that goes away, and a request for one that stays gets 503 in time', async (t) => {
  await setUp.pace(1);
  const lock = async (seconds: number): Promise<void> => {
    const locked = setUp.sql(`do $$ begin lock table app.installaties; perform pg_sleep(${seconds}); end $$`);
    await new Promise((resolve) => setTimeout(resolve, 100));
    await setUp.sql('update fault.pace set ms = ms'); // a commit, so that the lock's record is flushed and goes out
    await locked;
  };
  isWhole(t, await readWhile(() => lock(1)));

  await setUp.pace(0);
  const hasty = await setUp.gateway({ statementTimeoutMs: 500 });
  const locked = lock(3);
  await new Promise((resolve) => setTimeout(resolve, 1000));
  const refused = await readPage(hasty.url('/installaties'), { token });
  t.is(refused.status, 503);
  t.is(JSON.parse(refused.body).code, 'replica_unavailable');
  t.true(refused.totalMs < limitMs(1500), `it took ${refused.totalMs} ms`);
  const others = async (): Promise<boolean> => (await readPage(hasty.url('/klanten'), { token })).status === 200;
  t.true(await until(others, 1500, 10), 'other tables are served meanwhile');
  await locked;
  await hasty.backToNormal(t);
  t.is((await readPage(hasty.url('/installaties'), { token })).status, 200);
});

/** The view again, with a column of another type: what a prepared statement of before cannot return. */
const retyped = `do $$ declare definition text := pg_get_viewdef('gateway.werkbonnen_asc'); begin
  drop view gateway.werkbonnen_asc;
  execute 'create view gateway.werkbonnen_asc as ' || regexp_replace(definition, ' ((\\w+\\.)?status),', ' \\1::varchar(40) as status,');
  alter view gateway.werkbonnen_asc owner to gateway_owner;
  grant select on gateway.werkbonnen_asc to gateway_reader;
  update gateway.applied_files set digest = gateway.digest_of(objects) where root = 'gateway' and name = 'werkbonnen';
end $$`;
