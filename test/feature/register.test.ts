import { sizesOf } from '../../demo/seed/sizes.js';
import { commandLine, connections } from '../support/command-line.js';
import { serveProcess } from '../support/serve-process.js';
import { clonedRows } from '../support/template.js';
import { eventually, gatewayTest, type TestContext } from '../support/workspace.js';

const fast = { upkeepIntervalMs: 100 };
const test = gatewayTest(fast).serial;

interface Register {
  readonly reads: readonly {
    readonly hour: string;
    readonly tokenId: string;
    readonly resource: string;
    readonly fields: readonly string[];
    readonly requests: number;
    readonly records: number;
  }[];
  readonly copies: readonly Readonly<
    Record<'resource' | 'state' | 'lastPass' | 'lastChanges' | 'lastDigest', string | null>
  >[];
}

function registerOf({ database }: TestContext) {
  const workspace = database.workspaces[0]?.id as string;
  const run = (...args: string[]) =>
    commandLine(['register', '--workspace', workspace, ...args], connections(database));
  return {
    run,
    read: async (...args: string[]): Promise<Register> => JSON.parse((await run('--json', ...args)).stdout),
    copies: async () =>
      (JSON.parse((await run('--json')).stdout) as Register).copies.map(
        ({ resource, state, lastPass, lastChanges, lastDigest }) => [
          ...[resource, state],
          ...[lastPass, lastChanges, lastDigest].map((moment) => moment !== null),
        ],
      ),
  };
}

const whole = 'naam,adres.straat,adres.huisnummer,adres.toevoeging,adres.postcode,adres.plaats,adres.land,kvkNummer';

test('the register says who read which personal fields over two gateways, and which tokens hold copies', async (t) => {
  const { client, database } = t.context;
  const register = registerOf(t.context);
  const { client: other, gateway } = await database.gateway({ upkeepIntervalMs: 60_000 });
  const scopes = ['klanten', 'werkbonnen', 'installaties', 'logboeken'].map((name) => `read:${name}`);
  const token = await database.token({ scopes });
  const read = async (path: string, from = client, status = 200) => {
    const reply = await from.get(path, { token });
    t.is(reply.status, status, path);
    return reply;
  };
  const { data } = (await read('/klanten?perPage=3')).json<{ data: { id: string }[] }>();
  await read('/klanten?perPage=2', other);
  await read(`/klanten/${data[0]?.id}`, other);
  await read('/klanten?perPage=10000&fields=kvkNummer');
  await read('/werkbonnen?perPage=4');
  await read('/werkbonnen?perPage=4&fields=nummer,uren');
  // Without personal fields, without records, and without a body.
  for (const path of [
    '/klanten?fields=createdAt',
    '/werkbonnen?fields=nummer',
    '/installaties',
    '/logboeken',
    '/token',
  ])
    await read(path);
  await read(`/klanten/${data[0]?.id}x`, client, 404);
  await client.request('HEAD', '/klanten', { token });
  await read('/sync/klanten?perPage=10000');
  const { since } = (await read('/sync/logboeken?perPage=10000')).json<{ pagination: { since: string } }>().pagination;
  await read(`/sync/logboeken?since=${since}`);
  await read('/sync/klanten/digest');
  await read('/sync/werkbonnen?perPage=1');
  await gateway.stop();
  const { customers } = sizesOf(clonedRows.first);
  const wanted = [
    ['klanten', 'kvkNummer', 1, customers],
    ['klanten', whole, 4, 3 + 2 + 1 + customers],
    ['werkbonnen', 'uren.medewerker', 3, 4 + 4 + 1],
  ];
  const found = async () =>
    (await register.read()).reads.map(({ resource, fields, requests, records }) => [
      resource,
      fields.join(),
      requests,
      records,
    ]);
  await eventually(t, 'all reads', async () => JSON.stringify(await found()) === JSON.stringify(wanted));
  const { reads } = await register.read();
  t.is(new Set(reads.map(({ tokenId }) => tokenId)).size, 1);
  t.true(reads.every(({ hour }) => /T\d\d:00:00Z$/.test(hour)));
  t.deepEqual(await register.copies(), [
    ['klanten', 'active', true, false, true],
    ['logboeken', 'active', true, true, false],
  ]);
  const today = reads.map(({ hour }) => hour.slice(0, 10))[0] as string;
  t.is((await register.read('--from', today, '--to', today)).reads.length, wanted.length);
  t.is((await register.read('--to', '2020-01-01')).reads.length, 0);
  const { stdout } = await register.run();
  t.regex(stdout, /^HOUR +TOKEN .*\n.*klanten +1 +\d+ +kvkNummer\n/);
  t.regex(stdout, /\nCOPY OF +TOKEN .*LAST DIGEST\nklanten /);
});

