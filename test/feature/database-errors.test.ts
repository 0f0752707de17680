import { codeOf, faultsOf } from '../support/lists.js';
import { customerOf } from '../support/primary-side.js';
import { eventually, gatewayTest } from '../support/workspace.js';
import { created, etagOf, newKey, patch, post } from '../support/writes.js';

const test = gatewayTest().serial;

test('a value that a rule of the app does not allow is a fault of the body, whose rule the log names and whose values no place does', async (t) => {
  const { database, client, log } = t.context;
  const { primary } = database;
  const customerId = await customerOf(database);
  const raise = (
    name: string,
    when: string,
  ): string => `create function app.${name}() returns trigger language plpgsql as $$
      begin if new.naam like '%Pietersen%' then raise exception 'no %', new.naam; end if; return null; end $$;
      create constraint trigger ${name} after insert or update on app.installaties ${when} for each row execute function app.${name}()`;
  const rules: [rule: string, undo: string, named: string][] = [
    [
      "alter table app.installaties add constraint short check (naam not like '%Pietersen%')",
      'alter table app.installaties drop constraint short',
      '"code":"23514","routine":"ExecConstraints","schema":"app","table":"installaties","constraint":"short"',
    ],
    [raise('closed', ''), 'drop function app.closed cascade', '"code":"P0001"'],
    [raise('late', 'deferrable initially deferred'), 'drop function app.late cascade', '"code":"P0001"'],
    [
      "create unique index once on app.installaties (naam) where naam like '%Pietersen%'; insert into app.installaties (id, workspace_id, klant_id, naam) select gen_random_uuid(), workspace_id, klant_id, 'Koelcel meneer Pietersen' from app.installaties limit 1",
      "drop index app.once; delete from app.installaties where naam like '%Pietersen%'",
      '"constraint":"once"',
    ],
  ];
  const naam = 'Koelcel meneer Pietersen';
  const record = await created(client, { customerId, naam: 'Koelcel' });
  for (const [rule, undo, named] of rules) {
    await primary.query(rule);
    const key = newKey();
    const linesBefore = log().length;
    const replies = [
      await post(client, { customerId, naam }, { key }),
      await patch(client, record.id, etagOf(record), { naam }),
    ];
    await primary.query(undo);
    const code = rule.includes('unique') ? 'taken' : 'invalid';
    const place = rule.includes('trigger') ? '' : '/naam'; // a trigger names no column, and the customer was given, too
    t.deepEqual(
      replies.map((reply) => [reply.status, ...faultsOf(reply)]),
      [
        [400, `${place} ${code}`],
        [400, `/naam ${code}`],
      ],
      rule,
    );
    const lines = log().slice(linesBefore);
    t.is(lines.split('value_refused').length, 3, rule);
    t.true(lines.includes(named), lines);
    for (const text of [...replies.map((reply) => reply.text), lines]) t.notRegex(text, /Pietersen/);
    for (const { text } of replies) t.notRegex(text, /short|closed|late|once/);
    t.is((await post(client, { customerId, naam: 'Vriescel' }, { key })).status, 201, 'the key is free again');
  }
});

const view = 'create or replace view gateway.installaties_write as';
const walled = view.replace(' as', ' with (security_barrier) as');

const misfits: readonly (readonly [
  code: string,
  harm: (definition: string) => string,
  advice: RegExp,
  heal?: string,
])[] = [
  [
    '42501',
    () => 'revoke insert (naam) on gateway.installaties_write from gateway_writer',
    /lacks a privilege.*`migrate`/,
    'grant insert (naam) on gateway.installaties_write to gateway_writer',
  ],
  [
    '0A000',
    (definition) => `${view} ${definition.replace(/(\w+\.)?merk,/, 'lower(merk) as merk,')}`,
    /computes a column/,
  ],
  [
    '428C9',
    (definition) => `alter table app.installaties add column brand text generated always as (lower(naam)) stored;
      do $$ begin execute 'create view records.branded as ' || replace(pg_get_viewdef('records.installaties'), 'merk,', 'merk, brand,'); end $$;
      grant select, insert, update on records.branded to gateway_owner;
      ${view} ${definition.replace('merk,', 'brand as merk,').replace('records.installaties', 'records.branded')}`,
    /GENERATED ALWAYS/,
  ],
  ['55000', (definition) => `${view} ${definition} limit 9`, /not updatable/],
  [
    '42P01',
    () => 'alter view gateway.logboeken_write rename to away',
    /is missing/,
    'alter view gateway.away rename to logboeken_write',
  ],
];

for (const [code, harm, advice, heal] of misfits) {
  const isReleased = heal !== undefined;
  const answer = isReleased ? '503, as during a release of the app,' : '500';
  test(`a write that the database refuses with ${code} is a ${answer} whose event says how to correct the database`, async (t) => {
    const { database } = t.context;
    const { client, log, gateway } = await database.gateway(); // one that has not looked at the database again yet
    const found = await database.primary.query("select pg_get_viewdef('gateway.installaties_write') as text");
    const definition = found.rows[0].text.replace(/;$/, '');
    const write = { customerId: await customerOf(database), naam: 'Koelcel', merk: 'Daikin' };
    const key = newKey();
    await database.primary.query(harm(definition));
    const refused = await post(client, write, { key });
    t.deepEqual(
      [refused.status, codeOf(refused), refused.headers['retry-after']],
      isReleased ? [503, 'primary_unavailable', '2'] : [500, 'internal', undefined],
    );
    t.regex(refused.text, isReleased ? /does not fit this resource now/ : /is misconfigured; retrying will not help/);
    const line = log()
      .split('\n')
      .findLast((each) => each.includes('database_unfit'));
    const event = JSON.parse(line ?? '{}');
    t.like(event, { level: 'error', code, requestId: refused.headers['x-request-id'] });
    t.regex(event.correction, advice);
    const metrics = await (await fetch(`${gateway.opsUrl}/metrics`)).text();
    t.true(metrics.includes(`gateway_database_unfit_total{code="${code}"} 1\n`));
    await database.primary.query(heal ?? `${walled} ${definition} with cascaded check option`);
    const succeeds = async () => (await post(client, write, { key })).status === 201; // it is refused until the gateway looks again
    await eventually(t, 'the same request succeeds after the correction', succeeds);
  });
}

