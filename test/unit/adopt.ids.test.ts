import test from 'ava';
import type { Column, Index, Table } from '../../src/adopt/catalog.js';
import { leads } from '../../src/adopt/lists.js';
import { findTenant, idColumn, idPoints } from '../../src/adopt/tenant.js';
import { column, index, table } from '../support/tables.js';

// The id of a record and the order of a list, as `adopt` takes them from indexes.

test('an id is a column that a unique index proves, alone or beside the workspace', (t) => {
  const [id, company, from] = [column('id', 'bigint'), column('company_id', 'bigint'), column('valid_from', 'date')];
  const made = { ...id, made: true };
  const own = { ...column('history_no', 'bigint'), made: true };
  const rest = ['companies', 'staff', 'jobs'].map((name) =>
    table(name, name === 'companies' ? [id] : [id, company], name === 'companies' ? {} : { company_id: 'companies' }),
  );
  const found = (columns: readonly Column[], indexes: readonly Index[], more: Partial<Table> = {}) => {
    const rates = { ...table('rates', columns), primaryKey: ['id', 'valid_from'], indexes, ...more };
    const tenant = findTenant('app', [...rest, rates]);
    const chosen = idColumn(rates, tenant);
    return chosen && [chosen.name, ...idPoints(rates, chosen, tenant).map(() => 'open')].join(' ');
  };
  const columns = [id, company, from];
  const history = index(['id', 'valid_from']);
  t.is(found(columns, [history]), undefined);
  t.is(found(columns, [history, index(['id'], { isUnique: false })]), undefined);
  t.is(found(columns, [history, index(['id'], { condition: '(valid_to IS NULL)' })]), undefined, 'of some rows');
  t.is(found(columns, [history, index(['id', null])]), undefined, 'an expression');
  t.is(found([{ ...id, notNull: false }, company, from], [history, index(['id'])]), undefined, 'NULL repeats');
  t.is(found(columns, [history, index(['id'])]), 'id');
  t.is(found(columns, [history, index(['company_id', 'id'])]), 'id');
  t.is(found([...columns, own], [history, index(['history_no'])]), 'history_no');
  t.is(found([...columns, { ...own, refers: true }], [history, index(['history_no'])]), undefined, 'of another table');
  t.is(found([...columns, column('reset_token', 'uuid')], [history, index(['reset_token'])]), undefined, 'a secret');
  t.is(
    found([column('email'), company], [index(['company_id', 'email'])], { primaryKey: ['company_id', 'email'] }),
    undefined,
    'clients see ids',
  );
  const parts = { partitionKey: ['valid_from'] };
  t.is(found(columns, [history], parts), undefined, 'the app gives ids');
  t.is(found([made, company, from], [history], parts), 'id open');
  t.is(found([made, company, from], [history], { partitionKey: ['company_id'] }), undefined);
});

test('an index serves an order where all its columns go one way', (t) => {
  const of = (...descending: boolean[]): Index => index(['company_id', 'made_at', 'id'], { descending });
  t.true(leads(of(false, false, false), ['company_id', 'made_at', 'id'], 1));
  t.true(leads(of(false, true, true), ['company_id', 'made_at', 'id'], 1));
  t.true(leads(of(false, true, false), ['company_id', 'made_at', 'id'], 2));
  t.false(leads(of(false, true, false), ['company_id', 'made_at', 'id'], 1));
  t.false(leads(index(['company_id', null, 'id']), ['company_id', 'made_at', 'id'], 1));
  t.false(leads(of(false, false, false), ['company_id', 'id'], 1));
});
