import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import { type FaultCluster, type FaultGateway, faultCluster } from '../support/fault-cluster.js';
import {
  duckdbCopy,
  exported,
  type PulledCopy,
  type PullRun,
  postgresCopy,
  runPull,
  startPull,
} from '../support/pulled-copy.js';
import { syncWriters } from '../support/sync/writers.js';
import { templateName } from '../support/template.js';

// A copy in PostgreSQL and in DuckDB beside a fresh one, after changes at the source, damage in the copy, and kills.

let setUp: FaultCluster;
let gateway: FaultGateway;
let folder: string;
let workspace: string;
let copies: readonly PulledCopy[];
let fresh = 0;

test.before(async () => {
  setUp = await faultCluster({ replicas: 1, settings: { max_prepared_transactions: '20' } });
  gateway = await setUp.gateway({});
  folder = await mkdtemp(join(tmpdir(), 'pull-'));
  workspace = setUp.workspaces[1]?.id as string;
  await writeFile(join(folder, 'token'), `${await setUp.token({ workspace: 1 })}\n`);
  await setUp.cluster.primary.query('create database copy');
  copies = [postgresCopy(setUp.cluster.primary.url('copy')), duckdbCopy(join(folder, 'copy.duckdb'))];
});
test.after.always(async () => {
  await setUp?.stop();
  await rm(folder, { recursive: true, force: true });
});

const usual = (base = gateway.gateway.url): string[] => ['--base', base, '--token-file', join(folder, 'token')];

function pull(copy: PulledCopy, more: readonly string[] = [], killMs?: number): Promise<PullRun> {
  return runPull([...usual(), '--to', copy.to, ...more], killMs);
}

/** Exports of a copy after a run with these options. */
async function exportsAfter(t: ExecutionContext, copy: PulledCopy, more: readonly string[] = []) {
  const to = join(folder, `export-${fresh++}`);
  const run = await pull(copy, [...more, '--export', to, '--format', 'ndjson']);
  t.is(run.code, 0, run.stderr);
  return exported(to);
}

const linesOf = (text = ''): unknown[] =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line || 'null') as unknown);

/** Runs `pull` on each copy, which must then have what a copy that is made now has, in every column of every table. */
async function assertEqual(t: ExecutionContext, more: readonly string[] = []): Promise<void> {
  await setUp.caughtUp();
  const expected = await exportsAfter(t, duckdbCopy(join(folder, `fresh-${fresh++}.duckdb`)));
  t.true(Object.keys(expected).length >= 6);
  for (const copy of copies) {
    const found = await exportsAfter(t, copy, more);
    // jsonb prints JSON in its own order.
    for (const [name, text] of Object.entries(expected))
      t.true(
        isDeepStrictEqual(linesOf(found[name]), linesOf(text)),
        `${name} in ${new URL(copy.to, 'file:').protocol}`,
      );
  }
}

test.serial('pull makes a copy that equals a second one, in files that only their owner can read', async (t) => {
  await assertEqual(t);
  t.is((await stat(join(folder, 'copy.duckdb'))).mode & 0o077, 0);
});

const some = (table: string, more = ''): string =>
  `(select id from app.${table} where workspace_id = $1 ${more} order by id limit 1)`;

/** Changes that leave no trace in the row that shows them. */
const silentChanges: Readonly<Record<string, string>> = {
  'an hour is deleted': `delete from app.werkbon_uren where id = ${some('werkbon_uren')}`,
  'an action is deleted': `delete from app.werkbon_handelingen where id = ${some('werkbon_handelingen')}`,
  'an hour moves to another work order': `update app.werkbon_uren set werkbon_id =
    (select w.id from app.werkbonnen w where w.workspace_id = $1 order by w.id desc limit 1) where id = ${some('werkbon_uren')}`,
  'an hour changes': `update app.werkbon_uren set medewerker = 'Ander' where id = ${some('werkbon_uren')}`,
  'an hour is added': `insert into app.werkbon_uren (id, workspace_id, werkbon_id, medewerker, datum, van, tot, uren)
    values (gen_random_uuid(), $1, ${some('werkbonnen')}, 'Nieuw', '2026-01-01', '08:00', '09:00', 1)`,
  'a work order changes without updated_at': `update app.werkbonnen set omschrijving = 'Stil' where id = ${some('werkbonnen')}`,
  'a work order is deleted with its parts': `gone as ${some('werkbonnen')},
    a as (delete from app.werkbon_handelingen where werkbon_id in (select id from gone)),
    b as (delete from app.werkbon_uren where werkbon_id in (select id from gone))
    delete from app.werkbonnen where id in (select id from gone)`,
  'a log entry is deleted': `delete from app.logboeken where id = ${some('logboeken')}`,
};

/** A change that begins with queries of its own has them before it. */
function statementOf(change: string): string {
  const own = change.startsWith('gone as');
  const at = own ? change.lastIndexOf('delete from app.werkbonnen ') : 0;
  return `with ${change.slice(0, at)}${own ? ',' : ''} changed as (${change.slice(at)} returning 1) select * from changed`.replace(
    /\)\s+,/,
    '),',
  );
}

for (const [name, change] of Object.entries(silentChanges))
  test.serial(`${name}: a plain pull ends equal`, async (t) => {
    t.is((await setUp.sql(statementOf(change), [workspace])).length, 1);
    await assertEqual(t);
  });

