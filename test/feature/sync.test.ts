import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { projectRoot } from '../../src/base/paths.js';
import { runAsAdmin } from '../../src/postgres/admin.js';
import { makeTokenSeal } from '../../src/serve/sync/token-seal.js';
import { app } from '../support/app.js';
import type { ApiReply } from '../support/client.js';
import { definitionsWith } from '../support/definitions.js';
import { limitMs } from '../support/patience.js';
import { changedPlace, changedToken } from '../support/sync/token.js';
import { gatewayTest, type TestContext } from '../support/workspace.js';

const test = gatewayTest({ chunkRowsMax: 500 }).serial;
type Context = ExecutionContext<TestContext>;

interface Page {
  readonly data: readonly { readonly id: string; readonly syncVersion: string; readonly [member: string]: unknown }[];
  readonly pagination: {
    readonly perPage: number;
    readonly count: number;
    readonly hasMore: boolean;
    readonly nextCursor: string | null;
    readonly next: string | null;
    readonly since: string | null;
  };
}

interface PassRead {
  readonly rows: Page['data'];
  readonly since: string;
  readonly pages: number;
}

async function pass(t: Context, resource: string, query = ''): Promise<PassRead> {
  const rows: Page['data'][number][] = [];
  let path = `/sync/${resource}?${query}`;
  for (let pages = 1; ; pages++) {
    const reply = await t.context.client.get(path);
    t.is(reply.status, 200, reply.text);
    const { data, pagination } = reply.json<Page>();
    rows.push(...data);
    if (pagination.next === null) return { rows, since: pagination.since as string, pages };
    t.is(pagination.since, null);
    path = new URL(pagination.next).pathname.replace('/api/v1', '') + new URL(pagination.next).search;
  }
}

const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex');

const ids = ({ rows }: Pick<PassRead, 'rows'>): string[] => rows.map(({ id }) => id).sort();

async function sql<R extends object>({ context }: Context, text: string, values: unknown[] = []): Promise<R[]> {
  const { rows } = await context.database.primary.query<R>(text, values);
  await context.database.caughtUp();
  return rows;
}

const resources = ['klanten', 'installaties', 'werkbonnen', 'logboeken'];

for (const resource of resources) {
  test(`a pass over ${resource} has every record of the list once, in its order, in pages of any size`, async (t) => {
    const { client } = t.context;
    const list = (await client.get(`/${resource}?perPage=10000`)).json<Page>().data;
    for (const perPage of [10_000, Math.ceil(list.length / 3)]) {
      const { rows, since, pages } = await pass(t, resource, `perPage=${perPage}`);
      const records = rows.map(({ syncVersion, ...record }) => record);
      t.deepEqual(records, list);
      t.true(rows.every((row) => /^[0-9a-f]{16}$/.test(row.syncVersion) && Object.keys(row).at(-1) === 'syncVersion'));
      t.is(pages, Math.max(1, Math.ceil(list.length / perPage)));
      t.regex(since, /^[\w-]+$/);
    }
  });

  test(`a pass since the last one over ${resource} has nothing when nothing changed`, async (t) => {
    const { since } = await pass(t, resource, 'perPage=10000');
    const { rows, since: next } = await pass(t, resource, `since=${since}&perPage=10000`);
    t.deepEqual(rows, []);
    t.deepEqual((await pass(t, resource, `since=${next}`)).rows, []);
  });
}