test('the command register names what is missing or no day', async (t) => {
  const { run } = registerOf(t.context);
  t.regex((await run('--from', '2026-02-30')).stderr, /--from must be a date such as 2026-03-31/);
  t.regex((await run('--workspace', 'x')).stderr, /There is no workspace/);
  t.is((await commandLine(['register'], connections(t.context.database))).code, 2);
});

test('reads that the primary refuses are kept and stored later, and old ones go after the REGISTER_MONTHS of `migrate`', async (t) => {
  const { database } = t.context;
  const { client, log } = await database.gateway(fast);
  const token = await database.token({ workspace: 1 });
  const stored = async (): Promise<string[]> =>
    (
      await database.primary.query<{ row: string }>(
        `select concat_ws(' ', resource, requests, records) as row from gateway.reads where workspace_id = $1 order by 1`,
        [database.workspaces[1]?.id],
      )
    ).rows.map(({ row }) => row);
  await database.primary.query('revoke execute on function gateway.note_reads(jsonb) from gateway_writer');
  t.is((await client.get('/klanten?perPage=3', { token })).status, 200);
  await eventually(t, 'a refusal', async () => log().includes('upkeep_failed'));
  t.is((await client.get('/klanten?perPage=2', { token })).status, 200);
  t.deepEqual(await stored(), []);
  await database.primary.query('grant execute on function gateway.note_reads(jsonb) to gateway_writer');
  await eventually(t, 'both reads', async () => (await stored()).join() === 'klanten 2 5');
  await database.primary.query(
    `insert into gateway.reads select workspace_id, now() - n * interval '1 month', token_id, 'old', fields, n, 0
     from gateway.reads, unnest(array[1, 3]) n where workspace_id = $1`,
    [database.workspaces[1]?.id],
  );
  const { stdout } = await commandLine(['migrate'], { ...connections(database), registerMonths: 2 });
  t.regex(stdout, /the register of reads keeps 2 months/);
  const again = await commandLine(['migrate'], connections(database));
  t.notRegex(again.stdout, /register/, 'without the setting the retention stays');
  await eventually(t, 'the clean-up', async () => (await stored()).join() === 'klanten 2 5,old 1 0');
  const less = `select gateway.note_reads(jsonb_build_object('reads', (select jsonb_agg(jsonb_build_object('hour', hour, 'token', token_id,
    'resource', resource, 'fields', fields, 'requests', -1, 'records', -1)) from gateway.reads)))`;
  await database.primary.query(less);
  t.deepEqual(await stored(), ['klanten 2 5', 'old 1 0'], 'a stolen login takes nothing away');
  for (const sql of [
    'select from gateway.reads',
    'delete from gateway.copies',
    `select gateway.list_copies('x')`,
    'update gateway.register_retention set months = 0',
  ]) {
    await database.primary.query('begin; set local role gateway_writer');
    t.regex((await t.throwsAsync(database.primary.query(sql))).message, /permission denied/, sql);
    await database.primary.query('rollback');
  }
});

test('two gateways of two workers register each read once', async (t) => {
  const { database } = t.context;
  const settings = { ...database.settings, webConcurrency: 2 };
  const served = await Promise.all([serveProcess(settings), serveProcess(settings)]);
  t.teardown(() => Promise.all(served.map(({ stop }) => stop('SIGKILL'))));
  const token = await database.token({ workspace: 1 });
  const headers = { authorization: `Bearer ${token}`, connection: 'close' }; // any worker takes the next connection
  const read = (_: unknown, i: number) =>
    fetch(`${served[i % 2]?.url}/api/v1/klanten?perPage=2&fields=kvkNummer`, { headers });
  const statuses = (await Promise.all(Array.from({ length: 40 }, read))).map(({ status }) => status);
  t.deepEqual(new Set(statuses), new Set([200]));
  for (const { stop } of served) t.is(await stop(), 0);
  const counts = `select sum(requests)::int as requests, sum(records)::int as records from gateway.reads
      where workspace_id = $1 and fields = 'kvkNummer'`;
  t.deepEqual((await database.primary.query(counts, [database.workspaces[1]?.id])).rows, [
    { requests: 40, records: 80 },
  ]);
});