const first = (table: string, column = 'id'): string => `(select min(${column}) from ${table})`;
/** Damage in a copy. */
const damages: Readonly<Record<string, string>> = {
  'texts are overwritten': `update werkbonnen set omschrijving = 'x' where id in (select id from werkbonnen order by id limit 100)`,
  'a record is lost': `delete from klanten where id = ${first('klanten')}`,
  'a record is added': `insert into installaties (id, sync_version) values ('extra', '0000000000000000')`,
  'an hour is lost': `delete from werkbonnen_uren where werkbon_id = ${first('werkbonnen_uren', 'werkbon_id')} and position = 1`,
  'an hour is changed': `update werkbonnen_uren set uren = 99 where werkbon_id = ${first('werkbonnen_uren', 'werkbon_id')} and position = 1`,
  'an hour without work order is added': `insert into werkbonnen_uren (werkbon_id, position) values ('extra', 1)`,
  'an hour is moved': `update werkbonnen_uren set werkbon_id = (select max(id) from werkbonnen), position = 77
    where werkbon_id = ${first('werkbonnen_uren', 'werkbon_id')} and position = 1`,
  'a version is overwritten': `update klanten set sync_version = '0123456789abcdef' where id = ${first('klanten')}`,
  'a hash is overwritten': `update klanten set sync_hash = 'x' where id = ${first('klanten')}`,
  'the token is overwritten': `update pull_state set since = 'damaged'`,
  'a column is emptied': `update logboeken set actie = null`,
};

for (const [name, damage] of Object.entries(damages))
  test.serial(`${name} in the copy: --verify ends equal`, async (t) => {
    for (const copy of copies) await copy.sql(damage);
    await assertEqual(t, ['--verify']);
  });

test.serial('pull that is killed with -9 again and again while the app writes ends with an equal copy', async (t) => {
  const writers = await syncWriters(setUp.cluster.primary.url(templateName), workspace, 500);
  writers.resume();
  for (let i = 0; i < 6; i++) await Promise.all(copies.map((copy) => pull(copy, [], 300 + Math.random() * 1500)));
  await writers.pause();
  t.true(writers.changes() > 20);
  await assertEqual(t);
});

test.serial('no reference dangles after a run under writers', async (t) => {
  const writers = await syncWriters(setUp.cluster.primary.url(templateName), workspace, 500);
  writers.resume();
  const [copy] = copies as [PulledCopy];
  for (let i = 0; i < 3; i++) {
    const run = await pull(copy);
    t.is(run.code, 0, run.stderr);
    const [row] =
      await copy.sql(`select (select count(*) from werkbonnen w where not exists (select from installaties i where i.id = w.installation_id))
      + (select count(*) from installaties i where not exists (select from klanten k where k.id = i.customer_id)) as dangling`);
    t.is(Number(row?.dangling), 0);
  }
  await writers.pause();
});

test.serial('the change files of --changes make the same copy, whatever was killed', async (t) => {
  const to = duckdbCopy(join(folder, 'changes.duckdb'));
  const changes = join(folder, 'changes');
  for (let i = 0; i < 3; i++) await pull(to, ['--changes', changes], 300 + i * 400);
  t.is((await pull(to, ['--changes', changes])).code, 0);
  await setUp.sql(`update app.werkbonnen set omschrijving = 'Gewijzigd' where id = ${some('werkbonnen')}`, [workspace]);
  await setUp.caughtUp();
  t.is((await pull(to, ['--changes', changes])).code, 0);
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

test.serial('a second process refuses the destination of a first, which SIGTERM ends with 0', async (t) => {
  for (const copy of copies) {
    const { child, ended } = startPull([...usual(), '--to', copy.to, '--every', '1h']);
    await Promise.race([ended, new Promise((resolve) => child.stdout?.once('data', resolve))]);
    const second = await pull(copy, ['--resources', 'klanten']);
    child.kill('SIGTERM');
    t.is(second.code, 1);
    t.regex(second.stderr, /^Another process /);
    const ran = await ended;
    t.is(ran.code, 0, ran.stderr);
  }
});

test.serial('pull --every goes on after its database was started again', async (t) => {
  const [copy] = copies as [PulledCopy];
  const { child, ended } = startPull([...usual(), '--to', copy.to, '--every', '1s', '--resources', 'klanten']);
  const line = (): Promise<unknown> =>
    Promise.race([ended, new Promise((resolve) => child.stdout?.once('data', resolve))]);
  await line();
  await setUp.cluster.primary.query(
    `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'workspace-data-pull'`,
  );
  await line();
  child.kill('SIGTERM');
  const { code, stderr } = await ended;
  t.is(code, 0, stderr);
});

/** A proxy in front of the gateway; the first requests of a path that begins so get these answers instead of their own. */
async function troubledGateway(path: string, troubles: readonly ((reply: ServerResponse, body: string) => void)[]) {
  const asked: string[] = [];
  const server = createServer((request, reply) => {
    const headers = { authorization: request.headers.authorization ?? '' };
    void fetch(gateway.gateway.url + request.url, { headers }).then(async (real) => {
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
  const to = duckdbCopy(join(folder, 'troubled.duckdb'));
  const { code, stdout, stderr } = await runPull([...usual(base), '--to', to.to, '--resources', 'klanten']);
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
  const to = join(folder, 'stopped.duckdb');
  const { child, ended } = startPull([...usual(base), '--to', to, '--resources', 'werkbonnen']);
  await Promise.race([ended, new Promise((resolve) => child.stderr?.once('data', resolve))]);
  child.kill('SIGTERM');
  t.is((await ended).code, 0);
});
