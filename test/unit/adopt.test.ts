import { randomBytes } from 'node:crypto';
import test from 'ava';
import type pg from 'pg';
import { isNamed, toSnakeCase } from '../../src/base/words.js';
import { listDeletedPoints, listKeptConditions } from '../../src/operate/adopt/columns/deletions.js';
import { findReasonToLeaveOut } from '../../src/operate/adopt/columns/reasons.js';
import { type Form, guessForm, showInsideJson } from '../../src/operate/adopt/columns/sampled-values.js';
import { showColumn } from '../../src/operate/adopt/columns/types.js';
import { planFields } from '../../src/operate/adopt/definition/fields.js';
import { leads } from '../../src/operate/adopt/definition/index-drafts.js';
import { draftParts } from '../../src/operate/adopt/definition/parts.js';
import { makeKeyIdsFile, makeTokensFile } from '../../src/operate/adopt/files.js';
import { getNames, toCamelCase, toSingular } from '../../src/operate/adopt/names.js';
import type { Column, ForeignKey, Index, Subject, Survey, Table, Tenant } from '../../src/operate/adopt/schema.js';
import { findAuditLog, listDocuments } from '../../src/operate/adopt/tables/audit-log.js';
import { sampleValues } from '../../src/operate/adopt/tables/catalog.js';
import { addGuessedKeys } from '../../src/operate/adopt/tables/guesses.js';
import { describeId, findIdColumn } from '../../src/operate/adopt/tables/keys.js';
import { findUsers } from '../../src/operate/adopt/tables/owners.js';
import { findTenant } from '../../src/operate/adopt/tables/tenant.js';
import { findWorkspaces } from '../../src/operate/adopt/tables/workspace-paths.js';
import { column, index, table } from '../support/adopt/tables.js';
import { words } from '../support/words.js';

// The guesses of `adopt`, one table each.

const sealed = (head = ''): string[] =>
  Array.from({ length: 20 }, (_, i) => head + randomBytes(40 + i).toString('base64'));

test('values are recognized by their form: plain, base64, sealed, digests, images', (t) => {
  const png = `iVBORw0KGgo${'A'.repeat(2000)}`;
  const cases: [string, readonly string[], boolean, Form][] = [
    ['words', ['Utrecht', 'Den Haag', 'abcd'], false, 'plain'],
    ['numbers', ['10000001', '10000002'], false, 'plain'],
    ['nothing', [], false, 'plain'],
    ['base64 of texts', ['TmVkZXJsYW5k', 'QmVsZ2nDqw=='], false, 'base64'],
    ['sealed base64', sealed(), false, 'sealed'],
    ['sealed behind a prefix', [...sealed('enc:v2:k1:'), ...sealed('enc:v1:k9:')], false, 'sealed'],
    ['sealed bytes', sealed().map((text) => `\\x${Buffer.from(text, 'base64').toString('hex')}`), true, 'sealed'],
    ['hashes', Array.from({ length: 9 }, () => `\\x${randomBytes(32).toString('hex')}`), true, 'digest'],
    ['images', [png, png], false, 'image'],
    ['one image among texts', [png, 'a', 'b', 'c'], false, 'plain'],
    ['empty bytea', [], true, 'unknown bytes'],
  ];
  for (const [name, values, isBytea, kind] of cases) t.is(guessForm(values, isBytea), kind, name);
});

test('a type of the app can have the name of a member that every object inherits', (t) => {
  const odd = column('size', 'constructor');
  t.deepEqual(showColumn(odd), { type: 'text', select: 't.size::text' });
  t.deepEqual(showInsideJson(odd, false), { type: 'json', show: [''] });
  t.throws(() => findTenant('app', [table('a', [column('id', 'uuid'), odd])], 'size'), {
    message: /is of type constructor/,
  });
});

test('tables whose names become one, or one that a number made, get names of their own', (t) => {
  const subjects = ['Orders', 'orders', 'orders_2', 'klant', 'klanten', 'klant2'].map((name) => ({
    table: table(name, []),
  }));
  const names = subjects.map((subject) => getNames(subject, { subjects }));
  for (const key of ['view', 'name', 'record'] as const) t.is(new Set(names.map((each) => each[key])).size, 6, key);
});

