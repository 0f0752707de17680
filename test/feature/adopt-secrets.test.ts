import { adopted, adoptedShop, apiOf, newDatabase, shopOf, titleOf, wrong } from '../support/adopt/adopted.js';
import { commandLine } from '../support/command-line.js';
import { words } from '../support/words.js';
import { gatewayTest } from '../support/workspace.js';

// Secrets and personal data that a draft must not show, by names, by values, and by values that come later.

const test = gatewayTest().serial;

const hidden = {
  'a webhook': 'https://hooks.slack.com/services/T0/B0/hidden',
  'a token': `Bearer hidden${'0'.repeat(20)}`,
  'a key': `sk_live_hidden${'0'.repeat(20)}`,
  'a hash': `$2a$10$hidden${'0'.repeat(40)}`,
  'a login in a link': 'postgres://app:hidden@db.internal/app',
  'a cookie': 'id=hidden; Path=/; HttpOnly',
};
const values = Object.values(hidden).map((value) => `'${value}'`);

const app = shopOf(`
  create table calls ($own, title text not null, request_headers jsonb, bearer text, callback_url text, ip inet, remark text, extra jsonb, settings jsonb,
    accessTokenTtl integer default 60, emailable_type text default 'order', prompt_tokens integer default 3, created_at timestamptz not null default now());
  create table trace_sessions ($own, title text not null);
  create table oauth_access_grants ($own, code text);
  create table sessions ($own, title text not null, session_token text);
  create table api_keys ($own, title text not null, key text);
  create table oauth_authorization_codes ($own, code text); create table pairings ($own, code text); create table device_logins ($own, user_code text);
  create table magic_logins ($own, link text, title text); create table event_subscriptions ($own, url text, delivery_url text, call_back text, title text);
  create table stored ($own, title text not null, reset_link text, iv_and_data text, laravel text, rails text, sealed_doc jsonb, notes_cipher text, share text,
    door text, code text, house text, reference text unique, digits text);
  create table uses ($own, stored text references stored (reference), title text not null);
  insert into calls (company_id, title, request_headers, bearer, callback_url, ip, remark, extra)
    select 1, 'a', '{"Authorization": "hidden"}', 'hidden', 'https://x.example/hidden', '10.0.0.1', value, jsonb_build_object('X-Api-Key', 'hidden')
    from unnest(array[${values}]) v (value);
  insert into trace_sessions (company_id, title) values (1, 'a');
  insert into sessions (company_id, title, session_token) values (1, 'a', 'hidden');
  insert into oauth_access_grants (company_id, code) values (1, 'hidden');
  insert into api_keys (company_id, title, key) values (1, 'a', 'hidden');
  insert into oauth_authorization_codes (company_id, code) values (1, 'hidden'); insert into pairings (company_id, code) values (1, 'hidden');
  insert into device_logins (company_id, user_code) values (1, 'hidden'); insert into magic_logins (company_id, link, title) values (1, 'hidden', 'a');
  insert into event_subscriptions (company_id, url, delivery_url, call_back, title) values (1, 'https://hidden', 'https://hidden', 'hidden', 'a');
  insert into stored (company_id, title, reset_link, iv_and_data, laravel, rails, sealed_doc, notes_cipher, share, door, code, house, reference, digits)
    select 1, 'a', 'hidden', md5('i' || n) || ':' || md5('x' || n), replace(encode(convert_to('{"iv":"YWFhYWFhYWFh","value":"hidden' || n || '"}', 'utf8'), 'base64'), e'\\n', ''),
      '{"p":"hidden' || n || '=","h":{"iv":"YWFhYWFhYWFh"}}', '{"iv": "YWFhYWFhYWFh", "ct": "hidden"}', 'hidden', substr(md5('s' || n), 1, 20),
      upper(translate(substr(md5('d' || n), 1, 9), '0123456789', 'BCDFGHJKLM')), 'C-' || n, 'street ' || n, md5('r' || n), abs(hashtext('n' || n) % 900000) + 100000
    from generate_series(1, 12) n;
  insert into uses (company_id, stored, title) select 1, reference, 'a' from stored`);