test('writes go on, each once, when DDL changes the rows of their prepared statements', async (t) => {
  const { database, client, log } = t.context;
  const customerId = await customerOf(database);
  const records = await Promise.all(Array.from({ length: 12 }, () => created(client, { customerId, naam: 'Koelcel' })));
  /** Changes the version of each record, which the same number of changes had before. */
  const change = (record: (typeof records)[number], omschrijving: string, changes: number) =>
    patch(client, record.id, etagOf(record, changes), { omschrijving });
  await Promise.all(records.map((each) => change(each, 'before', 0))); // every connection has prepared the statement that reads the row
  await database.primary.query(`do $$ declare definition text := rtrim(pg_get_viewdef('gateway.installaties_write'), ';'); begin
    drop view gateway.installaties_write;
    execute '${view} ' || replace(definition, 'koudemiddel_gwp,', 'koudemiddel_gwp::bigint as koudemiddel_gwp,') || ' with check option';
    alter view gateway.installaties_write owner to gateway_owner;
    alter view gateway.installaties_write alter workspace_id set default gateway.workspace()::uuid;
    grant select, insert, update on gateway.installaties_write to gateway_writer;
  end $$`);
  // One at a time: a change whose repetitions met other connections with such a plan would run out of attempts.
  for (const record of records) t.is((await change(record, 'after', 1)).status, 200);
  t.regex(log(), /"code":"0A000","msg":"primary_failed"/);
  const { rows } = await database.primary.query(
    "select version::int, count(*)::int as count from app.installaties where omschrijving = 'after' group by version",
  );
  t.deepEqual(rows, [{ version: (records[0]?.version ?? 0) + 2, count: 12 }]);
});

test('a database error that quotes a stored value leaves no trace of the value in log and answer', async (t) => {
  const { database, client, log } = t.context;
  const { rows } = await database.primary.query("select pg_get_viewdef('records.installaties') as text");
  const definition = (rows[0] as { text: string }).text.replace(/;$/, '');
  const value = 'Koelcel mevrouw Jansen';
  await database.primary.query('update app.installaties set naam = $1', [value]);
  await database.primary.query(
    `create or replace view records.installaties as ${definition} where naam::uuid is not null`,
  );
  t.teardown(() => database.primary.query(`create or replace view records.installaties as ${definition}`));
  await database.caughtUp();

  const reply = await client.get('/installaties');
  t.is(reply.status, 500);
  t.is(reply.json<{ code: string }>().code, 'internal');
  t.false(reply.text.includes('Jansen'));
  const lines = log().split('\n');
  const failed = JSON.parse(lines.findLast((line) => line.includes('request_failed')) as string);
  t.like(failed, { code: '22P02', routine: 'string_to_uuid', message: undefined });
  t.regex(failed.stack, /^ {4}at /);
  t.false(log().includes('Jansen'));
});

test('a value that its column cannot hold is a fault of the body, with its name where no other fits', async (t) => {
  const { database, client } = t.context;
  const { primary } = database;
  const given = { customerId: await customerOf(database), naam: 'Koelcel' };
  const record = await created(client, given);
  await primary.query(`create function app.narrow() returns trigger language plpgsql as $$
    declare short varchar(5) := new.merk; small smallint := new.bouwjaar * 20;
    begin return new; end $$`);
  await primary.query(
    'create trigger narrow before insert or update on app.installaties for each row execute function app.narrow()',
  );
  const refused: [object, string][] = [
    [{ merk: 'Mitsubishi' }, ' too_long'], // the name is a text, too
    [{ bouwjaar: 2001 }, '/bouwjaar out_of_range'],
  ];
  for (const [members, fault] of refused) {
    const reply = await post(client, { ...given, ...members });
    t.is(reply.status, 400);
    t.deepEqual(faultsOf(reply), [fault]);
    t.false(reply.text.includes('Mitsubishi'));
  }
  const merk = { merk: 'Mitsubishi' };
  t.deepEqual(faultsOf(await patch(client, record.id, etagOf(record), merk)), ['/merk too_long']);
  await primary.query('drop trigger narrow on app.installaties');
  t.is((await patch(client, record.id, etagOf(record), merk)).status, 200);
});

test('an id that the app took is no fault of the body', async (t) => {
  const { database, client, log } = t.context;
  const { primary } = database;
  const given = { customerId: await customerOf(database), naam: 'twice' };
  await primary.query('create unique index "Installatie_pkey" on app.installaties (naam) where naam = $$twice$$');
  await created(client, given);
  t.is((await post(client, given)).status, 500);
  t.true(log().includes('"object":"app.installaties Installatie_pkey"'));
  await primary.query('drop index app."Installatie_pkey"');
});