test('workspaces are found by foreign keys, by names, and by the column of --tenant', (t) => {
  const [id, org, owner] = [column('id', 'uuid'), column('organization_id', 'uuid'), column('created_by', 'uuid')];
  const users = table('users', [id, org], { organization_id: 'organizations' });
  const notes = table('notes', [id, org, owner], { organization_id: 'organizations', created_by: 'users' });
  const byKeys = findTenant('app', [table('organizations', [id]), users, notes]);
  t.is(byKeys.root?.name, 'organizations');
  t.is(byKeys.columnIn(notes), org);
  t.true(byKeys.isSure);
  const byName = findTenant('app', [table('a', [id, org]), table('b', [id, org])]);
  t.is(byName.column, 'organization_id');
  t.false(byName.isSure);
  t.is(findTenant('app', [notes], 'created_by').column, 'created_by');
  const team = column('team_id', 'uuid');
  const byTeam = ['a', 'b'].map((name) => table(name, [id, team], { team_id: 'teams' }));
  const others = ['x', 'y'].map((name) => table(name, [id]));
  t.like(findTenant('app', [table('teams', [id]), ...byTeam, ...others]), { column: 'team_id', isSure: false });
  t.throws(() => findTenant('app', [table('teams', [id]), ...byTeam, ...others, table('z', [id])]), {
    message: /--tenant/,
  });
  t.throws(
    () =>
      findTenant('app', [
        table('rooms', [id]),
        ...['a', 'b'].map((name) => table(name, [id, team], { team_id: 'rooms' })),
        ...others,
      ]),
    { message: /--tenant/ },
  );
  const [family, account] = [column('family_id', 'integer'), column('account_id', 'bigint')];
  const key = column('id', 'bigint');
  const ofFamily = (name: string, ...more: Column[]): Table =>
    table(name, [key, family, ...more], { family_id: 'families' });
  const beside = [
    ...[table('families', [column('id', 'bigint')]), ofFamily('accounts'), ofFamily('login', account)],
    ...Array.from({ length: 9 }, (_, i) => ofFamily(`t${i}`)),
    ...['x', 'y'].map((name) => table(name, [id, account], { account_id: 'accounts' })),
  ];
  const byMajority = findTenant('app', beside);
  t.like(byMajority, { column: 'family_id', isSure: false });
  t.regex(
    byMajority.reason,
    /^family_id \(integer\) is in 11 of 14 tables; references lead to app\.families; next: account_id of app\.accounts \(3\)$/,
  );
  t.is(findTenant('app', beside, 'family_id').root?.name, 'families', 'the table to which the given column refers');
  const few = ['a', 'b', 'c', 'd', 'users'].map((name) => table(name, [key, family], { family_id: 'families' }));
  const below = Array.from({ length: 8 }, (_, i) => table(`e${i}`, [key, column('a_id', 'bigint')], { a_id: 'a' }));
  const unnamed = [table('families', [key]), ...few, ...below];
  t.like(findTenant('app', unnamed), { column: 'family_id', isSure: false }, 'users and most rows belong to them');
  const wide = { ...column('account_id', 'integer'), refers: false };
  const tickets = table('tickets', [id, wide]);
  const agents = table('agents', [id, account], { account_id: 'accounts' });
  t.is(findTenant('app', [table('accounts', [column('id', 'integer')]), agents, tickets]).columnIn(tickets), wide);
  t.throws(() => findTenant('app', [table('a', [id])]), { message: /--tenant COLUMN/ });
  t.throws(() => findTenant('app', [table('a', [id])], 'x'), { message: /has the column "x"/ });
  t.throws(() => findTenant('app', [table('a', [column('made_at', 'date')])], 'made_at'), { message: /of type date/ });
});