test('a pass since the last one finds changes without updated_at, by a part alone, and inserts', async (t) => {
  const { since } = await pass(t, 'werkbonnen', 'perPage=10000');
  const workspace = t.context.database.workspaces[0]?.id;
  const few = await sql<{ id: string }>(
    t,
    'select id from probe.werkbonnen where workspace_id = $1 order by id limit 4',
    [workspace],
  );
  const [own, action, hours] = few.map(({ id }) => id) as [string, string, string];
  await sql(t, 'update probe.werkbonnen set omschrijving = $2 where id = $1', [own, 'aangevuld']);
  await sql(t, 'select probe.add_actions(id) from probe.werkbonnen where id = $1', [action]);
  await sql(t, 'select probe.add_hours(id) from probe.werkbonnen where id = $1', [hours]);
  for (const perPage of [1, 2, 100]) {
    const { rows } = await pass(t, 'werkbonnen', `since=${since}&perPage=${perPage}`);
    t.deepEqual([...new Set(rows.map(({ id }) => id))].sort(), [own, action, hours].sort());
    for (const { syncVersion, ...row } of rows)
      t.deepEqual(row, (await t.context.client.get(`/werkbonnen/${row.id}`)).json());
  }
});

test('filters and parts that have the names of statements find their rows, and a pass brings every change', async (t) => {
  const { database } = t.context;
  const from = database.settings.resourcesDir || join(projectRoot, 'config/resources');
  const { $schema, ...definition } = JSON.parse(readFileSync(join(from, 'werkbonnen.json'), 'utf8'));
  const [sync, hashed] = Object.values(definition.sync.parts);
  const filters = { ...definition.filters, desc: definition.filters.status, all: definition.filters.installationId };
  const changed = { ...definition, filters, sync: { parts: { sync, hashed } } };
  const { client } = await database.gateway({ resourcesDir: definitionsWith(t, { werkbonnen: changed }, from) });
  const read = async (path: string): Promise<Page> => (await client.get(path)).json();
  const all = (await read('/werkbonnen?perPage=10000')).data;
  const { status, installationId } = all[0] as Page['data'][number];
  for (const [query, member, value] of [
    [`desc=${status}`, 'status', status],
    [`all=${installationId}`, 'installationId', installationId],
  ] as const)
    for (const more of ['', '&order=desc', '&total=true']) {
      const ids = (await read(`/werkbonnen?perPage=10000&${query}${more}`)).data.map(({ id }) => id).sort();
      t.deepEqual(ids, all.flatMap((row) => (row[member] === value ? [row.id] : [])).sort());
    }
  const { since } = (await read('/sync/werkbonnen?perPage=10000')).pagination;
  const few = all.slice(0, 5).map(({ id }) => id);
  await sql(t, 'select probe.add_hours(id) from probe.werkbonnen where id::text = any ($1)', [few.slice(0, 2)]);
  await sql(t, 'update probe.werkbonnen set nummer = nummer where id::text = any ($1)', [few.slice(2)]);
  await read('/sync/werkbonnen/digest?depth=1');
  await read('/sync/werkbonnen?prefix=0');
  const { data } = await read(`/sync/werkbonnen?since=${since}`);
  t.deepEqual(data.map(({ id }) => id).sort(), few.sort());
});

test('a transaction that began before a pass and commits after it is in the next pass', async (t) => {
  const { database } = t.context;
  const { rows } = await database.primary.query<{ id: string }>(
    'select id from probe.klanten where workspace_id = $1 order by id limit 2',
    [database.workspaces[0]?.id],
  );
  const [early, late] = rows.map(({ id }) => id) as [string, string];
  await database.primary.query('begin');
  await database.primary.query('update probe.klanten set created_at = created_at where id = $1', [early]);
  await database.primary.query('savepoint inner_part');
  await database.primary.query('update probe.klanten set created_at = created_at where id = $1', [late]);
  await database.primary.query('release savepoint inner_part');
  // A later transaction that is over: the ids of the open ones lie below the end of the replica's snapshot.
  await runAsAdmin(database.settings.adminUrl, (other) =>
    other.query(
      'update probe.werkbonnen set nummer = nummer where nummer = (select min(nummer) from probe.werkbonnen)',
    ),
  );
  await database.caughtUp();
  const before = await pass(t, 'klanten', 'perPage=10000');
  const open = await pass(t, 'klanten', `since=${before.since}`);
  await database.primary.query('commit');
  await database.caughtUp();
  const after = await pass(t, 'klanten', `since=${open.since}`);
  t.deepEqual(ids(after), [early, late].sort());
});

