import type { ExecutionContext } from 'ava';
import { createIndexes } from '../../src/operate/migrate/indexes.js';
import type { Statement } from '../../src/postgres/statement.js';
import { loadResources } from '../../src/resource/definition/load.js';
import type { Resource } from '../../src/resource/definition/resource.js';
import { compileStatements } from '../../src/resource/statements/statements.js';
import { page, pages } from '../support/lists.js';
import { analyzed, buffersIn } from '../support/plan-buffers.js';
import { replicaReader, withStatistics } from '../support/replica-reader.js';
import { gatewayTest, type TestContext } from '../support/workspace.js';

// Few rows are found among many without reading the others: by id, by a nearly unique number, or as the last that changed.

// Small chunks, so that pages of 400 need the statements between two keys, too.
const test = gatewayTest({ chunkRowsMax: 100 }, 'first');
const workOrders = loadResources('').find(({ name }) => name === 'werkbonnen') as Resource;
const { detail, list } = compileStatements(workOrders);
const unchanged = 30_000;
const most = { since: '2100-01-02T00:00:00Z', count: 1000 };
const more = { since: '2100-01-01T00:00:00Z', count: 1001 };
const few = { since: '2100-02-01T00:00:00Z', count: 20 };

test.before('one installation with many work orders in few states, of which few changed late', async (t) => {
  const { database } = t.context;
  await database.primary.query('set session_replication_role = replica'); // these rows need no check of their references
  await database.primary.query(
    `insert into app.werkbonnen (id, workspace_id, installatie_id, nummer, datum, status, updated_at)
     select gen_random_uuid(), $1, i.id, 'WB-' || g, date '2019-01-01' + g % 2800,
       case g % 3 when 0 then 'gepland' else 'afgerond' end,
       case when g > ${most.count} then timestamptz '2020-01-01' when g = 0 then $2 when g <= ${few.count} then $4 else $3 end
     from generate_series(0, ${unchanged}) g,
       (select id from app.installaties where workspace_id = $1 order by id limit 1) i`,
    [database.workspaces[0]?.id, more.since, most.since, few.since],
  );
  await database.primary.query('reset session_replication_role');
  await createIndexes(database.settings.adminUrl);
  // Of indexes that look alike PostgreSQL takes the last.
  await database.primary.query('create index list_made_last on app.werkbonnen (workspace_id, datum, id)');
  await database.primary.query('vacuum (analyze) app.werkbonnen');
  await database.caughtUp();
});

async function readAtMost(
  t: ExecutionContext<TestContext>,
  buffersMax: number,
  statements: readonly Statement[],
  values: Readonly<Record<string, string | number>>,
  statistics: string,
): Promise<void> {
  const client = await replicaReader(t);
  for (const statement of statements) {
    await client.query(`prepare guarded as ${statement.text}`);
    const buffers = buffersIn(await analyzed(client, statement, values));
    t.true(buffers <= buffersMax, `${statement.name} reads ${buffers} buffers with statistics of ${statistics}`);
    await client.query('deallocate guarded');
  }
}

const statementsOf = (filters: readonly string[]): Statement[] =>
  (['asc', 'desc'] as const).flatMap((direction) => {
    const { rows, keys, last, count } = list(filters, direction);
    return [...Object.values(rows), ...Object.values(keys), last, count];
  });

async function oneOf(t: ExecutionContext<TestContext>, sql: string): Promise<Readonly<Record<string, string>>> {
  const { rows } = await (await replicaReader(t)).query<Record<string, string>>(
    `select id, installation_id as installation, datum::text as day from gateway.werkbonnen ${sql} limit 1`,
  );
  return rows[0] as Record<string, string>;
}

test.serial('a work order is found by its id, alone and in a list of ids, with any statistics', async (t) => {
  /** A descent into the index of the ids, the row and its parts; in the first run on a connection some pages of the catalog, too. */
  const buffersPerRow = 45;
  const workspace = t.context.database.workspaces[0]?.id as string;
  const values = { workspace, status: 'gepland', limit: 100, skip: 0 };
  for await (const name of withStatistics(t)) {
    const ids = await Promise.all(
      [0, 1, 2].map(async (n) => (await oneOf(t, `order by datum desc, id offset ${n}`)).id),
    );
    for (const id of [ids[0], '77777777-0000-4000-8000-000000000000'])
      await readAtMost(t, buffersPerRow, [detail as Statement], { ...values, id: id as string }, name);
    const listed = [list(['ids']).rows.all, list(['ids', 'status'], 'desc').keys.all, list(['ids']).count];
    await readAtMost(t, ids.length * buffersPerRow, listed, { ...values, ids: `{${ids}}` }, name);
  }
});