test('a row belongs to the workspace of the record that it is about, however far, before that of the person who wrote it', (t) => {
  const [id, company] = [column('id', 'bigint'), column('company_id', 'bigint')];
  const to = (name: string): Column => column(name, 'bigint');
  const of = { company_id: 'companies' };
  const tables = [
    ...[
      table('companies', [id]),
      table('own_user', [id, company, column('email')], of),
      table('projects', [id, company], of),
    ],
    table('work_orders', [id, to('project_id')], { project_id: 'projects' }),
    table('history', [id, to('user_id'), to('work_order_id')], { user_id: 'own_user', work_order_id: 'work_orders' }),
    table('views', [id, to('created_by'), to('project_id')], { created_by: 'own_user', project_id: 'projects' }),
    table('links', [id, to('project_id'), to('work_order_id')], {
      project_id: 'projects',
      work_order_id: 'work_orders',
    }),
    table('pairs', [id, to('left_id'), to('right_id')], { left_id: 'projects', right_id: 'projects' }),
    table('logins', [id, to('user_id')], { user_id: 'own_user' }),
    table('login_pages', [id, to('login_id')], { login_id: 'logins' }),
  ];
  const found = findWorkspaces(tables, findTenant('app', tables));
  const pathOf = (name: string) => {
    const way = [...found].find(([table]) => table.name === name)?.[1];
    return [way?.steps.map(({ table }) => table.name).join(' '), way?.rivals.length];
  };
  t.deepEqual(pathOf('history'), ['work_orders projects', 0]);
  t.deepEqual(pathOf('views'), ['projects', 0]);
  t.deepEqual(pathOf('links'), ['projects', 0]);
  t.deepEqual(pathOf('pairs'), ['projects', 1]);
  t.deepEqual(pathOf('logins'), ['own_user', 0]);
  t.deepEqual(pathOf('login_pages'), ['logins own_user', 0]);
});

test('the changes of an audit log are read in three shapes, with some entries of other forms', (t) => {
  const shapeOf = (texts: readonly string[]): unknown => {
    const columns = [column('entity'), column('entity_id'), column('action'), column('changes', 'jsonb', ...texts)];
    return findAuditLog(table('log', columns))?.shape;
  };
  t.deepEqual(shapeOf(['{"a":[1,2]}', '{}']), { old: 0, new: 1 });
  t.deepEqual(shapeOf(['{"a":{"from":1,"to":2}}']), { old: 'from', new: 'to' });
  t.deepEqual(shapeOf(['[{"field":"a","old":1,"new":2}]']), { field: 'field', old: 'old', new: 'new' });
  t.deepEqual(shapeOf([...Array(20).fill('{"a":[1,2]}'), '["x"]']), { old: 0, new: 1 });
  t.is(shapeOf(['{"a":1}', '"x"', 'cut {']), undefined);
  t.is(findAuditLog(table('x', [column('id')])), undefined);
});

test('the documents of an audit log are known by their types, and those in texts by how they begin', (t) => {
  const own = ['item_type', 'item_id', 'event', 'object_changes'];
  const documents = [
    column('a', 'jsonb'),
    column('b', 'ext.hstore'),
    { ...column('c', 'text[]'), isArray: true },
    column('d', 'xml'),
  ];
  const texts = {
    ...{ json: '{"a":1}', list: ' [{"a":1}]', none: '[]', yaml: '---\na: 1' },
    pairs: '"a"=>"1"',
    xml: '<?xml version="1.0"?><a/>',
  };
  const plain = { words: 'changed {a}', mark: '[sync] done', line: '-- none --', number: '7' };
  const held = Object.entries({ ...texts, ...plain }).map(([name, value]) => column(name, 'text', value));
  const others = [...documents, ...held];
  const diff = column('object_changes', 'jsonb', '{"a":[1,2]}');
  const log = table('versions', [...own.map((name) => (name === diff.name ? diff : column(name))), ...others]);
  const names = listDocuments(log, findAuditLog(log)).map(({ name }) => name);
  t.deepEqual(names, ['a', 'b', 'c', 'd', ...Object.keys(texts)]);
  t.deepEqual(listDocuments(table('jobs', others)), []);
  const shadowed = table('log', [column('object', 'jsonb'), column('record'), column('record_id'), column('action')]);
  t.is(findAuditLog(shadowed)?.entity.name, 'record');
});