test('the log is read from the horizon on', async (t) => {
  const { since } = await pass(t, 'logboeken', 'perPage=10000');
  const workspace = t.context.database.workspaces[0]?.id;
  await sql(
    t,
    `insert into probe.logboeken (workspace_id, tijdstip, entiteit, entiteit_id, actie, actor_type)
     values ($1, now() - interval '1 hour', $2, '901', 'x', 'y'), ($1, now() - interval '200 days', $2, '902', 'x', 'y')`,
    [workspace, app.log.customer],
  );
  const { rows } = await pass(t, 'logboeken', `since=${since}`);
  const entityIds = rows.map(({ entityId }) => entityId);
  t.deepEqual(entityIds, ['901']);
});

for (const resource of ['klanten', 'logboeken']) {
  test(`the digest and the ids of ${resource} are those of its records`, async (t) => {
    const { client } = t.context;
    const { rows, since } = await pass(t, resource, 'perPage=10000');
    for (const depth of [0, 1, 2, 4]) {
      const groups = new Map<string, { count: number; hash: bigint }>();
      for (const { id, syncVersion } of rows) {
        const hash = hashOf(id);
        const group = groups.get(hash.slice(0, depth)) ?? { count: 0, hash: 0n };
        groups.set(hash.slice(0, depth), {
          count: group.count + 1,
          hash: group.hash ^ BigInt(`0x${hashOf(`${id}\n${syncVersion}`).slice(0, 16)}`),
        });
      }
      const expected = [...groups]
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([prefix, { count, hash }]) => ({
          prefix,
          count,
          hash: hash.toString(16).padStart(16, '0'),
        }));
      t.deepEqual(
        (await client.get(`/sync/${resource}/digest?depth=${depth}`)).json<{ data: unknown }>().data,
        expected,
      );
    }
    const versions = ({ rows: some }: Pick<PassRead, 'rows'>): string[] =>
      some.map(({ id, syncVersion }) => `${id} ${syncVersion}`).sort();
    const all = (await client.get(`/sync/${resource}/ids?since=${since}`)).json<{ data: Page['data'] }>().data;
    t.deepEqual(versions({ rows: all }), versions({ rows }));
    const few = (await client.get(`/sync/${resource}/ids?prefix=a,3b`)).json<{ data: Page['data'] }>().data;
    const expected = ids({ rows }).filter((id) => /^(a|3b)/.test(hashOf(id)));
    t.deepEqual(ids({ rows: few }), expected);
    const read = await pass(t, resource, 'prefix=a,3b&perPage=50').catch(() => null);
    t.deepEqual(read && ids(read), expected);
  });
}

test('a deleted record is missing in the digest, and no pass repeats it', async (t) => {
  const { rows, since } = await pass(t, 'logboeken', 'perPage=10000');
  const digest = async (): Promise<unknown> =>
    (await t.context.client.get('/sync/logboeken/digest')).json<{ data: unknown }>().data;
  const [before] = (await digest()) as [{ count: number; hash: string }];
  const [gone] = await sql<{ id: string }>(
    t,
    `delete from probe.logboeken where id = (select min(id) from probe.logboeken where workspace_id = $1) returning id::text`,
    [t.context.database.workspaces[0]?.id],
  );
  const [after] = (await digest()) as [{ count: number; hash: string }];
  const version = rows.find(({ id }) => id === gone?.id)?.syncVersion;
  const hash = hashOf(`${gone?.id}\n${version}`).slice(0, 16);
  t.is(after.count, before.count - 1);
  t.is(BigInt(`0x${after.hash}`) ^ BigInt(`0x${before.hash}`), BigInt(`0x${hash}`));
  // Entries from before can come again: a transaction of another database on the server may be older than they.
  t.false(ids(await pass(t, 'logboeken', `since=${since}`)).includes(gone?.id as string));
});

interface DigestRow {
  readonly from?: string;
  readonly to?: string;
  readonly prefix?: string;
  readonly count: number;
  readonly hash: string;
}

