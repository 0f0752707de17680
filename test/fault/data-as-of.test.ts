import test from 'ava';
import pg from 'pg';
import { type FaultCluster, faultCluster } from '../support/fault-cluster.js';
import { readPage } from '../support/page-reader.js';
import { templateName } from '../support/template.js';

// The app commits without waiting for the disk: a commit is visible on the primary before replicas can get it.

let setUp: FaultCluster;
test.before(async () => {
  setUp = await faultCluster({ replicas: 1, settings: { wal_writer_delay: '200ms' } });
});
test.after.always(() => setUp?.stop());

test('no commit before Data-As-Of is missing, although the app commits asynchronously', async (t) => {
  const token = await setUp.token();
  const gateway = await setUp.gateway({ probeIntervalMs: 50 });
  t.teardown(() => gateway.stop());
  const [row] = await setUp.sql<{ id: string }>('select id from app.installaties where workspace_id = $1 limit 1', [
    setUp.workspaces[0]?.id,
  ]);
  const app = new pg.Client(setUp.cluster.primary.url(templateName));
  await app.connect();
  t.teardown(() => app.end());
  await app.query('set synchronous_commit = off');

  const committedMs: number[] = [];
  let isReading = true;
  const commits = (async () => {
    while (isReading) {
      await app.query('update app.installaties set interne_notities = $1 where id = $2', [committedMs.length, row?.id]);
      committedMs.push(Date.now());
      await new Promise((resolve) => setTimeout(resolve, 7));
    }
  })();
  const wrong: string[] = [];
  let reads = 0;
  for (const endMs = Date.now() + 6000; Date.now() < endMs; reads++) {
    const { body, headers } = await readPage(gateway.url(`/installaties/${row?.id}`), { token });
    const seen = Number(JSON.parse(body).interneNotities ?? -1);
    const nextMs = committedMs[seen + 1] ?? Number.POSITIVE_INFINITY;
    const asOfMs = Date.parse(String(headers['data-as-of']));
    if (nextMs < asOfMs) wrong.push(`commit ${seen + 1} is missing ${asOfMs - nextMs} ms after it`);
  }
  isReading = false;
  await commits;
  t.true(reads > 100 && committedMs.length > 100, `${reads} reads, ${committedMs.length} commits`);
  t.deepEqual(wrong.slice(0, 5), []);
});