test('another reference to the workspaces, or a column of that name that leads to another table, tells no workspace', (t) => {
  const supplier = column('supplier_id', 'bigint');
  const [account, optional] = [column('account_id', 'bigint'), { ...supplier, notNull: false }];
  const of = { company_id: 'companies' };
  const rest = [table('companies', [id]), table('staff', [id, company], of), table('projects', [id, company], of)];
  const found = (columns: readonly Column[], references: Readonly<Record<string, string>>): Column | undefined => {
    const orders = table('orders', [id, ...columns], references);
    return findTenant('app', [...rest, orders]).columnIn(orders);
  };
  t.is(found([company, supplier], { ...of, supplier_id: 'companies' }), company);
  t.is(found([optional], { supplier_id: 'companies' }), undefined, 'not required');
  t.is(found([supplier, account], { supplier_id: 'companies', account_id: 'companies' }), undefined, 'two of them');
  t.is(found([supplier], { supplier_id: 'companies' }), supplier);
  t.is(found([{ ...company, refers: true }], { company_id: 'projects' }), undefined, 'of another table');
  t.is(found([{ ...company, refers: true }], {}), undefined, 'of a table of another schema');
  t.is(found([{ ...company, refers: true }], of)?.name, 'company_id');
  t.is(found([{ ...company, notNull: false }], of)?.name, 'company_id');
  t.is(found([company], {})?.name, 'company_id', 'without a foreign key');
});

test('names tell their purpose in any spelling, and plurals their singular', (t) => {
  t.deepEqual(
    ['createdAt', 'Created-At', 'HTTPCode', '9lives'].map(toSnakeCase),
    words('created_at created_at http_code x_9lives'),
  );
  t.is(toCamelCase('kvk_nummer'), 'kvkNummer');
  const plurals = words('customers companies boxes klanten werkbonnen installaties staff');
  const ones = words('customer company box klant werkbon installatie staff');
  t.deepEqual(plurals.map(toSingular), ones);
  t.true(isNamed('deleted', 'isDeleted'));
  for (const name of ['bcc_emails', 'mobile_phones', 'emailAddresses', 'homePhone'])
    t.true(isNamed('contact', name), name);
  const reasons = {
    'personal data, by the name': `emailadres emailaddress email2 phone1 phonenumber telefoonnummer mobielnummer tel gsm rekeningnummer burgerservicenummer
      geboortedatum:date birth_date:timestamp_with_time_zone dateOfBirth:date phone:bigint ip_address:inet last_sign_in_ip:inet remote_addr:inet ip:inet`,
    'secrets, by the name': `password_hash passwordhash wachtwoordHash pincode pin2 bearer authorization session_id sessions set_cookie webhook_url callbackUrl
      request_headers client_dsn private_link consumer_key pin:integer hmac_key signingKey encryption_keys passphrase`,
    '': `telling hotel rekening postcode mailing_list spinnummer email_count:integer emailable_type token_type trace_session_id training_session_name password_policy
      hash_algorithm email_template header session_notes email_subject accessTokenTtl:integer prompt_tokens:bigint password_lifetime:interval token_kind:enum`,
  };
  for (const [reason, names] of Object.entries(reasons))
    for (const each of words(names)) {
      const [name = '', type = 'text'] = each.split(':');
      t.is(findReasonToLeaveOut(column(name, type.replaceAll('_', ' '))) ?? '', reason, each);
    }
  t.is(findReasonToLeaveOut({ ...column('api_token'), isWanted: true }), undefined);
  for (const name of words(`api_keys access_tokens user_sessions password_resets oauth_access_tokens secrets`))
    t.true(isNamed('secretTable', name), name);
  for (const name of words(`trace_sessions training_sessions password_policies token_usages hash_tags keys sessions`))
    t.false(isNamed('secretTable', name), name);
  for (const type of ['tsvector', 'vector', 'extensions.halfvec', 'sparsevec', 'public.vector[]'])
    t.regex(findReasonToLeaveOut(column('a', type)) ?? '', / of other columns, by the type$/);
  t.false(isNamed('secret', 'idempotency_key') || isNamed('secret', 'key'));
  t.false(isNamed('contact', 'mailbox_count') || isNamed('secret', 'hashtags') || isNamed('workspaceColumn', 'id'));
});

