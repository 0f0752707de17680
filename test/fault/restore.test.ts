import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import suite from 'ava';
import { type FaultCluster, type FaultGateway, faultCluster } from '../support/fault-cluster.js';
import { until } from '../support/patience.js';
import { duckdbCopy, runPull } from '../support/pull/copy.js';

const test = suite.serial;

// The primary goes back to an older copy of its files, and its standby is made again: clients have tokens of a time that is lost.

let setUp: FaultCluster;
let folder: string;
let token: string;
let backup: string;
const unhurried = { probeDeadlineMs: 10_000, connectTimeoutMs: 10_000 };

test.before(async () => {
  setUp = await faultCluster({ replicas: 1 });
  folder = mkdtempSync(join(tmpdir(), 'restore-'));
  token = await setUp.token();
  writeFileSync(join(folder, 'token'), `${token}\n`);
  const { primary } = setUp.cluster;
  backup = join(setUp.cluster.dir, 'backup');
  await primary.stop();
  execFileSync('cp', ['-a', primary.dir, backup]);
  await primary.start();
  await setUp.caughtUp();
});
test.after.always(async () => {
  await setUp?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const sync = async ({ gateway }: FaultGateway, query: string): Promise<{ status: number; body: SyncBody }> => {
  const reply = await fetch(`${gateway.url}/api/v1/sync/klanten${query}`, {
    headers: { authorization: `Bearer ${token}` },
  });
  return { status: reply.status, body: (await reply.json()) as SyncBody };
};
interface SyncBody {
  readonly code?: string;
  readonly pagination: { readonly since: string; readonly nextCursor: string };
}

async function restore(isToAMoment: boolean): Promise<void> {
  const { primary } = setUp.cluster;
  await primary.stop();
  rmSync(primary.dir, { recursive: true });
  execFileSync('cp', ['-a', backup, primary.dir]);
  if (isToAMoment) {
    execFileSync('cp', ['-a', join(primary.dir, 'PG_VERSION'), join(primary.dir, 'recovery.signal')]); // of the same owner
    writeFileSync(join(primary.dir, 'recovery.signal'), '');
    await primary.configure({ restore_command: 'false', recovery_target_action: 'promote' });
  }
  await primary.start();
  const isOpen = async (): Promise<boolean> =>
    (await primary.query('select 1 where not pg_is_in_recovery()')).length === 1;
  if (!(await until(isOpen, 20_000, 50))) throw new Error('the restored primary stays in recovery');
  await setUp.cluster.rebuildReplica(0);
}

for (const [what, isToAMoment] of [
  ['on the same timeline', false],
  ['on a new timeline', true],
] as const)
  test(`after a restore ${what} a token or cursor of before is 410 before any position is waited for, and pull goes on`, async (t) => {
    for (let i = 0; i < 50; i++) await setUp.sql('create table if not exists lost (); drop table lost');
    await setUp.sql('create table lost as select generate_series(1, 20000) as n');
    await setUp.caughtUp();
    const first = await setUp.gateway(unhurried);
    const { since } = (await sync(first, '?perPage=10000')).body.pagination;
    const { nextCursor } = (await sync(first, '?perPage=1')).body.pagination;
    const copy = duckdbCopy(join(folder, `${isToAMoment}.duckdb`));
    const pull = ({ gateway }: FaultGateway) =>
      runPull([
        ...['--base', gateway.url, '--token-file', join(folder, 'token')],
        ...['--to', copy.to, '--resources', 'klanten'],
      ]);
    const before = await pull(first);
    t.is(before.code, 0, before.stderr);

    await restore(isToAMoment);
    const second = await setUp.gateway(unhurried);
    for (const query of [
      `?since=${since}`,
      `?cursor=${nextCursor}`,
      `/digest?since=${since}`,
      `/ids?prefix=0&since=${since}`,
    ]) {
      const startedMs = performance.now();
      const { status, body } = await sync(second, query);
      t.deepEqual([status, body.code], [410, 'sync_expired'], query.slice(0, 9));
      t.log(`${query.slice(0, 9)}: 410 after ${Math.round(performance.now() - startedMs)} ms`);
    }
    const expired = async (): Promise<boolean> => (await sync(first, `?since=${since}`)).status === 410;
    t.true(await until(expired, 30_000, 100), 'a gateway that went on as well');
    const after = await pull(first); // a copy is of one address
    t.is(after.code, 0, after.stderr);
    t.is((JSON.parse(after.stdout) as { whole: boolean }).whole, true);
    await Promise.all([first.stop(), second.stop()]);
  });

test('a token of the same history is not expired while the replica is behind, or the primary away', async (t) => {
  const { primary, replicas } = setUp.cluster;
  const running = await setUp.gateway(unhurried);
  const { since } = (await sync(running, '?perPage=10000')).body.pagination;
  t.is((await sync(running, `?since=${since}`)).status, 200);
  await replicas[0]?.query('select pg_wal_replay_pause()');
  await setUp.sql('create table later as select generate_series(1, 20000) as n');
  t.is((await sync(running, `?since=${since}`)).status, 200);
  await replicas[0]?.query('select pg_wal_replay_resume()');
  await setUp.caughtUp();
  await primary.kill9();
  t.is((await sync(running, `?since=${since}`)).status, 200);
  await primary.start();
  await running.stop();
});
