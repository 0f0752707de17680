import { setTimeout as sleep } from 'node:timers/promises';
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

const slowFindToken = `alter function gateway.find_token(bytea) rename to find_token_at_once;
  create function gateway.find_token(hash bytea)
    returns table (token_id uuid, workspace_id text, scopes text, expires_at timestamptz, revoked_at timestamptz, name text)
    language sql stable security definer
    as $$ select found.* from gateway.find_token_at_once(hash) found, pg_sleep(0.5) $$;
  grant execute on function gateway.find_token(bytea) to gateway_reader;`;
const restoredFindToken = `drop function gateway.find_token(bytea);
  alter function gateway.find_token_at_once(bytea) rename to find_token;`;

test.serial('the look-up of a token in steady use is renewed before it ends: no request waits for it', async (t) => {
  const { database } = t.context;
  const { client } = await database.gateway({ tokenCacheMs: 3000 });
  const authMs = async (): Promise<number> => {
    const { status, headers } = await client.get('/klanten?perPage=1');
    t.is(status, 200);
    return Number(/auth;dur=([\d.]+)/.exec(headers['server-timing'] as string)?.[1]);
  };
  await database.primary.query(slowFindToken);
  try {
    await database.caughtUp();
    t.true((await authMs()) >= 500, 'the first request waits');
    const endMs = performance.now() + 4000;
    while (performance.now() < endMs) {
      t.true((await authMs()) < 400);
      await sleep(100);
    }
  } finally {
    await database.primary.query(restoredFindToken);
  }
});