// Users and keys in the files that `adopt` writes for all resources, its samples, and rows that count as deleted.

test('sealed values of the preset are shown and their key ids are read; of others the operator names the codec', (t) => {
  const cells = { own: sealed('enc:v2:k1:')[0] as string, other: sealed()[0] as string, other_key: 'k1' };
  const { fields, leftOut, all, subject } = drafted(
    Object.keys(cells).map((name) => column(name)),
    cells,
  );
  t.deepEqual([fields, leftOut.map((reason) => reason.slice(0, 11))], [['own'], ['sealed valu', 'ids of keys']]);
  t.like(all.columns[1]?.field, { codec: 'aes-256-gcm', nullable: true });
  const { sql } = makeKeyIdsFile([{ subject, columns: all.columns }]);
  t.regex(sql, /grant select \(own\) on app\.jobs [\s\S]*lateral \(values \(s\.own\)\) [\s\S]*like 'enc:v_:%'/);
});

test('of bytes a sample takes the beginning before PostgreSQL prints them', async (t) => {
  const asked: string[] = [];
  const query = async ({ text }: { text: string }) => {
    asked.push(text);
    return { rows: [['a', String.raw`\x00`]] };
  };
  const files = table('files', [column('name'), column('file', 'bytea')]);
  await sampleValues({ query } as unknown as pg.Client, files);
  const read = files.columns.map(({ values }) => values);
  t.deepEqual(read, [['a'], [String.raw`\x00`]]);
  t.regex(asked[0] ?? '', /^select left\(name::text, 20000\), substr\(file, 1, 9999\)::text from app\.files /);
});

test('a draft says which rows count as deleted, and which may', (t) => {
  const isAsked = (name: string, type: string): string =>
    listDeletedPoints(table('jobs', [column(name, type)]))
      .map((point) => `${Object(point).of ?? ''} ${Object(point).text ?? ''}`.trim())
      .join('');
  t.regex(
    isAsked('deleted_at', 'timestamp with time zone'),
    /^jobs \(deleted_at\) Rows with these marks count as deleted/,
  );
  for (const [name, type] of Object.entries({
    is_deleted: 'uuid',
    deleted: 'character',
    archived_at: 'date',
    deleted_by: 'bigint',
  }))
    t.true(isAsked(name, type).startsWith(`jobs (${name}: ${type}, no row yet) Rows are shown whatever `), name);
  t.is(isAsked('deletable', 'boolean'), '');
});

test('each mark of deletion is compared by its type, and a time that need not be null with the moment', (t) => {
  const nullable = { notNull: false };
  const ofNow = "coalesce(t.x > now() or t.x < '1970-01-03', true)";
  const cases: readonly (readonly [column: Column, condition: string])[] = [
    [column('discarded_at', 'timestamp with time zone'), ofNow],
    [{ ...column('deletedAt', 'date'), ...nullable }, 't.x is null'],
    [{ ...column('deleted_at', 'timestamp without time zone', 'infinity'), ...nullable }, ofNow],
    [{ ...column('delete_at', 'timestamp with time zone'), ...nullable }, ofNow],
    [column('is_deleted', 'boolean'), 'not t.x'],
    [{ ...column('isdeleted', 'boolean'), ...nullable }, 't.x is not true'],
    [column('del_flag', 'smallint'), 't.x = 0'],
    [{ ...column('deleted', 'bigint'), ...nullable }, 'coalesce(t.x, 0) = 0'],
    [
      column('trashed', 'character', 'N', 'Y'),
      `lower(btrim(coalesce(t.x::text, ''))) in ('', '0', 'f', 'false', 'n', 'no', 'nee')`,
    ],
    [column('deleted_on', 'text', '2026-01-01T00:00:00Z'), `coalesce(t.x, '') = ''`],
    [column('status', 'enum', 'open', 'deleted'), `t.x is distinct from 'deleted'`],
  ];
  for (const [each, condition] of cases)
    t.deepEqual(listKeptConditions(table('jobs', [{ ...each, quoted: 'x' }])), [condition], each.name);
  const both = [column('is_deleted', 'boolean'), { ...column('deleted_at', 'date'), ...nullable }];
  t.is(listKeptConditions(table('jobs', both)).length, 2);
  for (const name of ['status', 'undeleted_items', 'removed_by', 'archived_at', 'is_active'])
    t.deepEqual(listKeptConditions(table('jobs', [column(name, 'boolean')])), [], name);
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
    return findUsers(tables, findTenant('app', tables))?.name;
  };
  for (const name of ['auth_user', 'accounts_user', 'AspNetUsers', 'users', 'staff', 'llx_user', 'tbl_gebruikers'])
    t.is(found(name), name);
  t.is(found('newsletter_users'), undefined);
  t.is(found(), undefined, 'memberships have no address');
});

