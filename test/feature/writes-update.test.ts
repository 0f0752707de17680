import { app } from '../support/app.js';
import { codeOf } from '../support/lists.js';
import { customerOf } from '../support/primary-side.js';
import { gatewayTest } from '../support/workspace.js';
import { created, etagOf, type Installation, patch } from '../support/writes.js';

const test = gatewayTest();
const full = {
  naam: 'Koelcel',
  omschrijving: 'oud',
  locatie: 'Kelder',
  merk: 'Daikin',
  type: 'X',
  serienummer: '1',
  bouwjaar: 2001,
  inbedrijfstelling: '2001-02-03',
};

test('PATCH changes the members given, leaves the others, and moves the version by one', async (t) => {
  const { client, database } = t.context;
  const before = await created(client, { ...full, customerId: await customerOf(database) });
  const reply = await patch(client, before.id, etagOf(before), { naam: 'Nieuw', bouwjaar: 2002 });
  t.is(reply.status, 200);
  const { updatedAt, ...after } = reply.json<Installation>();
  const { updatedAt: updatedBefore, ...rest } = before;
  t.deepEqual(after, { ...rest, naam: 'Nieuw', bouwjaar: 2002, version: before.version + 1 } as never);
  t.true((updatedAt as string) > (updatedBefore as string));
  t.is(reply.headers.etag, etagOf(before, 1));
  t.is(reply.headers.location, undefined);
});

test('null clears every nullable member, and only those', async (t) => {
  const { client, database } = t.context;
  const before = await created(client, { ...full, customerId: await customerOf(database) });
  const { naam: _, ...nullable } = full;
  const cleared = Object.fromEntries(Object.keys(nullable).map((name) => [name, null]));
  const reply = await patch(client, before.id, etagOf(before), cleared);
  t.like(reply.json<Installation>(), { ...cleared, naam: 'Koelcel', version: before.version + 1 });
  const refused = await patch(client, before.id, etagOf(before, 1), { naam: null, customerId: null });
  t.is(refused.status, 400);
});

test('an empty PATCH, and a PATCH with the stored values, change nothing and log nothing', async (t) => {
  const { client, database } = t.context;
  const before = await created(client, { ...full, customerId: await customerOf(database) });
  const { id, version, createdAt, updatedAt, customerId } = before;
  for (const body of [{}, { naam: full.naam }, { ...full, customerId }]) {
    const reply = await patch(client, id, etagOf(before), body);
    t.is(reply.status, 200);
    t.like(reply.json<Installation>(), { version, createdAt, updatedAt });
    t.is(reply.headers.etag, etagOf(before));
  }
  const { rows } = await database.primary.query('select actie from probe.logboeken where entiteit_id = $1', [id]);
  t.deepEqual(rows, [{ actie: app.log.created }]);
});

test('an installation can be given to another customer of the workspace, and to no other', async (t) => {
  const { client, database } = t.context;
  const before = await created(client, { ...full, customerId: await customerOf(database) });
  const { rows } = await database.primary.query('select max(id::text) id from probe.klanten where workspace_id = $1', [
    database.workspaces[0]?.id,
  ]);
  const reply = await patch(client, before.id, etagOf(before), { customerId: rows[0].id });
  t.is(reply.json<Installation>().customerId, rows[0].id);
  const refused = await patch(client, before.id, etagOf(before, 1), { customerId: await customerOf(database, 1) });
  t.is(codeOf(refused), 'invalid_request');
});

test('a PATCH leaves columns that only the app may change as they are', async (t) => {
  const { client, database } = t.context;
  const before = await created(client, { ...full, customerId: await customerOf(database) });
  const owned = {
    koudemiddel: 'R32',
    koudemiddelGwp: 675,
    vullingKg: 2.4,
    interneNotities: 'geheim',
    lmraVerplicht: true,
  };
  await database.primary.query(
    `update probe.installaties set koudemiddel = 'R32', koudemiddel_gwp = 675, vulling_kg = 2.4, interne_notities = 'geheim',
      lmra_verplicht = true${app.moves} where id = $1`,
    [before.id],
  );
  const reply = await patch(client, before.id, etagOf(before, 1), { naam: 'anders', locatie: null });
  t.like(reply.json<Installation>(), { ...owned, naam: 'anders', version: before.version + 2 });
});

test('an id of another workspace, an unknown id and a malformed id get the same 404', async (t) => {
  const { client, database } = t.context;
  const token = await database.token({ workspace: 1 });
  const foreign = await created(client, { naam: 'x', customerId: await customerOf(database, 1) }, { token });
  const ids = [foreign.id, app.unknownId, 'x', '%00', foreign.id.toUpperCase()];
  for (const id of ids) {
    const reply = await patch(client, id, '"v1"', { naam: 'gekaapt' });
    const { requestId: _, ...problem } = reply.json<Record<string, unknown>>();
    t.deepEqual(problem, {
      type: 'urn:workspace-data-api:problem:not_found',
      title: 'Not found',
      status: 404,
      detail: 'There is no such record.',
      code: 'not_found',
    });
    t.is(reply.headers.etag, undefined);
  }
  t.is((await client.get(`/installaties/${foreign.id}`, { token })).json<Installation>().naam, 'x');
});

test('a merge patch is sent under its own media type as well', async (t) => {
  const { client, database } = t.context;
  const before = await created(client, { ...full, customerId: await customerOf(database) });
  const headers = { 'content-type': 'application/merge-patch+json; charset=UTF-8' };
  t.is((await patch(client, before.id, etagOf(before), { naam: 'y' }, { headers })).status, 200);
});