test('the digest of a month changes exactly if its records do, and the months add up to their period', async (t) => {
  const { client, database } = t.context;
  const [from, to] = ['2026-01-15', '2026-06-20'];
  const workspace = database.workspaces[0]?.id;
  const digest = async (query: string): Promise<readonly DigestRow[]> =>
    (await client.get(`/sync/werkbonnen/digest?${query}`)).json<{ data: DigestRow[] }>().data;
  /** Computes it from the records of a pass, by their dates. */
  const model = async (): Promise<readonly DigestRow[]> => {
    const { rows } = await pass(t, 'werkbonnen', 'perPage=10000&fields=id,datum');
    return Array.from({ length: 6 }, (_, i) => {
      const month = `2026-0${i + 1}`;
      const last = new Date(Date.UTC(2026, i + 1, 0)).getUTCDate();
      const days = { from: i === 0 ? from : `${month}-01`, to: i === 5 ? to : `${month}-${last}` };
      const within = rows.filter(({ datum }) => String(datum) >= days.from && String(datum) <= days.to);
      const hash = within.reduce(
        (sum, { id, syncVersion }) => sum ^ BigInt(`0x${hashOf(`${id}\n${syncVersion}`).slice(0, 16)}`),
        0n,
      );
      return { ...days, count: within.length, hash: hash.toString(16).padStart(16, '0') };
    });
  };
  const any = `(select id from probe.werkbonnen where workspace_id = $1 order by md5(id::text || $2) limit 1)`;
  const day = `(date '2026-01-01' + (abs(hashtext($2)) % 200))`;
  const changes = [
    `update probe.werkbonnen set datum = ${day} where id = ${any}`,
    `update probe.werkbonnen set omschrijving = $2 where id = ${any} returning datum`,
    `update probe.uren set id = id where id = ${any}`,
    `delete from probe.uren where id = ${any}`,
    `insert into probe.werkbonnen select * from jsonb_populate_record(null::probe.werkbonnen, (select to_jsonb(w) from probe.werkbonnen w where id = ${any}) || jsonb_build_object('id', probe.new_id(), 'nummer', $2::text, 'datum', ${day}))`,
    `delete from probe.werkbonnen where id = (select id from probe.werkbonnen where workspace_id = $1 and nummer like 'seed%' and $2 <> '' limit 1)`,
  ];
  await sql(
    t,
    `update probe.werkbonnen set datum = date '2026-01-01' + (abs(hashtext(id::text)) % 200) where workspace_id = $1`,
    [workspace],
  );
  t.true((await model()).every(({ count }) => count > 0));
  for (let i = 0; i < 25; i++) {
    await sql(t, changes[i % changes.length] as string, [workspace, `seed ${i}`]);
    const now = await digest(`from=${from}&to=${to}&by=month`);
    const expected = await model();
    t.deepEqual(now, expected, changes[i % changes.length]);
    const [whole] = await digest(`from=${from}&to=${to}&depth=0`);
    const sum = now.reduce((total, { hash }) => total ^ BigInt(`0x${hash}`), 0n);
    t.deepEqual(whole, {
      prefix: '',
      count: now.reduce((total, { count }) => total + count, 0),
      hash: sum.toString(16).padStart(16, '0'),
    });
  }
});

