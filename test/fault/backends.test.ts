import { setTimeout as pause } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import type { PgNode } from '../../demo/cluster/node.js';
import { type FaultCluster, type FaultGateway, faultCluster } from '../support/fault-cluster.js';
import { type PageRead, readPage, withoutCursors } from '../support/page-reader.js';
import { limitMs, until } from '../support/patience.js';

// Replicas that are well, and single backends of theirs that are frozen, or whose statements are cancelled.

let setUp: FaultCluster;
let gateway: FaultGateway;
let token: string;
let undisturbed: string;
const page = '/installaties?perPage=600';

test.before(async () => {
  setUp = await faultCluster();
  gateway = await setUp.gateway({ chunkRowsMax: 100, largePagesPerToken: 8, longPerWorkspace: 8 });
  token = await setUp.token();
  undisturbed = (await readPage(gateway.url(page), { token })).body;
  await setUp.pace(2);
});
test.after.always(() => setUp?.stop());

/** Does it to each backend that is reading installations. */
async function toReading<Row extends object>(node: PgNode, action: string): Promise<Row[]> {
  return node.query<Row>(
    `select ${action} from pg_stat_activity
     where usename = 'gateway_reader' and state = 'active' and query ~ 'installaties'`,
  );
}

function isWhole(t: ExecutionContext, read: PageRead): void {
  t.true(read.complete);
  t.true(withoutCursors(read.body) === withoutCursors(undisturbed), 'it differs');
  t.true(read.longestGapMs < limitMs(2500), `a pause of ${read.longestGapMs} ms`);
}

test.serial('a page continues within 2.5 s when the backend that reads it is frozen', async (t) => {
  const frozen: number[] = [];
  const freeze = async (): Promise<void> => {
    for (let tries = 0; tries < 100 && frozen.length === 0; tries++)
      for (const node of setUp.cluster.replicas)
        for (const { pid } of await toReading<{ pid: number }>(node, 'pid')) frozen.push(pid);
    for (const pid of frozen) process.kill(pid, 'SIGSTOP');
  };
  const read = await readPage(gateway.url(page), { token, onFirstBytes: () => void freeze() });
  t.is(frozen.length, 1);
  for (const pid of frozen) process.kill(pid, 'SIGCONT');
  isWhole(t, read);
  t.true(read.longestGapMs > 1000, `the page was not disturbed: ${read.longestGapMs} ms`);
  await gateway.backToNormal(t);
});

test.serial('pages continue when their statements are cancelled, up to 80 times in a second', async (t) => {
  let [cancelled, begun] = [0, 0];
  const cancel = async (): Promise<void> => {
    if (++begun > 1) return;
    const startMs = performance.now();
    const isEnough = (): boolean => performance.now() > startMs + (cancelled < 20 ? 5000 : 1000); // busy machines take longer
    for (let round = 1; !isEnough(); round++) {
      for (const node of setUp.cluster.replicas) cancelled += (await toReading(node, 'pg_cancel_backend(pid)')).length;
      await pause(Math.max(0, startMs + 25 * round - performance.now()));
    }
  };
  const onFirstBytes = (): void => void cancel();
  const reads = await Promise.all(
    Array.from({ length: 8 }, () => readPage(gateway.url(page), { token, onFirstBytes })),
  );
  t.true(cancelled >= 20, `${cancelled} statements were cancelled`);
  const broken = reads.filter(({ complete }) => !complete);
  t.is(broken.length, 0, `${broken.length} of 8 were broken off`);
  for (const read of reads.filter(({ status }) => status === 200)) isWhole(t, read);
  await gateway.backToNormal(t);
});

test.serial('a busy process refuses no request whose connection has become free meanwhile', async (t) => {
  const narrow = await setUp.gateway({ shortConnections: 1, shortDepth: 1, queueWaitMs: 800 });
  const path = narrow.url('/installaties?perPage=5');
  await readPage(path, { token });
  await setUp.pace(10); // 50 ms each
  const waiting = (): number => narrow.gateway.replicas.reduce((sum, { short }) => sum + short.waiting, 0);
  const reads = Array.from({ length: 3 }, () => readPage(path, { token }));
  t.true(await until(() => waiting() >= 1, 5000, 1));
  for (const endMs = performance.now() + 1600; performance.now() < endMs; ); // the gateway is in this process
  t.deepEqual([...new Set((await Promise.all(reads)).map(({ status }) => status))], [200]);
  await narrow.stop();
});
