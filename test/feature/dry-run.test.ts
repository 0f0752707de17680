import assert from 'node:assert/strict';
import fc from 'fast-check';
import { app } from '../support/app.js';
import type { ApiReply } from '../support/client.js';
import { codeOf, faultsOf } from '../support/lists.js';
import { customerOf } from '../support/primary-side.js';
import { gatewayTest, type TestContext } from '../support/workspace.js';
import { created, etagOf, type Installation, newKey, patch, post } from '../support/writes.js';

const test = gatewayTest();

/** One trigger changes a value, one refuses at once, and two rules speak at COMMIT. */
test.serial.before(async (t) => {
  const { naam, merk, locatie } = app.logged;
  await (t.context as TestContext).database.primary.query(`
    create table probe_places (place text primary key); insert into probe_places values ('Kelder');
    alter table ${app.installations} add constraint known_place foreign key (${locatie}) references probe_places
      deferrable initially deferred not valid;
    create function app_rule() returns trigger language plpgsql as $$
      begin
        if new.${naam} = tg_argv[0] then raise exception 'refused'; end if;
        new.${merk} := upper(new.${merk});
        return new;
      end $$;
    create trigger a_rule before insert or update on ${app.installations} for each row execute function app_rule('nooit');
    create constraint trigger late after insert or update on ${app.installations} deferrable initially deferred
      for each row execute function app_rule('laat')`);
});

/** Reads everything that a write adds to. */
async function stored({ database }: TestContext): Promise<unknown> {
  const tables = [app.installations, 'probe.logboeken', 'gateway.idempotency'];
  const counts = tables.map((table) => `(select count(*) from ${table})`).join(', ');
  return (await database.primary.query({ text: `select ${counts}`, rowMode: 'array' })).rows[0];
}

const mostly = <T>(right: fc.Arbitrary<T>, wrong: fc.Arbitrary<T>): fc.Arbitrary<T> =>
  fc.oneof({ weight: 12, arbitrary: right }, { weight: 1, arbitrary: wrong });

function bodies(customer: string, requiredKeys: ('customerId' | 'naam')[]): fc.Arbitrary<object> {
  const body = fc.record(
    {
      customerId: mostly<unknown>(fc.constant(customer), fc.constantFrom(app.unknownId, 'x', 7, null)),
      naam: mostly<unknown>(fc.string({ minLength: 1 }), fc.constantFrom('nooit', 'laat', '', 'x'.repeat(201), null)),
      locatie: mostly<unknown>(fc.constantFrom('Kelder', null), fc.constantFrom('Maan', 'a\0b')),
      merk: fc.option(fc.string()),
      bouwjaar: mostly<unknown>(fc.integer({ min: 1900, max: 2100 }), fc.constantFrom(1, 1.5, '2000', null)),
      inbedrijfstelling: mostly(fc.constant('2020-02-29'), fc.constant('2021-02-29')),
    },
    { requiredKeys },
  );
  return mostly<object>(
    body,
    body.map((known) => ({ ...known, version: 3, kleur: 'wit' })),
  );
}

/** The answer without what the database draws, and without what belongs to the request. */
function told(reply: ApiReply): unknown {
  const { id, createdAt, updatedAt, requestId, ...same } = reply.json<Record<string, unknown>>();
  return { status: reply.status, same };
}

test.serial('500 creates and 500 changes: a dry run answers as the write after it, and stores nothing', async (t) => {
  const { client, database } = t.context;
  const customerId = await customerOf(database);
  let target = await created(client, { naam: 'begin', customerId });
  const seen = new Map<string, number>();
  const compare = async (send: (options: { query?: string }) => Promise<ApiReply>): Promise<ApiReply> => {
    const before = await stored(t.context);
    const tried = await send({ query: '?dryRun=true' });
    assert.deepEqual(await stored(t.context), before);
    const { etag, location, 'dry-run': mark } = tried.headers;
    assert.deepEqual([mark, location, etag === undefined], ['true', undefined, tried.status !== 412]);
    const real = await send({});
    assert.deepEqual(told(tried), told(real));
    for (const fault of [`${real.status}`, ...(real.status < 300 ? [] : faultsOf(real))])
      seen.set(fault, (seen.get(fault) ?? 0) + 1);
    return real;
  };
  const writes = fc.tuple(bodies(customerId, ['customerId', 'naam']), bodies(customerId, []), fc.nat({ max: 12 }));
  const holds = fc.asyncProperty(writes, async ([create, change, age]) => {
    const made = await compare((options) => post(client, create, options));
    if (made.status === 201) target = made.json<Installation>();
    const tag = etagOf(target, age === 0 ? 1 : 0);
    const changed = await compare((options) => patch(client, target.id, tag, change, options));
    if (changed.status === 200) target = changed.json<Installation>();
  });
  await fc.assert(holds, { numRuns: 500 });
  t.log(Object.fromEntries(seen));
  const outcomes = '201,200,400,412,/customerId unknown_reference,/locatie unknown_reference, invalid';
  for (const outcome of outcomes.split(',')) t.true((seen.get(outcome) ?? 0) > 0, outcome);
});

test('a dry run neither takes a key nor meets a stored one', async (t) => {
  const { client, database } = t.context;
  const body = { naam: 'x', customerId: await customerOf(database) };
  const key = newKey();
  const dry = { key, query: '?dryRun=true' };
  t.is((await post(client, body, dry)).status, 201);
  const first = await post(client, body, { key });
  t.deepEqual([first.status, first.headers['idempotent-replayed']], [201, undefined]);
  for (const naam of ['x', 'another body']) {
    const tried = await post(client, { ...body, naam }, dry);
    t.deepEqual([tried.status, tried.headers['idempotent-replayed']], [201, undefined]);
    t.not(tried.json<Installation>().id, first.json<Installation>().id);
  }
  t.is((await post(client, body, { key })).text, first.text);
});

test('a dry run needs the headers of the write, and dryRun has no other value than true', async (t) => {
  const { client, database } = t.context;
  const body = { naam: 'x', customerId: await customerOf(database) };
  const record = await created(client, body);
  const send = (method: string, path: string, headers = {}) =>
    client.request(method, path, { body: method === 'POST' ? body : {}, headers });
  const wanting = [
    await send('POST', '/installaties?dryRun=true'),
    await send('PATCH', `/installaties/${record.id}?dryRun=true`, { 'idempotency-key': 'a' }),
  ];
  t.deepEqual(wanting.map(codeOf), ['idempotency_key_missing', 'precondition_required']);
  for (const reply of wanting) t.is(reply.headers['dry-run'], 'true');
  for (const value of ['false', 'TRUE', '1', '', 'true&dryRun=true']) {
    const reply = await post(client, body, { query: `?dryRun=${value}` });
    t.deepEqual(
      [reply.status, faultsOf(reply)[0]?.split(' ')[0], reply.headers['dry-run']],
      [400, 'dryRun', undefined],
    );
  }
  t.is((await client.get('/installaties?dryRun=true')).status, 400);
});
