import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { adoptedShop, apiOf, emptyFolder, type Page, served, tokenOf, walk } from '../support/adopt/adopted.js';
import { commandLine } from '../support/command-line.js';
import { duckdbCopy, runPull } from '../support/pull/copy.js';
import { gatewayTest } from '../support/workspace.js';

// An app in which most tables have no column of the workspace: a required reference leads to a table that has it.

const test = gatewayTest().serial;

const app = `
  create schema shop; set search_path = shop;
  create table companies (id text primary key, name text not null);
  create table staff (id text primary key, company_id text not null references companies, email text not null, is_owner boolean not null);
  create table catalogs (id text primary key, company_id text not null references companies, created_at timestamp not null default now());
  create table orders (id text primary key, "companyId" text not null, company_id text not null references companies,
    created_at timestamp not null default now());
  create table lines (id text primary key, catalog_id text not null references catalogs, made_by text not null references staff,
    order_id text not null references orders on delete cascade, label text not null, email_catalog_id text references catalogs, created_at timestamp not null default now());
  create table photos (id text primary key, line_id text not null references lines, caption text, created_at timestamp not null default now());
  create table marks (id text primary key, photo_id text not null references photos, caption text, is_deleted boolean);
  create index marks_kept on marks (photo_id, id) where is_deleted is not true;
  create table claims (id text primary key, order_id text not null references orders, against_company_id text references companies, created_at timestamp not null default now());
  create table drafts (id text primary key, order_id text references orders, created_at timestamp not null default now());
  insert into companies values ('north', 'North'), ('south', 'South');
  insert into staff select id, id, id || '@shop.example', true from companies;
  insert into catalogs select 'catalog-' || id, id from companies;
  insert into orders select 'order-' || c.id || i, 'x', c.id from companies c, generate_series(1, 40) i;
  insert into lines (id, catalog_id, made_by, order_id, label, created_at) select o.id || '-' || i, 'catalog-south', 'south', o.id, 'line ' || i, timestamp '2026-01-01' + i * interval '1 h'
    from orders o, generate_series(1, 50) i;
  insert into photos select 'photo-' || id, id, 'photo of ' || id, created_at from lines where label = 'line 7';
  insert into marks select 'mark-' || id, id, caption, null::boolean from photos union all select 'old-' || id, id, 'deleted', true from photos;
  insert into claims select 'claim-' || o.id, o.id, c.id from orders o join companies c on c.id <> o.company_id;
  insert into drafts select 'draft-' || id, id from orders;
  analyze;`;

interface Photo {
  readonly id: string;
  readonly marks: readonly { readonly caption: string }[];
}

test('a table without a column of the workspace is of the one that its required reference leads to', async (t) => {
  const draft = await adoptedShop(t, app, {
    findings: ['claims', 'lines', 'photos'].map((name) => `warning sorted_lists ${name}`),
  });
  const refused = ['adopt', '--schema', 'shop', '--out', emptyFolder(t), '--write', 'lines'];
  const refusal = await commandLine(refused, draft.settings);
  t.is(refusal.code, 1);
  t.regex(refusal.stderr, /shop\.lines cannot be written: it has no column of the workspace/);
  t.deepEqual([...draft.resources.keys()], ['catalogs', 'claims', 'lines', 'orders', 'photos']);
  t.regex(draft.output, /shop\.drafts: it has no column company_id and no required reference to a table with one/);
  t.regex(draft.output, /photos\.sql: marks \(is_deleted\): Rows with these marks count as deleted/);
  t.regex(draft.output, /wrote sql\/views\/indexes\/photos_sync_marks\.sql/); // the app's index lacks deleted rows
  t.regex(draft.output, /lines\.sql: lines \(order_id\): The workspace comes from another record, so a list sorts/);
  t.like(draft.resources.get('lines')?.fields, {
    orderId: { references: 'orders' },
    emailCatalogId: { references: 'catalogs' },
  });

  const api = await apiOf(t, draft);
  for (const workspace of ['north', 'south']) {
    const ask = await api('read:lines,read:photos,read:claims', workspace, workspace);
    const lines = (await walk(ask, '/lines?perPage=700')).map(({ id }) => id);
    const claims = (await walk(ask, '/claims')).map(({ id }) => id);
    t.is(claims.length, 40);
    t.true(
      claims.every((id) => id.startsWith(`claim-order-${workspace}`)),
      'of their orders, not of the other party',
    );
    t.is(lines.length, 2000);
    t.is(new Set(lines).size, 2000);
    t.true(lines.every((id) => id.startsWith(`order-${workspace}`)));
    const byOrder = await walk(ask, `/lines?orderId=order-${workspace}3&from=2026-01-02`);
    t.is(byOrder.length, 28); // the day begins in Amsterdam
    const photos = await walk<Photo>(ask, '/photos?perPage=7');
    t.is(photos.length, 40);
    const caption = (id: string) => `photo of ${id.slice('photo-'.length)}`;
    t.deepEqual(
      photos.map(({ marks }) => marks.map((mark) => Object.entries(mark))),
      photos.map(({ id }) => [
        [
          ['id', `mark-${id}`],
          ['caption', caption(id)],
        ],
      ]),
    );
    const other = workspace === 'north' ? 'south' : 'north';
    t.is((await ask(`/lines/order-${workspace}1-1`)).status, 200);
    t.is((await ask(`/lines/order-${other}1-1`)).status, 404);
    t.deepEqual(await walk(ask, `/lines?orderId=order-${other}3`), []);
    const { pagination } = (await ask<Page>('/photos?total=true&perPage=1')).body;
    t.is(pagination.total, 40);
  }
});

