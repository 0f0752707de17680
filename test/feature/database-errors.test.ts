import { gatewayTest } from '../support/workspace.js';
import { post } from '../support/writes.js';

const test = gatewayTest();

test.serial(
  'a database error that quotes a written value leaves no trace of the value in log and answer',
  async (t) => {
    const { database, client, log } = t.context;
    const naam = 'Koelcel meneer Pietersen';
    await database.primary.query(
      `alter table app.installaties add constraint short check (naam not like '%Pietersen%')`,
    );
    const { rows } = await database.primary.query('select id from app.klanten where workspace_id = $1 limit 1', [
      database.workspaces[0]?.id,
    ]);
    const reply = await post(client, { customerId: rows[0].id, naam });
    t.is(reply.status, 500);
    t.false(reply.text.includes('Pietersen'));
    t.true(log().includes('"constraint":"short"'));
    t.false(log().includes('Pietersen'));
  },
);

test.serial('a database error that quotes a stored value leaves no trace of the value in log and answer', async (t) => {
  const { database, client, log } = t.context;
  const { rows } = await database.primary.query("select pg_get_viewdef('gateway.installaties') as text");
  const definition = (rows[0] as { text: string }).text.replace(/;$/, '');
  const value = 'Koelcel mevrouw Jansen';
  await database.primary.query('update app.installaties set naam = $1', [value]);
  await database.primary.query(
    `create or replace view gateway.installaties as ${definition} and naam::uuid is not null`,
  );
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
