import { createHash } from 'node:crypto';
import { cursorContext, encodeCursor } from '../../src/read/page-ends.js';
import { app } from '../support/app.js';
import { faultsOf, listNames, page, records } from '../support/lists.js';
import { gatewayTest } from '../support/workspace.js';

const test = gatewayTest();
const refused = ['cursor invalid_cursor'];

for (const list of listNames) {
  test(`${list}: a cursor continues where its page ended, with any page size`, async (t) => {
    const { client } = t.context;
    const all = await records(client, `/${list}?perPage=100`);
    const { pagination } = await page(client, `/${list}?perPage=17`);
    for (const perPage of [1, 5, 100]) {
      const { data } = await page(client, `/${list}?perPage=${perPage}&cursor=${pagination.endCursor}`);
      t.deepEqual(data, all.slice(17, 17 + perPage));
    }
  });

  test(`${list}: a damaged cursor is refused, wherever the damage is`, async (t) => {
    const { client } = t.context;
    const { endCursor } = (await page(client, `/${list}?perPage=3`)).pagination;
    const at = (i: number, by: string) => endCursor.slice(0, i) + by + endCursor.slice(i + 1);
    const flipped = [...endCursor].map((was, i) => at(i, was === 'A' ? 'B' : 'A'));
    const others = [
      endCursor.slice(1),
      endCursor.slice(0, -1),
      endCursor.slice(0, 16),
      `${endCursor}A`,
      `${endCursor}AAAA`,
      `${endCursor}%3D`,
      `${endCursor}%20`,
      'x',
      '%00',
      '%F0%9F%98%80',
      'null',
      '../../etc/passwd',
      encodeURIComponent("'; drop table probe.klanten; --"),
      'A'.repeat(3000),
    ];
    for (const cursor of [...flipped, ...others]) {
      const reply = await client.get(`/${list}?cursor=${cursor}`);
      t.is(reply.status, 400, cursor);
      t.deepEqual(faultsOf(reply), refused);
    }
  });

  test(`${list}: a cursor of another list or of another workspace is refused`, async (t) => {
    const { client, database } = t.context;
    const other = await database.token({ workspace: 1 });
    const { endCursor } = (await page(client, `/${list}?perPage=3`)).pagination;
    const foreign = await client.get(`/${list}?cursor=${endCursor}`, { token: other });
    t.is(foreign.status, 400);
    t.deepEqual(faultsOf(foreign), refused);
    for (const elsewhere of listNames.filter((name) => name !== list)) {
      t.deepEqual(faultsOf(await client.get(`/${elsewhere}?cursor=${endCursor}`)), refused);
    }
  });

  test(`${list}: forged keys are refused, or seek; they never break anything`, async (t) => {
    const { client, database } = t.context;
    const context = cursorContext(database.workspaces[0]?.id as string, list, {});
    const impossible = ['', 'x', 'infinity', "'", '\0', '2026-02-30 00:00:00+00', '294277-01-01 00:00:00+00'];
    const real = ['2026-01-01', '2026-01-01 00:00:00+00', '-1', '00000000-0000-4000-8000-000000000000'];
    const extreme = [
      '-infinity',
      '5874897-12-31',
      '4713-01-01 BC',
      '294276-12-31 23:59:59.999999+00',
      '0001-01-01 00:00:00+00',
      '9999-12-31 23:59:59.999999+00',
      '9223372036854775808',
      '9999-12-31',
    ];
    const parts = [...impossible, ...real, ...extreme];
    for (const first of parts) {
      for (const second of parts) {
        const reply = await client.get(
          `/${list}?perPage=1&cursor=${encodeCursor(context, { key: [first, second], asOfMs: null })}`,
        );
        t.true(reply.status === 200 || reply.status === 400, `${first} ${second}: ${reply.status}`);
      }
    }
    const forge = (payload: string | Buffer) => {
      const digest = createHash('sha256').update(context).update('\0').update(payload).digest().subarray(0, 12);
      return Buffer.concat([digest, Buffer.from(payload)]).toString('base64url');
    };
    for (const payload of [
      '\n',
      '\n\n',
      'a\nb\nc',
      '-1',
      '1e3',
      '1234567890123456',
      '1\n2\n3\n4',
      Buffer.from([0xff, 0x0a, 0xfe]),
      'x'.repeat(1000),
    ]) {
      t.is((await client.get(`/${list}?cursor=${forge(payload)}`)).status, 400);
    }
  });
}

test('a cursor with a moment in the future is served like a cursor of now', async (t) => {
  const { client, database } = t.context;
  const { pagination } = await page(client, '/klanten?perPage=3');
  const lines = Buffer.from(pagination.endCursor, 'base64url').subarray(12).toString().split('\0');
  const context = cursorContext(database.workspaces[0]?.id as string, 'klanten', {});
  const cursor = encodeCursor(context, { key: lines.slice(1) as [string, string], asOfMs: Date.now() + 86_400_000 });
  const startedMs = performance.now();
  const forged = await page(client, `/klanten?perPage=3&cursor=${cursor}`);
  t.true(performance.now() - startedMs < 2500);
  t.deepEqual(forged.data, (await page(client, `/klanten?perPage=3&cursor=${pagination.endCursor}`)).data);
});

test('a cursor belongs to the filters it came with', async (t) => {
  const { client } = t.context;
  const filters = `entity=${app.log.order}&from=2020-01-01`;
  const { endCursor } = (await page(client, `/logboeken?${filters}&perPage=3`)).pagination;
  t.is((await client.get(`/logboeken?from=2020-01-01&entity=${app.log.order}&cursor=${endCursor}`)).status, 200);
  for (const other of [
    '',
    `entity=${app.log.order}`,
    `entity=${app.log.customer}&from=2020-01-01`,
    `entity=${app.log.order}&from=2020-01-02`,
    `${filters}&to=2030-01-01`,
  ]) {
    t.deepEqual(faultsOf(await client.get(`/logboeken?${other}&cursor=${endCursor}`)), refused, other);
  }
});

test('page and cursor cannot be given together', async (t) => {
  const { client } = t.context;
  const { endCursor } = (await page(client, '/klanten?perPage=3')).pagination;
  const reply = await client.get(`/klanten?page=1&cursor=${endCursor}`);
  t.is(reply.status, 400);
  t.deepEqual(faultsOf(reply), ['cursor conflicting_parameters']);
});

test('the cursor of an empty page starts at the beginning once there is something', async (t) => {
  const { client, database } = t.context;
  const filter = 'entity=nieuwsoort';
  const { endCursor } = (await page(client, `/logboeken?${filter}`)).pagination;
  await database.primary.query(
    `insert into probe.logboeken (workspace_id, tijdstip, entiteit, entiteit_id, actie, actor_type)
     values ($1, '2024-01-01', 'nieuwsoort', '1', 'aangemaakt', 'systeem')`,
    [database.workspaces[0]?.id],
  );
  await database.caughtUp();
  t.is((await page(client, `/logboeken?${filter}&cursor=${endCursor}`)).data.length, 1);
});
