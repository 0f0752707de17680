import test from 'ava';
import type pg from 'pg';
import { sampleRows } from '../../src/adopt/catalog.js';
import { deletedPoints } from '../../src/adopt/columns.js';
import type { Draft } from '../../src/adopt/draft.js';
import type { SealedRead } from '../../src/adopt/fields.js';
import { keyIdsFile, tokensFile } from '../../src/adopt/files.js';
import type { Survey } from '../../src/adopt/survey.js';
import { findTenant, findUsers } from '../../src/adopt/tenant.js';
import { column, table } from '../support/tables.js';

// Users and keys in the files that `adopt` writes for all resources, its samples, and rows that count as deleted.

test('key ids are read from a column, from behind the prefixes, or are that of the only key', (t) => {
  const cell = column('cell');
  const reads: readonly (readonly [SealedRead, RegExp])[] = [
    [
      { column: cell, prefixes: [], keyColumn: column('vault_key') },
      /when s\.cell is not null then s\.vault_key::text end\)/,
    ],
    [
      { column: cell, prefixes: [{ head: 'v1:', end: ':' }] },
      /when starts_with\(s\.cell, 'v1:'\) then split_part\(substr\(s\.cell, 4\), ':', 1\) end\)/,
    ],
    [{ column: cell, prefixes: [], keyId: 'k1' }, /\(case when s\.cell is not null then 'k1' end\)/],
  ];
  for (const [read, sql] of reads) {
    const draft = { subject: { table: table('customers', [cell]) }, sealed: [read] };
    t.regex(keyIdsFile([draft as unknown as Draft]).sql, sql);
  }
});

test('of bytes a sample takes the beginning before PostgreSQL prints them', async (t) => {
  const asked: string[] = [];
  const query = async ({ text }: { text: string }) => {
    asked.push(text);
    return { rows: [['a', String.raw`\x00`]] };
  };
  const files = table('files', [column('name'), column('file', 'bytea')]);
  const rows = await sampleRows({ query } as unknown as pg.Client, files, files.columns);
  t.deepEqual(rows, [
    new Map([
      ['name', 'a'],
      ['file', String.raw`\x00`],
    ]),
  ]);
  t.regex(asked[0] ?? '', /^select left\(name::text, 20000\), substr\(file, 1, 9999\)::text from app\.files /);
});

test('a draft says which rows count as deleted, and which may', (t) => {
  const pointsOf = (name: string, type: string) => deletedPoints('rows', table('jobs', [column(name, type)]));
  t.deepEqual(pointsOf('deleted_at', 'timestamp with time zone'), [
    'rows with deleted_at count as deleted and are not shown.',
  ]);
  for (const type of ['smallint', 'bigint', 'character'])
    t.regex(pointsOf('is_deleted', type)[0] ?? '', /^rows are shown whatever is_deleted \(\w+\) says: /);
  t.deepEqual(pointsOf('deleted_by', 'bigint'), []);
});

test('users are found under the names that Django and ASP.NET give them', (t) => {
  const columns = [column('id', 'bigint'), column('company_id', 'bigint')];
  const of = { company_id: 'companies' };
  const rest = [
    table('companies', [column('id', 'bigint')]),
    table('jobs', columns, of),
    table('account_users', columns, of),
  ];
  const found = (...names: string[]): string | undefined => {
    const tables = [...rest, ...names.map((name) => table(name, [...columns, column('Email')], of))];
    return findUsers(tables, findTenant('app', tables))?.table.name;
  };
  for (const name of ['auth_user', 'accounts_user', 'AspNetUsers', 'users', 'staff']) t.is(found(name), name);
  t.is(found('newsletter_users'), undefined);
  t.is(found(), undefined, 'memberships have no address');
});

test('without a table of users the draft says that no token can be made', (t) => {
  const tenant = findTenant('app', [table('tenants', [column('id')]), table('a', [column('tenant_id')])], 'tenant_id');
  const found = { tenant, subjects: [], leftOut: [] } as unknown as Survey;
  const { sql, open } = tokensFile(found, []);
  t.regex(sql, /as email where false;/);
  t.true(open.some((point) => point.includes('no table of users was found')));
});
