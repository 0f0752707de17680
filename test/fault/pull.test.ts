import { stat } from 'node:fs/promises';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { runAsAdmin } from '../../src/postgres/admin.js';
import { limitMs, until } from '../support/patience.js';
import { damages, danglingIn, type PulledCopies, pulledCopies, silentChanges, some } from '../support/pull/copies.js';
import { duckdbCopy, exported, type PulledCopy, postgresCopy, runPull, startPull } from '../support/pull/copy.js';

// A copy in PostgreSQL and in DuckDB beside a fresh one, after changes at the source, damage in the copy, and kills.

let all: PulledCopies;

test.before(async () => {
  all = await pulledCopies();
});
test.after.always(() => all?.stop());

const secondTableFails = `
  create function fail() returns event_trigger language plpgsql as $$ begin
    if exists (select from pg_event_trigger_ddl_commands() where object_identity = 'workspace_data.werkbonnen_uren') then
      raise 'no second table';
    end if;
  end $$;
  create event trigger fail on ddl_command_end when tag in ('CREATE TABLE') execute function fail()`;

async function assertEqual(t: ExecutionContext, ...how: Parameters<PulledCopies['differences']>): Promise<void> {
  t.deepEqual(await all.differences(...how), []);
}

test.serial('pull makes a copy that equals a second one, in files that only their owner can read', async (t) => {
  await assertEqual(t);
  t.is((await stat(join(all.folder, 'copy.duckdb'))).mode & 0o077, 0);
});

// Thousands of them, in any order: soak/pull-damage.
test.serial('a plain pull ends equal after changes that leave no trace in the row that shows them', async (t) => {
  for (const [name, change] of Object.entries(silentChanges))
    t.is((await all.setUp.sql(change, [all.workspace])).length, 1, name);
  await assertEqual(t);
});

const { 'the token is overwritten': ofToken, ...ofRows } = damages;
for (const [what, each] of Object.entries({ 'the token': [ofToken as string], rows: Object.values(ofRows) }))
  test.serial(`--verify ends equal after damage of ${what} in the copy`, async (t) => {
    for (const copy of all.copies) for (const damage of each) await copy.sql(damage);
    await assertEqual(t, ['--verify'], true);
  });

test.serial('pull that is killed with -9 again and again while the app writes ends with an equal copy', async (t) => {
  const writers = await all.writers();
  writers.resume();
  for (let i = 0; i < 3; i++)
    await Promise.all(all.copies.map((copy) => all.pull(copy, [], 300 + Math.random() * 1500)));
  await writers.pause();
  t.true(writers.changes() > 20);
  await assertEqual(t);
});

test.serial('no reference dangles after a run under writers', async (t) => {
  const writers = await all.writers();
  writers.resume();
  const [copy] = all.copies as [PulledCopy];
  for (let i = 0; i < 2; i++) {
    const run = await all.pull(copy);
    t.is(run.code, 0, run.stderr);
    t.is(await danglingIn(copy), 0);
  }
  await writers.pause();
});

test.serial('the change files of --changes make the same copy, whatever was killed', async (t) => {
  const to = duckdbCopy(join(all.folder, 'changes.duckdb'));
  const changes = join(all.folder, 'changes');
  for (let i = 0; i < 2; i++) await all.pull(to, ['--changes', changes], 300 + i * 400);
  const taken = await all.pull(to, ['--changes', changes]);
  t.is(taken.code, 0, taken.stderr);
  await all.setUp.sql(`update app.werkbonnen set omschrijving = 'Gewijzigd' where id = ${some('werkbonnen')}`, [
    all.workspace,
  ]);
  await all.setUp.caughtUp();
  t.is((await all.pull(to, ['--changes', changes])).code, 0);
  const records = new Map<string, string>();
  for (const [name, all] of Object.entries(exported(changes))) t.true(all.endsWith('\n'), `${name} ${all.length}`);
  for (const text of Object.entries(exported(changes)).flatMap(([name, all]) =>
    name.includes('-werkbonnen.') ? all.trim().split('\n') : [],
  )) {
    const line = JSON.parse(text) as {
      change: string;
      id?: string;
      record?: { id: string; omschrijving: string | null };
    };
    if (line.record) records.set(line.record.id, line.record.omschrijving ?? '');
    else records.delete(line.id as string);
  }
  const rows = await to.sql('select id, omschrijving from werkbonnen');
  t.deepEqual(
    new Map(rows.map(({ id, omschrijving }) => [id, omschrijving ?? ''] as [string, string]).sort()),
    new Map([...records].sort()),
  );
});

test.serial('a run that ends between the tables of a new copy leaves a copy that the next run completes', async (t) => {
  await all.setUp.cluster.primary.query('create database halved');
  const url = all.setUp.cluster.primary.url('halved');
  const to = postgresCopy(url);
  await runAsAdmin(url, (client) => client.query(secondTableFails));
  const ended = await all.pull(to, ['--resources', 'werkbonnen']);
  t.regex(ended.stderr, /no second table/);
  await runAsAdmin(url, (client) => client.query('drop event trigger fail'));
  const run = await all.pull(to, ['--resources', 'werkbonnen']);
  t.is(run.code, 0, run.stderr);
  t.true((await to.sql('select 1 from werkbonnen_uren')).length > 0);
});