test('a copy is kept in step with rows that change their workspace with the one they refer to', async (t) => {
  const { database } = t.context;
  const draft = await adoptedShop(t, app, {
    args: ['--tables', 'orders,lines,photos'],
    findings: ['warning sorted_lists lines', 'warning sorted_lists photos'],
  });
  t.deepEqual(Object.keys(draft.resources.get('photos')?.sync?.parts ?? {}), ['marks']);
  const api = await served(t, draft);
  const folder = emptyFolder(t);
  writeFileSync(join(folder, 'token'), await tokenOf(t, draft, 'read:lines,read:photos', 'north', 'north'));
  const copy = duckdbCopy(join(folder, 'copy.duckdb'));
  const pull = async (): Promise<object[]> => {
    const options = ['--resources', 'lines,photos', '--base', api, '--token-file', join(folder, 'token')];
    const { stdout, stderr } = await runPull([...options, '--to', copy.to]);
    t.is(stderr, '');
    return stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as object);
  };
  // Photos first: they refer to lines.
  t.like(await pull(), [
    { whole: true, records: 40 },
    { whole: true, records: 2000 },
  ]);
  // A pass repeats what a transaction of another test's database may still change: the numbers of records are not the test's own.
  const nothing = { whole: false, deleted: 0, repaired: 0 };
  t.like(await pull(), [nothing, nothing]);
  await draft.query(`update shop.orders set company_id = 'north' where id = 'order-south1'; update shop.orders set company_id = 'south' where id = 'order-north2';
    update shop.marks set caption = 'new' where id like '%order-north3-7'; update shop.lines set label = 'x' where id = 'order-north1-1'; delete from shop.lines where id = 'order-north1-2'`);
  await database.caughtUp();
  t.like(await pull(), [
    { whole: false, deleted: 1 },
    { whole: false, deleted: 51 },
  ]);
  const [after] =
    await copy.sql(`select (select count(*)::varchar from photos where id like '%order-south1-%') as photos,
    (select count(*)::varchar from lines where id like 'order-south1-%') as lines, (select label from lines where id = 'order-north1-1') as label,
    (select caption like '%new%' from photos_marks where photo_id like '%order-north3-7') as marked`);
  t.like(after, { photos: '1', lines: '50', label: 'x', marked: true });
  await draft.query(`update shop.marks set is_deleted = true where id = 'mark-photo-order-north4-7'`);
  await database.caughtUp();
  const found = { whole: false, repaired: 0 }; // as a change, not by the digests
  t.like(await pull(), [found, found]);
  t.deepEqual(await copy.sql(`select * from photos_marks where photo_id = 'photo-order-north4-7'`), []);
});