test.serial(
  'a number is found by its index, beside every combination of other filters, with any statistics',
  async (t) => {
    /**
     * One work order: the descent into the index of its number, its row and its parts, and what a connection's first statement reads of the
     * catalog.
     */
    const buffersMax = 40;
    const workspace = t.context.database.workspaces[0]?.id as string;
    for await (const name of withStatistics(t)) {
      const { id = '', installation = '', day = '' } = await oneOf(t, "where nummer = 'WB-15000'");
      const values = {
        ...{ workspace, timeZone: 'UTC', limit: 100, skip: 0, installationId: installation, status: 'gepland' },
        ...{ nummer: 'WB-15000', from: '2019-02-01', to: '2026-01-01', updatedSince: '2019-01-01' },
        ...{ after0: '2019-01-01', after1: id, until0: day, until1: id },
      };
      const combinations = subsetsOf(['installationId', 'from', 'to', 'status', 'updatedSince']);
      const statements = combinations.flatMap((others) => statementsOf(['nummer', ...others]));
      await readAtMost(t, buffersMax, statements, values, name);
    }
  },
);

test.serial('few changes are found by every statement, beside every other filter, with any statistics', async (t) => {
  /** A read of no row descends into the index of changes twice; each row is a descent, and some of its parts. */
  const [buffersOnce, buffersPerRow] = [30, 16];
  const workspace = t.context.database.workspaces[0]?.id as string;
  for await (const name of withStatistics(t)) {
    const { id = '', installation = '' } = await oneOf(t, 'order by updated_at desc');
    const values = {
      ...{ workspace, timeZone: 'UTC', limit: few.count, skip: 5, installationId: installation, status: 'gepland' },
      ...{ after0: '2019-01-01', after1: id, until0: '2026-01-01', until1: id, from: '2019-01-01', to: '2026-01-01' },
    };
    const statements = [[], ['from'], ['to'], ['status'], ['installationId'], ['from', 'to', 'status']].flatMap(
      (others) => statementsOf(['updatedSince', ...others]),
    );
    for (const { since, count } of [few, { since: '2200-01-01', count: 0 }])
      await readAtMost(t, count * buffersPerRow + buffersOnce, statements, { ...values, updatedSince: since }, name);
  }
});

for (const { since, count } of [few, most, more]) {
  for (const direction of ['asc', 'desc'] as const) {
    for (const query of ['', '&status=gepland', '&from=2019-06-01&to=2024-01-01', '&to=2021-01-01&status=afgerond']) {
      test(`${count} changes, ${direction}, ${query}: every page, by cursor or by number, in order, with the total`, async (t) => {
        const { client, database } = t.context;
        const { from = '-infinity', to = 'infinity', status = null } = Object.fromEntries(new URLSearchParams(query));
        const { rows } = await database.primary.query<{ id: string }>(
          `select id from app.werkbonnen where workspace_id = $1 and updated_at >= $2 and datum between $3 and $4
             and status = coalesce($5, status) order by datum ${direction}, id ${direction}`,
          [database.workspaces[0]?.id, since, from, to, status],
        );
        const expected = rows.map(({ id }) => id);
        t.true(query !== '' || expected.length === count);
        const one = direction === 'asc' ? ['cursor' as const] : ['page' as const];
        for (const by of query === '' ? (['cursor', 'page'] as const) : one) {
          const found: string[] = [];
          const path = `/werkbonnen?perPage=400&total=true&order=${direction}&updatedSince=${since}${query}`;
          for await (const { data, pagination } of pages(client, path, by)) {
            t.is(pagination.total, expected.length);
            found.push(...data.map(({ id }) => id));
          }
          t.deepEqual(found, expected, by);
        }
      });
    }
  }
}

test('beside a number every other filter still decides', async (t) => {
  const { client } = t.context;
  const found = async (query: string): Promise<number> => {
    const { data, pagination } = await page(client, `/werkbonnen?nummer=WB-15000&total=true${query}`);
    t.is(pagination.total, data.length, query);
    return data.length;
  };
  const [{ installationId = '', datum = '' } = {}] = (
    await page<{ installationId: string; datum: string }>(client, '/werkbonnen?nummer=WB-15000')
  ).data;
  const met = ['status=gepland', `installationId=${installationId}`, `from=${datum}`, `to=${datum}`];
  for (const each of [...met, 'updatedSince=2019-01-01']) t.is(await found(`&${each}`), 1, each);
  const unknown = 'installationId=00000000-0000-4000-8000-000000000000';
  for (const missed of ['status=afgerond', unknown, 'updatedSince=2100-01-01', 'to=2018-12-31'])
    t.is(await found(`&${missed}`), 0, missed);
});

function subsetsOf(names: readonly string[]): string[][] {
  const all: string[][] = [[]];
  for (const name of names) all.push(...all.map((each) => [...each, name]));
  return all;
}
