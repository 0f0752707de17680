import { customerPlain } from '../../demo/seed/plain.js';
import { secondSizesOf, sizesOf } from '../../demo/seed/sizes.js';
import { appName, type Customer, customerOf, undecodable } from '../support/app.js';
import { records } from '../support/lists.js';
import { clonedRows } from '../support/template.js';
import { gatewayTest } from '../support/workspace.js';

const test = gatewayTest();

type Klant = Customer & { readonly createdAt: string; readonly updatedAt: string };

for (const workspace of [0, 1]) {
  test(`every customer of workspace ${workspace + 1} comes out readable and equal to what the seed put in`, async (t) => {
    const { client, database } = t.context;
    const token = await database.token({ workspace });
    const sizes = sizesOf(clonedRows[appName]);
    const count = (workspace === 0 ? sizes : secondSizesOf(sizes)).customers;
    const wanted = new Map(Array.from({ length: count }, (_, i) => customerOf(workspace, i + 1)).map((k) => [k.id, k]));
    const found = await records<Klant>(client, '/klanten?perPage=250', { token });
    t.is(found.length, count);
    for (const { createdAt: _, updatedAt: __, ...klant } of found)
      t.deepEqual(klant, wanted.get(klant.id) as typeof klant);
  });
}

test('no other value of a customer is shown: no e-mail, no telephone', async (t) => {
  const { text } = await t.context.client.get('/klanten?perPage=1000');
  t.false(/enc:v/i.test(text));
  for (let n = 1; n <= sizesOf(clonedRows[appName]).customers; n++) {
    const { email, telefoon } = customerPlain(0, n);
    t.false(text.includes(email ?? '@') || text.includes(telefoon ?? '@'), `customer ${n}`);
  }
});

test('a value that cannot be decoded is null in the detail as well, and fails nothing else', async (t) => {
  const { client } = t.context;
  for (const { id, n } of undecodable) {
    const reply = await client.get(`/klanten/${id}`);
    t.is(reply.status, 200);
    const { createdAt: _, updatedAt: __, ...klant } = reply.json<Klant>();
    t.deepEqual(klant, customerOf(0, n));
    t.is(Object.keys(klant).at(-1), 'decodeErrors');
  }
});

test('a value that cannot be decoded is counted, and the log names row, field and reason but not the value', async (t) => {
  const { client, gateway, log } = await t.context.database.gateway();
  await client.get('/klanten?perPage=1000');
  const lines = log()
    .split('\n')
    .filter((line) => line.includes('decode_failed'))
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  const failed = undecodable.flatMap(({ id, pointers }) => pointers.map((pointer) => `${id} ${pointer}`));
  const named = lines.map(({ row, pointer }) => `${row} ${pointer}`);
  t.deepEqual(
    named.filter((each) => !failed.includes(each)),
    [],
  );
  const pointers = [...new Set(undecodable.flatMap((each) => each.pointers))].sort();
  t.deepEqual([...new Set(lines.map(({ pointer }) => pointer as string))].sort(), pointers);
  const { rows } = await t.context.database.primary.query<Record<string, unknown>>(
    'select to_jsonb(k) - array[$2, $3, $4] as stored from probe.klanten k where id = any ($1)',
    [undecodable.map(({ id }) => id), 'id', 'workspace_id', 'vault_key'],
  );
  t.is(rows.length, undecodable.length);
  for (const value of rows.flatMap(({ stored }) => Object.values(stored as object)))
    if (value !== null) t.false(log().includes(String(value)));
  const metrics = await (await fetch(`${gateway.opsUrl}/metrics`)).text();
  for (const pointer of pointers) {
    const count = undecodable.filter((each) => each.pointers.includes(pointer)).length;
    const counted = [
      ...metrics.matchAll(
        new RegExp(
          `^gateway_decode_errors_total\\{resource="klanten",pointer="${pointer}",reason="\\w+"\\} (\\d+)$`,
          'gm',
        ),
      ),
    ];
    t.is(
      counted.reduce((sum, [, value]) => sum + Number(value), 0),
      count,
      pointer,
    );
  }
});
