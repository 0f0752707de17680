import { customerOf } from '../support/primary-side.js';
import { eventually, gatewayTest } from '../support/workspace.js';
import { post } from '../support/writes.js';

const test = gatewayTest().serial;
const path = '/installaties?perPage=3';

for (const [setting, value, fault] of [
  ['timezone', 'Europe/Amsterdam', 'TimeZone is Europe/Amsterdam, not UTC'],
  ['datestyle', 'SQL, DMY', 'DateStyle is SQL, DMY, not ISO'],
] as const)
  test(`no read has another hour or day when ${setting} of the role is changed while the gateway serves`, async (t) => {
    const { database, client, gateway } = t.context;
    const { name, primary, replica } = database;
    const before = await client.get(path);
    const newLogins = async (): Promise<void> => {
      await database.caughtUp();
      await replica.query(
        `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}' and usename = 'gateway_reader'`,
      );
    };
    const reasons = async (): Promise<string> => (await fetch(`${gateway.opsUrl}/readyz`)).text();
    const records = (text: string): string => text.slice(0, text.indexOf('"pagination"')); // cursors differ

    await primary.query(`alter role gateway_reader in database ${name} set ${setting} = '${value}'`);
    await newLogins();
    await eventually(t, 'the reason in /readyz', async () => {
      const { status, text } = await client.get(path);
      t.is(status === 200 ? records(text) : '', status === 200 ? records(before.text) : '');
      return status === 503 && (await reasons()).includes(`${fault}: set it for the role`);
    });

    await primary.query(`alter role gateway_reader in database ${name} reset ${setting}`);
    await newLogins();
    await eventually(t, 'a read', async () => (await client.get(path)).status === 200);
    t.is(records((await client.get(path)).text), records(before.text));
  });

test('no write answers with another hour when timezone of the writer is changed while the gateway serves', async (t) => {
  const { database, client } = t.context;
  const { name, primary } = database;
  const body = { naam: 'x', customerId: await customerOf(database) };
  const setZone = async (change: string): Promise<void> => {
    await primary.query(`alter role gateway_writer in database ${name} ${change}`);
    await primary.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}' and usename = 'gateway_writer'`,
    );
  };
  const write = async (): Promise<number> => {
    const { status, text } = await post(client, body);
    if (status === 201) t.true(Math.abs(Date.parse(JSON.parse(text).createdAt) - Date.now()) < 600_000, text);
    return status;
  };
  t.is(await write(), 201);
  await setZone("set timezone = 'Europe/Amsterdam'");
  await eventually(t, 'a refusal', async () => (await write()) === 503);
  t.is(await write(), 503);
  await setZone('reset timezone');
  await eventually(t, 'a write', async () => (await write()) === 201);
});
