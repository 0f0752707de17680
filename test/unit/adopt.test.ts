import { createCipheriv, randomBytes } from 'node:crypto';
import test from 'ava';
import { auditLogIn, documentsIn } from '../../src/adopt/audit-log.js';
import type { Column } from '../../src/adopt/catalog.js';
import { reasonToLeaveOut } from '../../src/adopt/columns.js';
import { camelCase, isNamed, singular, snakeCase } from '../../src/adopt/names.js';
import { findTenant } from '../../src/adopt/tenant.js';
import { type Form, formOf, openCells } from '../../src/adopt/values.js';
import { parseKeyring } from '../../src/projection/keyring.js';
import { column, table } from '../support/tables.js';

// The guesses of `adopt`, one table each.

const sealed = (head = ''): string[] =>
  Array.from({ length: 20 }, (_, i) => head + randomBytes(40 + i).toString('base64'));

test('values are recognized by their form: plain, base64, sealed, digests, images', (t) => {
  const png = `iVBORw0KGgo${'A'.repeat(2000)}`;
  const cases: [string, readonly string[], boolean, Form['kind']][] = [
    ['words', ['Utrecht', 'Den Haag', 'abcd'], false, 'plain'],
    ['numbers', ['10000001', '10000002'], false, 'plain'],
    ['nothing', [], false, 'plain'],
    ['base64 of texts', ['TmVkZXJsYW5k', 'QmVsZ2nDqw=='], false, 'base64'],
    ['sealed base64', sealed(), false, 'sealed'],
    ['sealed behind a prefix', sealed('enc:v2:k1:'), false, 'sealed'],
    ['sealed bytes', sealed().map((text) => `\\x${Buffer.from(text, 'base64').toString('hex')}`), true, 'sealed'],
    ['hashes', Array.from({ length: 9 }, () => `\\x${randomBytes(32).toString('hex')}`), true, 'digest'],
    ['images', [png, png], false, 'image'],
    ['one image among texts', [png, 'a', 'b', 'c'], false, 'plain'],
    ['empty bytea', [], true, 'unknown bytes'],
  ];
  for (const [name, values, isBytea, kind] of cases) t.is(formOf(values, isBytea).kind, kind, name);
});

test('a prefix is split into its words, the last of which is the id of the key, and an older version beside it', (t) => {
  const form = formOf([...sealed('enc:v2:k1:'), ...sealed('enc:v2:k9:'), ...sealed('enc:v1:k1:')], false);
  t.like(form, {
    codec: { encoding: 'base64', prefix: 'enc:v2:{keyId}:', legacyPrefix: 'enc:v1:{keyId}:' },
    keyIds: ['k1', 'k9'],
  });
});

test('sealed cells tell their layout and associated data to the holder of the key, and nothing to others', (t) => {
  const key = randomBytes(32);
  const seal = (text: string, aad: string): string => {
    const nonce = randomBytes(12);
    const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(aad));
    const data = Buffer.concat([cipher.update(text), cipher.final()]);
    return Buffer.concat([cipher.getAuthTag(), nonce, data]).toString('base64');
  };
  const cells = ['7', '8'].map((id) => ({
    value: seal(`{"name":"${id}"}`, `customer:${id}`),
    names: { workspace: '1', table: 'customers', column: 'sealed', id },
  }));
  const keyring = (bytes: Buffer) => parseKeyring(JSON.stringify({ k1: bytes.toString('base64') }));
  t.deepEqual(openCells(cells, { encoding: 'base64' }, keyring(key), 'customer'), {
    codec: { layout: ['tag16', 'nonce12', 'data'], aad: 'customer:{id}' },
    keyId: 'k1',
    texts: ['{"name":"7"}', '{"name":"8"}'],
  });
  t.is(openCells(cells, { encoding: 'base64' }, keyring(randomBytes(32)), 'customer'), undefined);
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
  t.throws(() => findTenant('app', [table('a', [id])]), { message: /--tenant COLUMN/ });
  t.throws(() => findTenant('app', [table('a', [id])], 'x'), { message: /has the column "x"/ });
  t.throws(() => findTenant('app', [table('a', [column('made_at', 'date')])], 'made_at'), { message: /of type date/ });
});

test('the changes of an audit log are read in three shapes, with some entries of other forms', (t) => {
  const log = table('log', [column('entity'), column('entity_id'), column('action'), column('changes', 'jsonb')]);
  const shapeOf = (texts: readonly string[]): unknown =>
    auditLogIn(
      log,
      texts.map((text) => new Map([['changes', text]])),
    )?.shape;
  t.deepEqual(shapeOf(['{"a":[1,2]}', '{}']), { old: 0, new: 1 });
  t.deepEqual(shapeOf(['{"a":{"from":1,"to":2}}']), { old: 'from', new: 'to' });
  t.deepEqual(shapeOf(['[{"field":"a","old":1,"new":2}]']), { field: 'field', old: 'old', new: 'new' });
  t.deepEqual(shapeOf([...Array(20).fill('{"a":[1,2]}'), '["x"]']), { old: 0, new: 1 });
  t.is(shapeOf(['{"a":1}', '"x"', 'cut {']), undefined);
  t.is(auditLogIn(table('x', [column('id')]), []), undefined);
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
    json: '{"a":1}',
    list: ' [{"a":1}]',
    none: '[]',
    yaml: '---\na: 1',
    pairs: '"a"=>"1"',
    xml: '<?xml version="1.0"?><a/>',
  };
  const plain = { words: 'changed {a}', mark: '[sync] done', line: '-- none --', number: '7' };
  const others = [...documents, ...Object.keys({ ...texts, ...plain }).map((name) => column(name))];
  const log = table('versions', [
    ...own.map((name) => column(name, name === 'object_changes' ? 'jsonb' : 'text')),
    ...others,
  ]);
  const rows = [new Map(Object.entries({ ...texts, ...plain, object_changes: '{"a":[1,2]}' }))];
  const names = documentsIn(log, rows, auditLogIn(log, rows)).map(({ name }) => name);
  t.deepEqual(names, ['a', 'b', 'c', 'd', ...Object.keys(texts)]);
  t.deepEqual(documentsIn(table('jobs', others), rows), []);
  const shadowed = table('log', [column('object', 'jsonb'), column('record'), column('record_id'), column('action')]);
  t.is(auditLogIn(shadowed, [])?.entity.name, 'record');
});

