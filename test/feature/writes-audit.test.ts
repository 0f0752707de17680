import { randomBytes } from 'node:crypto';
import { encryptValue } from '../../demo/seed/encrypt.js';
import { app } from '../support/app.js';
import type { ApiReply } from '../support/client.js';
import { records } from '../support/lists.js';
import { customerOf } from '../support/primary-side.js';
import { gatewayTest, type TestContext } from '../support/workspace.js';
import { created, etagOf, type Installation, newKey, patch, post } from '../support/writes.js';

const test = gatewayTest();

interface Entry {
  readonly entity: string;
  readonly entityId: string;
  readonly actie: string;
  readonly actor: { readonly type: string; readonly id: string };
  readonly tijdstip: string;
  readonly wijzigingen: { readonly veld: string; readonly oud: unknown; readonly nieuw: unknown }[];
}

/** The log entries of an installation as the API gives them. */
async function entriesOf({ client, database }: TestContext, id: string): Promise<Entry[]> {
  await database.caughtUp();
  return records<Entry>(client, `/logboeken?entity=${app.log.installation}&entityId=${id}`);
}

test('creating writes one entry: the token as actor, and each field given with its value', async (t) => {
  const { client, database, token } = t.context;
  const customerId = await customerOf(database);
  const body = { naam: 'Koelcel', customerId, bouwjaar: 2019, inbedrijfstelling: '2020-02-29', merk: null };
  const { id } = await created(client, body);
  const { rows } = await database.primary.query<{ id: string }>(
    'select id from gateway.api_tokens where token_hash = sha256($1)',
    [Buffer.from(token)],
  );
  const [entry, ...others] = await entriesOf(t.context, id);
  t.deepEqual(others, []);
  const { tijdstip, wijzigingen, ...rest } = entry as Entry;
  t.like(rest, {
    entity: app.log.installation,
    entityId: id,
    actie: app.log.created,
    actor: { type: app.log.token, id: rows[0]?.id as string },
  });
  t.true(Math.abs(Date.now() - Date.parse(tijdstip)) < 10_000);
  t.deepEqual(
    Object.fromEntries(wijzigingen.map(({ veld, oud, nieuw }) => [veld, [oud, nieuw]])),
    Object.fromEntries<unknown[]>([
      [app.logged.bouwjaar, [null, 2019]],
      [app.logged.inbedrijfstelling, [null, '2020-02-29']],
      [app.logged.customerId, [null, customerId]],
      [app.logged.naam, [null, 'Koelcel']],
    ]),
  );
});

test('changing writes one entry with the old and the new values of the changed fields, as JSON of their types', async (t) => {
  const { client, database } = t.context;
  const customerId = await customerOf(database);
  const record = await created(client, { naam: 'Koelcel', customerId, bouwjaar: 2019, locatie: 'Kelder' });
  await patch(client, record.id, etagOf(record), { naam: 'Koelcel', bouwjaar: 2020, locatie: null, merk: 'Daikin' });
  const [, changed, ...others] = await entriesOf(t.context, record.id);
  t.deepEqual(others, []);
  t.is(changed?.actie, app.log.changed);
  t.deepEqual(
    Object.fromEntries((changed?.wijzigingen ?? []).map(({ veld, oud, nieuw }) => [veld, [oud, nieuw]])),
    Object.fromEntries<unknown[]>([
      [app.logged.bouwjaar, [2019, 2020]],
      [app.logged.locatie, ['Kelder', null]],
      [app.logged.merk, [null, 'Daikin']],
    ]),
  );
});

test('replays, refusals and empty changes write none', async (t) => {
  const { client, database } = t.context;
  const record = await created(client, { naam: 'x', customerId: await customerOf(database) });
  const key = newKey();
  await patch(client, record.id, etagOf(record), { naam: 'y' }, { key });
  await patch(client, record.id, etagOf(record), { naam: 'y' }, { key });
  await patch(client, record.id, etagOf(record), { naam: 'z' });
  await patch(client, record.id, etagOf(record, 1), { customerId: await customerOf(database, 1) });
  await patch(client, record.id, etagOf(record, 1), {});
  t.is((await entriesOf(t.context, record.id)).length, 2);
});

test('an encrypted value is shielded in the log under a field that is shown, however short it is', async (t) => {
  const { client, database } = t.context;
  const record = await created(client, { naam: 'Koelcel', customerId: await customerOf(database) });
  const merk = app.storedAs(encryptValue({ k: randomBytes(32) }, 'k', 2, ['any', 'place'], 'x'));
  t.is((await patch(client, record.id, etagOf(record), { merk, locatie: 'Kelder' })).status, 200);
  const [, changed] = await entriesOf(t.context, record.id);
  t.deepEqual(changed?.wijzigingen.toSorted((a, b) => a.veld.length - b.veld.length) as object[], [
    { veld: app.logged.merk, afgeschermd: true },
    { veld: app.logged.locatie, oud: null, nieuw: 'Kelder' },
  ]);
});

test('a token without read:installaties gets back the writable members, the id, the version and the timestamps', async (t) => {
  const { client, database } = t.context;
  const token = await database.token({ scopes: ['write:installaties'] });
  const customerId = await customerOf(database);
  const shown = [
    'id',
    'customerId',
    'naam',
    'omschrijving',
    'locatie',
    'merk',
    'type',
    'serienummer',
    'bouwjaar',
    'inbedrijfstelling',
    'version',
    'createdAt',
    'updatedAt',
  ];
  const key = newKey();
  const replies = [
    await post(client, { naam: 'x', customerId }, { token, key }),
    await post(client, { naam: 'x', customerId }, { token, key }),
  ];
  const record = (replies[0] as ApiReply).json<Installation>();
  const { id } = record;
  await database.primary.query(
    `update probe.installaties set interne_notities = 'geheim', koudemiddel = 'R32'${app.moves} where id = $1`,
    [id],
  );
  replies.push(
    await patch(client, id, etagOf(record, 1), { naam: 'y' }, { token }),
    await patch(client, id, etagOf(record, 2), {}, { token }),
  );
  for (const reply of replies) {
    t.deepEqual(Object.keys(reply.json<object>()), shown);
    t.false(/geheim|R32/.test(reply.text));
  }
  t.is((await client.get(`/installaties/${id}`, { token })).status, 403);
});