test.serial('a second process refuses the destination of a first, which SIGTERM ends with 143', async (t) => {
  await all.setUp.cluster.primary.query('create database second');
  const url = all.setUp.cluster.primary.url('second');
  for (const copy of [postgresCopy(url), duckdbCopy(join(all.folder, 'second.duckdb'))]) {
    const { base, asked, close } = await troubledGateway('/api/v1/sync/klanten', [() => undefined]);
    t.teardown(close);
    const { child, ended } = startPull([...all.usual(base), '--to', copy.to, '--resources', 'klanten']);
    t.true(await until(() => asked.length > 0, 30_000));
    const second = await all.pull(copy, ['--resources', 'klanten']);
    child.kill('SIGTERM');
    t.is(second.code, 1);
    t.regex(second.stderr, /^Another process /);
    const ran = await ended;
    t.is(ran.code, 143, ran.stderr);
  }
});

test.serial('between the runs of --every others can open the copy', async (t) => {
  const { copies } = all;
  for (const copy of copies) {
    const { child, ended } = startPull([...all.usual(), '--to', copy.to, '--every', '1h', '--resources', 'klanten']);
    await Promise.race([ended, new Promise((resolve) => child.stdout?.once('data', resolve))]);
    const deadlineMs = Date.now() + limitMs(30_000);
    for (let run = await all.pull(copy, ['--resources', 'klanten']); run.code !== 0; ) {
      if (Date.now() > deadlineMs) return t.fail(run.stderr);
      run = await all.pull(copy, ['--resources', 'klanten']);
    }
    child.kill('SIGINT');
    t.is((await ended).code, 130);
  }
});

test.serial('pull --every goes on after its database was started again', async (t) => {
  const [copy] = all.copies as [PulledCopy];
  const { child, ended } = startPull([...all.usual(), '--to', copy.to, '--every', '1s', '--resources', 'klanten']);
  const line = (): Promise<unknown> =>
    Promise.race([ended, new Promise((resolve) => child.stdout?.once('data', resolve))]);
  await line();
  await all.setUp.cluster.primary.query(
    `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'workspace-data-pull'`,
  );
  await line();
  child.kill('SIGTERM');
  const { code, stderr } = await ended;
  t.is(code, 143, stderr);
});

async function troubledGateway(path: string, troubles: readonly ((reply: ServerResponse, body: string) => void)[]) {
  const asked: string[] = [];
  const server = createServer((request, reply) => {
    const headers = { authorization: request.headers.authorization ?? '' };
    void fetch(all.gateway.gateway.url + request.url, { headers }).then(async (real) => {
      const body = await real.text();
      const trouble = request.url?.startsWith(path) ? troubles[asked.push(request.url) - 1] : undefined;
      if (trouble === undefined) reply.writeHead(real.status).end(body);
      else trouble(reply, body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { base: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked, close: () => server.close() };
}

const half = (body: string): string => body.slice(0, body.length / 2);

test.serial('pull repeats a page that is refused, broken or not whole, and waits for Retry-After', async (t) => {
  const { base, asked, close } = await troubledGateway('/api/v1/sync/klanten?', [
    (reply) => void reply.writeHead(503, { 'retry-after': '5' }).end('{}'),
    (reply, body) => void reply.writeHead(200).write(half(body), () => reply.destroy()),
    (reply, body) => void reply.writeHead(200).end(half(body)),
  ]);
  t.teardown(close);
  const to = duckdbCopy(join(all.folder, 'troubled.duckdb'));
  const { code, stdout, stderr } = await runPull([...all.usual(base), '--to', to.to, '--resources', 'klanten']);
  t.is(code, 0, stderr);
  t.is(stderr, 'Waiting for the gateway: it answers 503; again in 5 s.\n');
  const { pages, records } = JSON.parse(stdout) as { pages: number; records: number };
  t.is(asked.length, pages + 3);
  t.deepEqual(await to.sql('select count(*)::INTEGER as count from klanten'), [{ count: records }]);
});

test.serial('SIGTERM while the gateway is away ends pull at once', async (t) => {
  const { base, close } = await troubledGateway('/api/v1/sync/werkbonnen', [
    (reply) => void reply.writeHead(503, { 'retry-after': '3000' }).end('{}'),
  ]);
  t.teardown(close);
  const to = join(all.folder, 'stopped.duckdb');
  const { child, ended } = startPull([...all.usual(base), '--to', to, '--resources', 'werkbonnen']);
  await Promise.race([ended, new Promise((resolve) => child.stderr?.once('data', resolve))]);
  child.kill('SIGTERM');
  t.is((await ended).code, 143);
});