test('a period has the days of the list, in the time zone, and at most 120 months', async (t) => {
  const { client } = t.context;
  const digest = async (query: string): Promise<readonly DigestRow[]> =>
    (await client.get(`/sync/logboeken/digest?${query}`)).json<{ data: DigestRow[] }>().data;
  for (const query of [
    'from=2025-03-30',
    'to=2025-10-26',
    'from=2025-03-30&to=2025-03-30',
    'from=1999-01-01&to=1999-01-31',
  ]) {
    const { pagination } = (await client.get(`/logboeken?${query}&total=true&perPage=1`)).json<{
      pagination: { total: number };
    }>();
    t.is((await digest(query))[0]?.count, pagination.total, query);
  }
  t.deepEqual(await digest('from=0001-02-27&to=0001-03-01&by=month'), [
    { from: '0001-02-27', to: '0001-02-28', count: 0, hash: '0'.repeat(16) },
    { from: '0001-03-01', to: '0001-03-01', count: 0, hash: '0'.repeat(16) },
  ]);
  t.is((await digest('from=2017-01-31&to=2026-12-01&by=month')).length, 120);
  const refused = {
    'from=2016-12-31&to=2026-12-01&by=month': 'by out_of_range',
    'from=2026-01-01&by=month': 'by invalid',
    'by=month': 'by invalid',
    'from=2026-01-01&to=2026-02-01&by=week': 'by invalid',
    'from=2026-02-30': 'from invalid_date',
    'from=2026-02-02&to=2026-02-01': 'from range_reversed',
    'from=2026-02-02&depth=1': 'depth conflicting_parameters',
    'from=2026-02-02&actie=x': 'actie unknown_parameter',
  };
  for (const [query, fault] of Object.entries(refused)) {
    const reply = await client.get(`/sync/logboeken/digest?${query}`);
    t.is(reply.status, 400, query);
    const { errors } = reply.json<{ errors: { parameter: string; code: string }[] }>();
    t.deepEqual(
      errors.map(({ parameter, code }) => `${parameter} ${code}`),
      [fault],
      query,
    );
  }
  t.is((await client.get('/sync/klanten/digest?from=2026-01-01')).status, 400, 'its list has no days');
});

async function versionsOf({ client }: Pick<TestContext, 'client'>, resource: string): Promise<Map<string, string>> {
  const { data } = (await client.get(`/sync/${resource}/ids`)).json<{ data: Page['data'] }>();
  return new Map(data.map(({ id, syncVersion }) => [id, syncVersion]));
}

const changedIn = (before: Map<string, string>, after: Map<string, string>): string[] =>
  [...before].flatMap(([id, version]) => (after.get(id) === version ? [] : [id])).sort();

test('a version changes with the record and with each of its parts, also with one that goes', async (t) => {
  const workspace = t.context.database.workspaces[0]?.id;
  // Of an update to itself PostgreSQL makes a new version of the row all the same.
  const [one, other] = await sql<{ id: string; part: string }>(
    t,
    `select id::text, min(part_id::text) as part from probe.uren where workspace_id = $1 group by id order by count(*) desc, id limit 2`,
    [workspace],
  );
  let before = await versionsOf(t.context, 'werkbonnen');
  const expectChanged = async (text: string, values: unknown[], ...expected: (string | undefined)[]): Promise<void> => {
    await sql(t, text, values);
    const after = await versionsOf(t.context, 'werkbonnen');
    t.deepEqual(changedIn(before, after), expected.sort(), text);
    before = after;
  };
  await expectChanged('update probe.werkbonnen set omschrijving = omschrijving where id = $1', [one?.id], one?.id);
  await expectChanged('update probe.uren set id = id where part_id = $1', [one?.part], one?.id);
  await expectChanged('update probe.uren set id = $2 where part_id = $1', [one?.part, other?.id], one?.id, other?.id);
  await expectChanged('delete from probe.uren where part_id = $1', [one?.part], other?.id);
});

// docs/understand/sync.md, "Which changes sync does not see".
test('what a view shows of another table changes no version', async (t) => {
  const [view] = await sql<{ definition: string; columns: string }>(
    t,
    `select rtrim(pg_get_viewdef('records.installaties'), ';') as definition, string_agg(case when attname in ('omschrijving', 'description')
       then '(select text from public.elsewhere) as ' else '' end || quote_ident(attname), ', ' order by attnum) as columns
     from pg_attribute where attrelid = 'records.installaties'::regclass and attnum > 0`,
  );
  await sql(
    t,
    `create table public.elsewhere (text text); insert into public.elsewhere values ('one');
     create or replace view records.installaties as select ${view?.columns} from (${view?.definition}) own`,
  );
  t.teardown(() => sql(t, `create or replace view records.installaties as ${view?.definition}`));
  const before = await versionsOf(t.context, 'installaties');
  await sql(t, `update public.elsewhere set text = 'other'`);
  t.is((await pass(t, 'installaties')).rows[0]?.omschrijving, 'other');
  t.deepEqual(changedIn(before, await versionsOf(t.context, 'installaties')), []);
});

