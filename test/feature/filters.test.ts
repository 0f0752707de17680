import { app } from '../support/app.js';
import { records } from '../support/lists.js';
import { column, ids } from '../support/sql.js';
import { gatewayTest } from '../support/workspace.js';

const test = gatewayTest();

type Record = { readonly id: string; readonly tijdstip: string };

test('installations of one customer', async (t) => {
  const { client, database } = t.context;
  const customers = await column<string>(
    database,
    'select klant_id from probe.installaties where workspace_id = $1 group by 1 order by count(*) desc, 1 limit 5',
  );
  for (const customer of customers) {
    const found = await records<Record>(client, `/installaties?customerId=${customer}&perPage=2`);
    t.deepEqual(
      found.map(({ id }) => id),
      await ids(database, 'installaties klant_id = $2', customer),
    );
    t.true(found.length > 2);
  }
});

test('work orders of one installation, and between dates, both inclusive', async (t) => {
  const { client, database } = t.context;
  const [installation] = await column<string>(
    database,
    'select installatie_id from probe.werkbonnen where workspace_id = $1 group by 1 order by count(*) desc, 1 limit 1',
  );
  const [first, last] = await column<string>(
    database,
    `select unnest(array[min(datum), max(datum)])::text from probe.werkbonnen where workspace_id = $1 and installatie_id = $2`,
    installation,
  );
  const of = `installationId=${installation}`;
  const cases: [string, string, unknown[]][] = [
    [of, 'installatie_id = $2', [installation]],
    [`from=${first}&to=${first}`, 'datum = $2::date', [first]],
    [`from=${first}&to=${last}&${of}`, 'datum between $2 and $3 and installatie_id = $4', [first, last, installation]],
    [`to=${first}`, 'datum <= $2', [first]],
    [`from=${last}`, 'datum >= $2', [last]],
    [`${of}&to=${first}`, 'datum <= $2 and installatie_id = $3', [first, installation]],
    [`${of}&from=${last}`, 'datum >= $2 and installatie_id = $3', [last, installation]],
  ];
  for (const [query, condition, values] of cases) {
    const found = await records<Record>(client, `/werkbonnen?${query}&perPage=40`);
    t.true(found.length > 0, query);
    t.deepEqual(
      found.map(({ id }) => id),
      await ids(database, `werkbonnen ${condition}`, ...values),
      query,
    );
  }
});

test('log entries by kind, by entity, and by days, combined with AND', async (t) => {
  const { client, database } = t.context;
  const [entity] = await column<string>(
    database,
    `select entiteit_id from probe.logboeken where workspace_id = $1 and entiteit = $2 group by 1 order by count(*) desc, 1 limit 1`,
    app.log.customer,
  );
  const day = (operator: string, parameter: string) =>
    `(tijdstip at time zone 'Europe/Amsterdam')::date ${operator} ${parameter}::date`;
  const cases: [string, string, unknown[]][] = [
    [`entity=${app.log.customer}`, 'entiteit = $2', [app.log.customer]],
    [`entityId=${entity}`, 'entiteit_id = $2', [entity]],
    [`entity=${app.log.customer}&entityId=${entity}`, 'entiteit = $2 and entiteit_id = $3', [app.log.customer, entity]],
    ['from=2024-05-01', day('>=', '$2'), ['2024-05-01']],
    ['to=2020-05-01', day('<=', '$2'), ['2020-05-01']],
    [
      `entity=${app.log.customer}&from=2022-01-01&to=2022-12-31`,
      `entiteit = $2 and ${day('between $3::date and', '$4')}`,
      [app.log.customer, '2022-01-01', '2022-12-31'],
    ],
  ];
  for (const [query, condition, values] of cases) {
    const found = await records<Record>(client, `/logboeken?${query}&perPage=1000`);
    t.true(found.length > 0, query);
    t.deepEqual(
      found.map(({ id }) => id),
      await ids(database, `logboeken ${condition}`, ...values),
      query,
    );
  }
  t.deepEqual(
    await records(client, `/logboeken?entity=${app.log.user}&entityId=${entity}`),
    [],
    'an entity of another kind',
  );
});

test('a filter that nothing can match gives an empty page, not an error', async (t) => {
  const { client } = t.context;
  const odd = [
    'onbekend',
    '0',
    '-1',
    '%00',
    "'",
    '%F0%9F%98%80',
    '../x',
    'a'.repeat(1000),
    '00000000-0000-4000-8000-000000000000',
  ];
  for (const id of odd) {
    for (const query of [
      `installaties?customerId=${id}`,
      `werkbonnen?installationId=${id}`,
      `logboeken?entityId=${id}`,
      `logboeken?entity=${id}`,
    ]) {
      for (const more of ['', '&total=true', '&page=2', '&from=2020-01-01'].slice(
        0,
        query.startsWith('inst') ? 3 : 4,
      )) {
        const reply = await client.get(`/${query}${more}`);
        t.is(reply.status, 200, query + more);
        t.deepEqual(reply.json<{ data: unknown[] }>().data, [], query + more);
      }
    }
  }
});

test('an id of another workspace matches nothing', async (t) => {
  const { client, database } = t.context;
  const other = { ...database, workspaces: database.workspaces.slice(1) };
  const [customer] = await column<string>(other, 'select klant_id from probe.installaties where workspace_id = $1');
  const [installation] = await column<string>(
    other,
    'select installatie_id from probe.werkbonnen where workspace_id = $1',
  );
  const [entity] = await column<string>(other, 'select entiteit_id from probe.logboeken where workspace_id = $1');
  t.deepEqual(await records(client, `/installaties?customerId=${customer}`), []);
  t.deepEqual(await records(client, `/werkbonnen?installationId=${installation}`), []);
  t.deepEqual(await records(client, `/logboeken?entityId=${entity}`), []);
});