test('another reference to the workspaces, or a column of that name that leads to another table, tells no workspace', (t) => {
  const [id, company, account] = [
    column('id', 'bigint'),
    column('company_id', 'bigint'),
    column('account_id', 'bigint'),
  ];
  const of = { company_id: 'companies' };
  const [supplier, optional] = [
    column('supplier_id', 'bigint'),
    { ...column('supplier_id', 'bigint'), notNull: false },
  ];
  const rest = [table('companies', [id]), table('staff', [id, company], of), table('projects', [id, company], of)];
  const found = (columns: readonly Column[], references: Readonly<Record<string, string>>): Column | undefined => {
    const orders = table('orders', [id, ...columns], references);
    return findTenant('app', [...rest, orders]).columnIn(orders);
  };
  t.is(found([company, supplier], { ...of, supplier_id: 'companies' }), company);
  t.is(found([optional], { supplier_id: 'companies' }), undefined, 'not required');
  t.is(found([supplier, account], { supplier_id: 'companies', account_id: 'companies' }), undefined, 'two of them');
  t.is(found([supplier], { supplier_id: 'companies' }), supplier);
  t.is(found([company], { company_id: 'projects' }), undefined, 'of another table');
  t.is(found([{ ...company, refers: true }], {}), undefined, 'of a table of another schema');
  t.is(found([{ ...company, refers: true }], of)?.name, 'company_id');
  t.is(found([{ ...company, notNull: false }], of)?.name, 'company_id');
  t.is(found([company], {})?.name, 'company_id', 'without a foreign key');
});

test('names tell their purpose in any spelling, and plurals their singular', (t) => {
  t.deepEqual(['createdAt', 'Created-At', 'HTTPCode', '9lives'].map(snakeCase), [
    'created_at',
    'created_at',
    'http_code',
    'x_9lives',
  ]);
  t.is(camelCase('kvk_nummer'), 'kvkNummer');
  const plurals = {
    customers: 'customer',
    companies: 'company',
    boxes: 'box',
    klanten: 'klant',
    werkbonnen: 'werkbon',
    installaties: 'installatie',
    staff: 'staff',
  };
  for (const [plural, one] of Object.entries(plurals)) t.is(singular(plural), one);
  t.true(isNamed('deleted', 'isDeleted') && isNamed('secret', 'password_hash') && isNamed('contact', 'homePhone'));
  for (const name of ['bcc_emails', 'mobile_phones', 'emailAddresses']) t.true(isNamed('contact', name), name);
  const personal = [
    'emailadres',
    'emailaddress',
    'email2',
    'phone1',
    'phonenumber',
    'telefoonnummer',
    'mobielnummer',
    'tel',
    'gsm',
    'rekeningnummer',
    'burgerservicenummer',
  ];
  for (const name of personal) t.is(reasonToLeaveOut(column(name)), 'personal data, by the name', name);
  for (const name of ['passwordhash', 'wachtwoordHash', 'pincode', 'pin2'])
    t.is(reasonToLeaveOut(column(name)), 'secrets, by the name', name);
  for (const [name, type] of [
    ['geboortedatum', 'date'],
    ['birth_date', 'timestamp with time zone'],
    ['dateOfBirth', 'date'],
  ] as const)
    t.is(reasonToLeaveOut(column(name, type)), 'personal data, by the name', name);
  for (const name of ['telling', 'hotel', 'rekening', 'postcode', 'mailing_list', 'spinnummer'])
    t.is(reasonToLeaveOut(column(name)), undefined, name);
  t.is(reasonToLeaveOut(column('email_count', 'integer')), undefined);
  for (const [name, type] of [
    ['email_count', 'text'],
    ['phone', 'bigint'],
  ] as const)
    t.is(reasonToLeaveOut(column(name, type)), 'personal data, by the name');
  for (const type of ['tsvector', 'vector', 'extensions.halfvec', 'sparsevec', 'public.vector[]'])
    t.regex(reasonToLeaveOut(column('a', type)) ?? '', / of other columns, by the type$/);
  for (const name of ['hmac_key', 'signingKey', 'encryption_keys', 'passphrase']) t.true(isNamed('secret', name), name);
  t.false(isNamed('secret', 'idempotency_key') || isNamed('secret', 'key'));
  t.false(isNamed('contact', 'mailbox_count') || isNamed('secret', 'hashtags') || isNamed('workspaceColumn', 'id'));
});
