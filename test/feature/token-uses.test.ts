import { commandLine, connections } from '../support/command-line.js';
import { eventually, gatewayTest } from '../support/workspace.js';

const test = gatewayTest({ tokenUsesIntervalMs: 100, tokenCacheMs: 0 });

interface Listed {
  readonly id: string;
  readonly lastUsedAt: string | null;
}

test.serial('tokens list shows the last use of each token, which is noted once a minute', async (t) => {
  const { client, token, database } = t.context;
  const used = await database.token();
  await database.token();
  const expired = await database.token({ expiresAt: new Date(Date.now() - 1000) });
  const uses = async (): Promise<Date[]> =>
    (await database.primary.query('select used_at from gateway.token_uses order by used_at')).rows.map(
      ({ used_at }) => used_at,
    );
  const read = (of: string) => client.get('/klanten?perPage=1', { token: of });
  t.is((await read(used)).status, 200);
  t.is((await read(expired)).status, 401);
  await eventually(t, 'a note', async () => (await uses()).length === 1);
  const [first] = await uses();
  await read(used);
  await read(token);
  await eventually(t, 'the note of the second token', async () => (await uses()).length === 2);
  t.deepEqual((await uses())[0], first, 'the first note is not renewed within a minute');

  const { stdout } = await commandLine(['tokens', 'list', '--json'], connections(database));
  const tokens = (JSON.parse(stdout) as Listed[]).filter(({ lastUsedAt }) => lastUsedAt !== null);
  t.is(tokens.length, 2);
  t.true(tokens.every(({ lastUsedAt }) => Math.abs(Date.parse(lastUsedAt as string) - Date.now()) < 60_000));
  t.regex(
    (await commandLine(['tokens', 'list'], connections(database))).stdout,
    /^ID +STATE +CREATED +EXPIRES +LAST USED /,
  );
});

test.serial('the writer notes no use of a token that is not there, and cannot write the table itself', async (t) => {
  const { database } = t.context;
  await database.primary.query(`begin; set local role gateway_writer`);
  await database.primary.query(`select gateway.note_token_uses(array[gen_random_uuid()])`);
  const direct = database.primary.query(`insert into gateway.token_uses values (gen_random_uuid(), now())`);
  t.regex((await t.throwsAsync(direct)).message, /permission denied/);
  await database.primary.query('rollback');
});
