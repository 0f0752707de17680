import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { projectRoot } from '../../src/base/paths.js';
import { page, records } from '../support/lists.js';
import { makeWalls } from '../support/walls.js';
import { gatewayTest } from '../support/workspace.js';

// Values in parts, arrays and objects that views make. The client checks each response against the OpenAPI document.
const test = gatewayTest().serial;
type Json = Record<string, unknown>;

test('work orders whose hours have no date or number that JSON has fit their document, and free JSON stays', async (t) => {
  const { client, database } = t.context;
  const workspace = database.workspaces[0]?.id;
  const odd = ['infinity', '-infinity', '0044-03-15 BC', '20226-01-05', '5874897-12-31', '2026-02-28'];
  const { rows } = await database.primary.query<{ id: string }>(
    `with picked as (select id, row_number() over (order by id) as n from app.werkbon_uren where workspace_id = $1 order by id limit 6)
     update app.werkbon_uren u set datum = ($2::date[])[n], uren = (array['NaN', 1.50, 'NaN', 0, 'NaN', 999.99]::numeric[])[n], tot = '24:00'
     from picked where u.id = picked.id returning u.id`,
    [workspace, odd],
  );
  const { rows: actions } = await database.primary.query<{ werkbon_id: string }>(
    `update app.werkbon_handelingen set gegevens = '{"opmerking": "0044-03-15 BC", "meting": "NaN", "teller": 12345678901234567890.10}'
     where id = (select min(id::text)::uuid from app.werkbon_handelingen where workspace_id = $1) returning werkbon_id`,
    [workspace],
  );
  await database.caughtUp();
  const all = await records<{ uren: Json[]; handelingen: Json[] }>(client, '/werkbonnen?perPage=1000');
  const shown = all.flatMap(({ uren }) => uren.filter(({ id }) => rows.some((row) => row.id === id)));
  const pairs = shown.map(({ datum, uren, tot }) => `${datum} ${uren} ${tot}`).sort();
  t.deepEqual(pairs, [
    '2026-02-28 999.99 24:00',
    'null 0 24:00',
    'null 1.5 24:00',
    'null null 24:00',
    'null null 24:00',
    'null null 24:00',
  ]);
  const { text } = await client.get(`/werkbonnen/${actions[0]?.werkbon_id}`);
  t.true(text.includes('{"meting":"NaN","teller":12345678901234567890.10,"opmerking":"0044-03-15 BC"}'));
});

const part = (type: string, more: object = {}): object => ({ type, ...more });
const member = (column: string, description: string, more: object): object => ({
  column,
  type: 'json',
  description,
  ...more,
});
const visits = {
  name: 'visits',
  record: 'visit',
  description: 'Visits.',
  view: 'records.visits',
  order: ['id'],
  fields: {
    id: { column: 'id', type: 'bigint', description: 'Number.' },
    moments: member('moments', 'Moments.', { items: part('timestamp') }),
    days: member('days', 'Days.', { nullable: true, items: part('date') }),
    amounts: member('amounts', 'Amounts.', { items: part('number') }),
    staffIds: member('staff_ids', 'Members of staff.', {
      items: part('bigint', { references: 'visits', nullable: true }),
    }),
    summary: member('summary', 'Summary.', {
      fields: {
        firstAt: part('timestamp', { column: 'first_at' }),
        isOpen: part('boolean', { column: 'is_open' }),
        deeper: part('json', {
          nullable: true,
          items: part('json', {
            fields: {
              noteId: part('bigint', { column: 'note_id' }),
              writtenOn: part('date', { column: 'written_on' }),
            },
          }),
        }),
        notes: part('json', { show: ['/kind', '/marks/value'] }),
        asStored: part('json', { column: 'as_stored', show: ['/kind', '/signed'] }),
      },
    }),
  },
};

const tables = `
  create table app.visits (id bigint primary key, workspace_id uuid not null, at timestamptz[], days date[], amounts double precision[], staff bigint[], note jsonb);
  create view records.visits as
    select workspace_id, id, to_json(at) as moments, to_jsonb(days) as days, to_json(amounts) as amounts, to_json(staff) as staff_ids,
      json_build_object('is_open', id = 1, 'first_at', at[1], 'internal', 'not shown', 'notes', note, 'as_stored', note,
        'deeper', (select json_agg(row_to_json(n)) from (select id as note_id, day as written_on from unnest(days) day) n)) as summary
    from app.visits;`;

test('typed arrays and objects have one form at any depth, and nothing that JSON lacks', async (t) => {
  const { database } = t.context;
  const folder = mkdtempSync(join(tmpdir(), 'definitions-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  cpSync(join(projectRoot, 'config/resources'), folder, { recursive: true });
  writeFileSync(join(folder, 'visits.json'), JSON.stringify(visits));
  await database.primary.query(tables);
  await makeWalls(database.primary, folder);
  const note = { kind: 'NaN', marks: [{ value: 1, by: 'Jansen' }], signed: 'infinity' };
  await database.primary.query(
    `insert into app.visits values (1, $1, array['2026-03-29 01:59:59.123456+02', 'infinity', '0044-03-15 00:00+00 BC', '20226-01-05 00:00+00', '2026-01-01 00:00+00', null]::timestamptz[],
       array['infinity', '2026-02-28', '0044-03-15 BC', '20226-01-05', null]::date[], array['NaN', 'infinity', '-infinity', 1e30, 0.1]::float8[], array[9007199254740993, 5, null], $2),
       (2, $1, '{}', null, '{}', '{}', null)`,
    [database.workspaces[0]?.id, note],
  );
  await database.caughtUp();
  const { client } = await database.gateway({ resourcesDir: folder });
  const token = await database.token({ scopes: ['read:visits'] });
  const { data, reply } = await page<Json>(client, '/visits', { token });
  const days = [null, '2026-02-28', null, null, null];
  t.deepEqual(data, [
    {
      id: '1',
      moments: ['2026-03-28T23:59:59.123Z', null, null, null, '2026-01-01T00:00:00.000Z', null],
      days,
      amounts: [null, null, null, 1e30, 0.1],
      staffIds: ['9007199254740993', '5', null],
      summary: {
        firstAt: '2026-03-28T23:59:59.123Z',
        isOpen: true,
        deeper: days.map((writtenOn) => ({ noteId: '1', writtenOn })),
        notes: { kind: 'NaN', marks: [{ value: 1 }] },
        asStored: { kind: 'NaN', signed: 'infinity' },
      },
    },
    {
      ...{ id: '2', moments: [], days: null, amounts: [], staffIds: [] },
      summary: { firstAt: null, isOpen: false, deeper: null, notes: null, asStored: null },
    },
  ]);
  t.false(reply.text.includes('not shown'));
});