test('versions change when the gateway shows the same rows otherwise, and with nothing else', async (t) => {
  const { database } = t.context;
  const before = await versionsOf(t.context, 'klanten');
  const same = await database.gateway({ rateLimitPerMinute: 1000 });
  t.deepEqual(changedIn(before, await versionsOf(same, 'klanten')), []);
  const keys = JSON.parse(database.settings.dataKeys) as Record<string, string>;
  const more = { ...keys, k9: Buffer.alloc(32, 9).toString('base64') };
  const other = await database.gateway({ dataKeys: JSON.stringify(more) });
  t.is(changedIn(before, await versionsOf(other, 'klanten')).length, before.size);
});

test('tokens and cursors of another workspace, resource or form are refused, and every fault is named', async (t) => {
  const { client, database } = t.context;
  const first = (await client.get('/sync/klanten?perPage=1')).json<Page>();
  const { since } = await pass(t, 'klanten', 'perPage=10000');
  const other = await database.token({ workspace: 1 });
  const faults = async (path: string, token?: string): Promise<unknown> => {
    const reply: ApiReply = await client.get(path, token === undefined ? {} : { token });
    t.is(reply.status, 400, reply.text);
    return reply
      .json<{ errors: { parameter: string; code: string }[] }>()
      .errors.map(({ parameter, code }) => `${parameter} ${code}`);
  };
  t.deepEqual(await faults(`/sync/klanten?since=${since}`, other), ['since invalid_since']);
  t.deepEqual(await faults(`/sync/installaties?since=${since}`), ['since invalid_since']);
  t.deepEqual(await faults(`/sync/klanten?since=${since.slice(0, -2)}`), ['since invalid_since']);
  t.deepEqual(await faults(`/sync/klanten/digest?since=x&depth=5&page=1`), [
    'page unknown_parameter',
    'depth out_of_range',
    'since invalid_since',
  ]);
  t.deepEqual(await faults(`/sync/klanten/ids?prefix=XY`), ['prefix invalid_prefix']);
  const { nextCursor } = first.pagination;
  t.deepEqual(await faults(`/sync/klanten?cursor=${nextCursor}`, other), ['cursor invalid_cursor']);
  t.deepEqual(await faults(`/sync/installaties?cursor=${nextCursor}`), ['cursor invalid_cursor']);
  t.deepEqual(await faults(`/klanten?cursor=${nextCursor}`), ['cursor invalid_cursor']);
  t.deepEqual(await faults(`/sync/klanten?cursor=${nextCursor}&since=${since}`), ['cursor conflicting_parameters']);
  t.deepEqual(await faults(`/sync/klanten?cursor=${nextCursor}&prefix=a`), ['cursor invalid_cursor']);
});

test('the statements of a large page are read once each, also while the primary writes without pause', async (t) => {
  const { client, database, log } = t.context;
  let isReading = true;
  const writing = (async () => {
    while (isReading) await database.primary.query("select pg_logical_emit_message(true, 'test', '')");
  })();
  for (let i = 0; i < 10; i++) t.is((await client.get('/sync/logboeken?perPage=1000')).json<Page>().data.length, 1000);
  isReading = false;
  await writing;
  t.false(log().includes('replica_failed'), 'no statement was judged by the marks of another one');
});

test('sync needs the scope of the list, and takes part in its limit', async (t) => {
  const { client, database } = t.context;
  const token = await database.token({ scopes: ['read:klanten'] });
  for (const path of ['', '/digest', '/ids']) {
    t.is((await client.get(`/sync/installaties${path}`, { token })).status, 403);
    t.is((await client.get(`/sync/klanten${path}`, { token: null })).status, 401);
    t.is((await client.get(`/sync/klanten${path}`, { token })).status, 200);
    t.is((await client.request('POST', `/sync/klanten${path}`)).status, 405);
    t.is((await client.request('HEAD', `/sync/klanten${path}`)).status, 200);
  }
});