test('a draft shows no secrets, and what only sounds like one', async (t) => {
  const draft = await adoptedShop(t, app);
  const names = words(
    'calls device-logins event-subscriptions magic-logins oauth-access-grants oauth-authorization-codes pairings sessions stored trace-sessions uses',
  );
  t.deepEqual([...draft.resources.keys()], names);
  const ask = await (await apiOf(t, draft))(`${names.map((name) => `read:${name}`)}`);
  const { body } = await ask<{ data: object[] }>('/calls');
  t.deepEqual(Object.keys(body.data[0] ?? {}), words('id title accesstokenttl emailableType promptTokens createdAt'));
  for (const name of names) t.notRegex(JSON.stringify((await ask(`/${name}`)).body), /hidden|10\.0/, name);
  for (const point of [
    'shop.api_keys: its name speaks of secrets: name it in --tables',
    '(request_headers, bearer, callback_url): Columns are left out (secrets, by the name)',
    '(settings): Columns are left out (no value in the sample, and a name of what can hold secrets)',
    '(remark): Columns are left out (keys, tokens or cookies, by the values)',
    '(extra): Columns are left out (documents with personal data, by the names of their members)',
    '(iv_and_data, laravel, rails, sealed_doc): Columns are left out (sealed values, by the values: ',
    '(share, door, digits): Texts look random, each is there once, and no other table names them: ',
  ])
    t.true(draft.output.includes(point), `${point} in ${draft.output}`);
});

test('what the operator names is drafted, and nothing else that is named wrongly', async (t) => {
  const settings = await newDatabase(t, 'named', (client) => client.query(app));
  const show = ['--schema', 'shop', '--tables', 'api_keys,calls', '--show', 'calls.remark,calls.settings'];
  const { resources, run } = await adopted(t, settings, ...show);
  t.deepEqual([...resources.keys()], ['api-keys', 'calls']);
  const { fields } = resources.get('calls') ?? { fields: {} };
  t.true('remark' in fields && 'settings' in fields && !('bearer' in fields));
  const wrongly = await run('adopt', '--schema', 'shop', '--show', 'calls.remarks,calls.extra');
  t.is(wrongly.code, 1);
  t.regex(wrongly.stderr, /--show names what is no TABLE\.COLUMN: calls\.remarks\./);
  t.regex((await commandLine(['adopt', '--help'], {})).stdout, /--show TABLE\.COLUMN/);
});

const later = shopOf(`
  create table notes ($own, email text, remark text, extra jsonb, data jsonb, created_at timestamptz not null default now());
  insert into notes (company_id, remark, extra, data)
    select 1, 'plain ' || n, jsonb_build_object('size', n, 'of', jsonb_build_object('name' || n, n), 'signature', 'drawn'),
      '{"note": 1, "to": "hall", "api": {"Authorization": false}}' from generate_series(1, 20) n`);

test('check warns of secrets and addresses that texts and JSON came to hold', async (t) => {
  const settings = await newDatabase(t, 'later', (client) => client.query(later));
  const draft = await adopted(t, settings, '--schema', 'shop', '--show', 'notes.email');
  t.deepEqual((await wrong(t, draft)).map(titleOf), []);
  t.true(draft.output.includes('(extra, data): Of free JSON the members of a sample are shown: '));
  const { extra, data } = (draft.resources.get('notes')?.fields ?? {}) as Record<string, { show?: string[] }>;
  t.deepEqual([extra?.show, data?.show], [['/size'], words('/api/Authorization /note /to')]);
  const contents = async (sql: string) => {
    await draft.query(sql);
    return (await wrong(t, draft)).map(({ level, code, detail }) => `${level} ${code} ${detail.split(';')[0]}`);
  };
  const cases: readonly (readonly [sql: string, detail?: string])[] = [
    [`email = 'a@x.example'`],
    [`extra = '{"size": 7, "Authorization": "x", "to": "a@x.example"}'`],
    [
      `email = null, data = '{"api": {"Authorization": "x"}}'`,
      'data holds members named like secrets or personal data',
    ],
    [`data = '{"to": "a@x.example"}'`, 'data holds e-mail addresses'],
    [`data = '[{"note": "${hidden['a key']}"}]'`, 'data holds keys'],
    [`data = null, remark = 'see ${hidden['a cookie']}'`, 'remark holds cookies'],
    [`remark = '${hidden['a token']}'`, 'remark holds tokens'],
    [`remark = 'a@x.example'`, 'remark holds e-mail addresses'],
    [`remark = 'ask a@x.example'`],
  ];
  for (const [sql, detail] of cases)
    t.deepEqual(
      await contents(`update shop.notes set ${sql} where id = 7`),
      detail === undefined ? [] : [`warning contents /fields/${detail} in 1 of 20 records, such as 7`],
      sql,
    );
});