test('the id of a record is the column by which other tables name it', async (t) => {
  const [record, id] = [column('record_id', 'bigint'), column('id', 'bigint')];
  const own = {
    ...table('jobs', [record, id]),
    primaryKey: ['record_id'],
    indexes: [index(['record_id']), index(['id'])],
  };
  const tenant = findTenant('app', [
    table('a', [id, column('org_id', 'uuid')]),
    table('b', [id, column('org_id', 'uuid')]),
  ]);
  t.is(findIdColumn(own, tenant), record);
  const lines = table('lines', [id, { ...column('job_id', 'bigint'), refers: true }], { job_id: 'jobs' });
  const [named] = (await addGuessedKeys({} as pg.Client, [own, lines])) as [Table, Table];
  t.is(findIdColumn(named, tenant), id);
});

test('a column that few tables lead to is no workspace', (t) => {
  const id = column('id', 'bigint');
  const few = ['accounts', 'entries', 'payments'].map((name) =>
    table(
      name,
      name === 'accounts' ? [id] : [id, column('account_id', 'bigint')],
      name === 'accounts' ? {} : { account_id: 'accounts' },
    ),
  );
  const others = Array.from({ length: 20 }, (_, i) => table(`t${i}`, [id]));
  t.throws(() => findTenant('erp', [...few, ...others]), {
    message: /^Only 2 of the 23 tables of "erp" lead to a workspace .* Candidates: account_id of app\.accounts \(2\)/,
  });
  t.is(findTenant('erp', [...few, ...others], 'account_id').column, 'account_id');
});

test('without a table of users the draft says that no token can be made', (t) => {
  const tenant = findTenant('app', [table('tenants', [column('id')]), table('a', [column('tenant_id')])], 'tenant_id');
  const found = { tenant, twins: '', tables: [], subjects: [] } as unknown as Survey;
  const { sql, open } = makeTokensFile(found);
  t.regex(sql, /as email where false;/);
  t.true(open?.some((point) => String(point).includes('no table of users with a workspace, or with memberships')));
});

test('without a table of workspaces they are read from the smallest table with their column that has rows', (t) => {
  const columns = [column('id', 'uuid'), column('company_id', 'uuid')];
  const tables = [3, 0, 2].map((rows, i) => ({ ...table(`t${i}`, columns), rows }));
  const found = { tenant: findTenant('app', tables), twins: '', tables, subjects: [] } as unknown as Survey;
  t.regex(makeTokensFile(found).sql, /select distinct company_id as id, company_id::text as name from app\.t2\n/);
});

// The id of a record and the order of a list, as `adopt` takes them from indexes.