test('a forged token or cursor with a number out of range is refused', async (t) => {
  const { client, database } = t.context;
  const owner = { workspace: database.workspaces[0]?.id as string, resource: 'logboeken' };
  const { since } = await pass(t, owner.resource, 'perPage=10000');
  await sql(
    t,
    `insert into probe.logboeken (workspace_id, tijdstip, entiteit, entiteit_id, actie, actor_type)
     select $1, now(), $2, id, 'x', 'y' from probe.klanten where workspace_id = $1 limit 3`,
    [owner.workspace, app.log.customer],
  );
  const statusOf = async (query: string): Promise<number> =>
    (await client.get(`/sync/${owner.resource}?perPage=1&${query}`)).status;
  const { nextCursor } = (await client.get(`/sync/${owner.resource}?perPage=1&since=${since}`)).json<Page>().pagination;
  const beyond = ['253402300800000', '999999999999999', '999999999999999999', '9'.repeat(21), '-1', '1e3'];
  for (const value of beyond) {
    t.is(await statusOf(`since=${changedToken(since, owner, 5, value)}`), 400, value);
    for (const at of [5, 6, 8])
      t.is(await statusOf(`cursor=${changedPlace(nextCursor as string, owner, at, value)}`), 400, value);
  }
  for (const value of ['', '0', '253402300799999'])
    t.is(await statusOf(`since=${changedToken(since, owner, 5, value)}`), 200, value);
});

test('a token of another timeline or cluster has expired', async (t) => {
  const { client } = t.context;
  const { since } = await pass(t, 'klanten', 'perPage=10000');
  const owner = { workspace: t.context.database.workspaces[0]?.id as string, resource: 'klanten' };
  const timeline = changedToken(since, owner, 2, '00000001');
  t.is((await client.get(`/sync/klanten?since=${timeline}`)).status, 200);
  const ahead = changedToken(since, owner, 3, String(2n ** 50n)); // no replica reaches it for years
  for (const token of [
    ...[since, ahead].map((each) => changedToken(each, owner, 1, '7000000000000000000')),
    ...[since, ahead].map((each) => changedToken(each, owner, 2, '00000009')),
    ahead,
  ])
    for (const path of ['', '/digest']) {
      const startedMs = performance.now();
      const reply = await client.get(`/sync/klanten${path}?since=${token}`);
      t.is(reply.status, 410);
      t.is(reply.json<{ code: string }>().code, 'sync_expired');
      t.true(performance.now() - startedMs < limitMs(10_000));
    }
});

test('a token shows no position and no transaction number, is read by every gateway, and expires with its key', async (t) => {
  const { client, database, token } = t.context;
  const { since } = await pass(t, 'klanten', 'perPage=10000');
  const { nextCursor } = (await client.get('/sync/werkbonnen?perPage=1')).json<Page>().pagination;
  const { rows } = await database.primary.query<{ system: string }>(
    'select system_identifier::text as system from pg_control_system()',
  );
  for (const text of [since, nextCursor as string]) {
    const bytes = Buffer.from(text, 'base64url');
    t.false(bytes.includes(rows[0]?.system as string));
    t.false(bytes.includes('0000000'), 'no timeline');
  }
  const other = await database.gateway();
  t.is((await other.client.get(`/sync/klanten?since=${since}`, { token })).status, 200);
  const context = JSON.stringify([database.workspaces[0]?.id, 'sync token klanten', []]);
  const replaced = makeTokenSeal(Buffer.alloc(32, 'other').toString('base64')).encode(context, ['1']);
  for (const path of [`/sync/klanten?since=${replaced}`, `/sync/klanten/digest?since=${replaced}`])
    t.is((await client.get(path)).json<{ code: string }>().code, 'sync_expired');
});