test('an id is a column, or several, that a unique index proves, alone or beside the workspace', (t) => {
  const [id, company, from] = [column('id', 'bigint'), column('company_id', 'bigint'), column('valid_from', 'date')];
  const made = { ...id, isMade: true };
  const own = { ...column('history_no', 'bigint'), isMade: true };
  const rest = ['companies', 'staff', 'jobs'].map((name) =>
    table(name, name === 'companies' ? [id] : [id, company], name === 'companies' ? {} : { company_id: 'companies' }),
  );
  const found = (columns: readonly Column[], indexes: readonly Index[], more: Partial<Table> = {}) => {
    const rates = { ...table('rates', columns), primaryKey: ['id', 'valid_from'], indexes, ...more };
    const tenant = findTenant('app', [...rest, rates]);
    const chosen = findIdColumn(rates, tenant);
    return chosen && `${chosen.name}${describeId(rates, chosen, tenant) ? ' open' : ''}`;
  };
  const columns = [id, company, from];
  const history = index(['id', 'valid_from']);
  const both = 'id, valid_from';
  t.is(found(columns, [history]), both);
  t.is(found(columns, [history, index(['id'], { isUnique: false })]), both);
  t.is(found(columns, [history, index(['id'], { condition: '(valid_to IS NULL)' })]), both, 'of some rows');
  t.is(found(columns, [history, index(['id', null])]), both, 'an expression');
  t.is(found([{ ...id, notNull: false }, company, from], [history, index(['id'])]), undefined, 'NULL repeats');
  t.is(found(columns, [history, index(['id'])]), 'id');
  t.is(found(columns, [history, index(['company_id', 'id'])]), 'id');
  t.is(found([...columns, own], [history, index(['history_no'])]), 'history_no');
  t.is(
    found([...columns, { ...own, refers: true }], [history, index(['history_no'])]),
    'history_no',
    'of another table',
  );
  t.is(found([...columns, column('reset_token', 'uuid')], [index(['reset_token'])]), undefined, 'a secret');
  t.is(found(columns, [index(['company_id'])]), 'company_id', 'a row for each workspace');
  t.is(
    found([...columns, column('kind', 'enum')], [index(['company_id', 'kind'])]),
    undefined,
    'no index has its text',
  );
  t.is(
    found([column('email'), company], [index(['company_id', 'email'])], { primaryKey: ['company_id', 'email'] }),
    undefined,
    'clients see ids',
  );
  const parts = { partitionKey: ['valid_from'] };
  t.is(found(columns, [history], parts), both, 'the app gives ids');
  t.is(found([made, company, from], [history], parts), 'id open');
  t.is(found([made, company, from], [history], { partitionKey: ['company_id'] }), both);
  const ofTexts = { ...table('preferences', [column('company_id')]), indexes: [index(['company_id'])] };
  const ofText = findIdColumn(ofTexts, { columnIn: ({ columns }: Table) => columns[0] } as Tenant);
  t.is(showColumn(ofText as Column).select, "t.company_id || ''", 'no index has an order by the column that leads it');
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

// Personal data and secrets behind names that do not speak of them.

const [id, company] = [column('id', 'bigint'), column('company_id', 'bigint')];
const companies = table('companies', [id]);
const staff = table('staff', [id, company], { company_id: 'companies' });
/** The jobs of `drafted` refer to the companies so, if a test gives nothing else. */
const ofCompany = { table: 'companies', columns: ['company_id'], references: ['id'], cascades: false, survives: false };

/** Drafts the columns of a table, or of a part of its records, with one value each, and the reasons for those left out. */
function drafted(
  given: readonly Column[],
  values: Readonly<Record<string, string>>,
  foreignKeys: readonly ForeignKey[] = [],
) {
  const columns = given.map((each) => ({ ...each, values: [values[each.name] ?? []].flat() }));
  const own = { ...table('jobs', [id, company, ...columns]), foreignKeys: [ofCompany, ...foreignKeys] };
  const part = table('job_parts', [column('job_id', 'bigint'), ...columns], { job_id: 'jobs' });
  const tenant = findTenant('app', [companies, staff, own, part]);
  const subject: Subject = {
    table: own,
    id,
    tenant: company,
    steps: [],
    rivals: [],
    shown: { way: { tenant: company, steps: [] }, own: [], above: [], open: [] },
    crossings: new Set<string>(),
    documents: [],
    parts: [part],
  };
  const survey = { tenant, subjects: [subject], tables: [own, part] } as unknown as Survey;
  const all = planFields(subject, survey, []);
  const [list] = draftParts(subject, survey, all);
  const shown = all.columns.slice(1).map(({ member }) => member);
  return { fields: shown, leftOut: all.leftOut.map(([reason]) => reason), list, all, subject };
}

test('names in one word, and those of papers, cards and codes, speak of personal data and of secrets', (t) => {
  const personal = words(`
    primary_email primaryEmail recovery_email useremail contactemailaddress homephone mobilephonenumber customertelephone whatsapp_number`);
  const papers = words(`
    passport_no socialSecurityNumber national_id drivers_license bank_account creditCard card_number`);
  for (const name of [...personal, ...papers, 'dateofbirth'])
    t.is(findReasonToLeaveOut(column(name)), 'personal data, by the name', name);
  const codes = ['two_factor_recovery_codes', 'SecurityStamp', 'cvc', 'access_code', 'connectionString', 'pwd', 'jwt'];
  for (const name of [
    'userpassword',
    'passwordresettoken',
    'accesstoken',
    'refreshTokenHash',
    'clientsecret',
    ...codes,
  ])
    t.is(findReasonToLeaveOut(column(name)), 'secrets, by the name', name);
  for (const name of words(`
    secretary microphone tokenizer card cardinality bank code postal_code passed nationality_id`))
    t.is(findReasonToLeaveOut(column(name)), undefined, name);
});

test('a column of e-mail addresses is left out, whatever its name and type', (t) => {
  const cases = {
    text: 'jan@x.example',
    citext: 'Jan <jan@x.example>',
    'text[]': '{a@x.example,b@x.example}',
    jsonb: '{"to": "jan@x.example"}',
  };
  for (const [type, value] of Object.entries(cases)) {
    const { fields, leftOut, list } = drafted([column('login', type)], { login: value });
    t.deepEqual([fields, leftOut], [[], ['e-mail addresses, by the values']], type);
    t.notRegex(list?.select ?? '', /login/, type);
  }
  for (const value of ['react@18.2.0', '@jan', 'https://maps.example/@52.3,4.9', 'a @ b.example'])
    t.deepEqual(drafted([column('login')], { login: value }).fields, ['login'], value);
});

test('a document with members that speak of personal data or secrets is left out', (t) => {
  const reason = 'documents with personal data, by the names of their members';
  const personal: readonly (readonly [type: string, value: string])[] = [
    ['jsonb', '{"name": "a", "contact": {"phoneNumber": "06"}}'],
    ['jsonb', '[{"apiKey": "x"}]'],
    ['jsonb', String.raw`{"form": "{\"phone\": \"06\"}"}`],
    ['text', '{"email": null, "cut": "…'],
    ['text', '---\nname: a\n- :email: b\n'],
    ['ext.hstore', '"name"=>"a", "iban"=>"NL"'],
    ['xml', '<a><telefoon>06</telefoon></a>'],
    ['text', 'a:1:{s:5:"phone";s:2:"06";}'],
  ];
  for (const [type, value] of personal) {
    const { fields, leftOut, list } = drafted([column('data', type)], { data: value });
    t.deepEqual([fields, leftOut], [[], [reason]], value);
    t.notRegex(list?.select ?? '', /data/, value);
  }
  const plain: readonly (readonly [type: string, value: string])[] = [
    ['jsonb', '{"email": true, "sizes": [1]}'],
    ['text', 'phone: 06 is what the note says'],
    ['text', '<p>phone</p>'],
    ['text', 'a:1:{s:5:"email";b:1;}'],
  ];
  for (const [type, value] of plain)
    t.deepEqual(drafted([column('data', type)], { data: value }).fields, ['data'], value);
});

test('a reference by an e-mail address is left out, and one by the id of a record is shown', (t) => {
  const key = (own: string, to: string): ForeignKey => ({
    table: 'jobs',
    columns: [own],
    references: [to],
    cascades: false,
    survives: false,
  });
  const named = (name: string, to: string, value = '1') =>
    drafted([{ ...column(name), refers: true }], { [name]: value }, [key(name, to)]).fields;
  t.deepEqual(named('customer_email', 'email'), []);
  t.deepEqual(named('customer', 'email', 'jan@x.example'), []);
  t.deepEqual(named('customer_no', 'number'), ['customerNo']);
  t.deepEqual(named('email_job_id', 'id'), ['emailJobId']);
});

test('bytes in a list are left out, as they are by themselves', (t) => {
  const { fields, leftOut, list } = drafted([{ ...column('keys', 'bytea[]'), isArray: true }], { keys: '{"\\\\x00"}' });
  t.deepEqual([fields, leftOut], [[], ['unknown bytes, by the type']]);
  t.notRegex(list?.select ?? '', /keys/);
});
