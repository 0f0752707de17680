import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { type FaultCluster, faultCluster } from '../support/fault-cluster.js';
import { serveProcess } from '../support/serve-process.js';
import { templateName } from '../support/template.js';
import type { Figures } from './figures.js';

const rounds = 5;
const seconds = 6;
const [readersOfCustomers, readersOfOrders] = [16, 8];
const paceMs = 20;
const ratioMax = 2;

/** Details of customers while clients also read work orders: their 99th percentile with the work orders' table locked against without, in turns. */
export async function soakLocks(): Promise<Figures> {
  const setUp = await faultCluster();
  const app = new pg.Client(setUp.cluster.primary.url(templateName));
  await app.connect();
  try {
    const figures: Record<string, string> = {};
    const ratios = [];
    for (const replicas of [1, 2]) {
      const turns = await measure(setUp, app, replicas);
      const [free, locked] = [turns.free.sort((a, b) => a - b), turns.locked.sort((a, b) => a - b)];
      const ratio = middle(locked) / middle(free);
      ratios.push(ratio);
      figures[`${replicas} replicas: p99 without a lock (ms)`] = spread(free);
      figures[`${replicas} replicas: p99 beside a lock (ms)`] = spread(locked);
      figures[`${replicas} replicas: p99 beside a lock against without`] = ratio.toFixed(2);
      figures[`${replicas} replicas: customers not answered 200`] = String(turns.failures);
    }
    return { ok: ratios.every((ratio) => ratio <= ratioMax), figures };
  } finally {
    await app.end();
    await setUp.stop();
  }
}

const middle = (sorted: readonly number[]): number => sorted[Math.floor(sorted.length / 2)] as number;
const spread = (sorted: readonly number[]): string =>
  `${middle(sorted).toFixed(1)} (${sorted[0]?.toFixed(1)} to ${sorted.at(-1)?.toFixed(1)})`;

async function measure(setUp: FaultCluster, app: pg.Client, replicas: number) {
  const all = setUp.settings().replicaUrls.split(' ');
  const serving = await serveProcess(setUp.settings({ replicaUrls: all.slice(0, replicas).join(' ') }));
  const headers = { authorization: `Bearer ${await setUp.token()}` };
  const get = (path: string): Promise<Response> => fetch(`${serving.url}/api/v1${path}`, { headers });
  const { data } = (await (await get('/klanten?perPage=50')).json()) as { data: { id: string }[] };
  let failures = 0;
  const turn = async (): Promise<number> => {
    const endMs = performance.now() + seconds * 1000;
    const times: number[] = [];
    const client = async (path: () => string, isCounted: boolean): Promise<void> => {
      while (performance.now() < endMs) {
        const startedMs = performance.now();
        const response = await get(path());
        await response.arrayBuffer();
        if (isCounted) times.push(performance.now() - startedMs);
        if (isCounted && response.status !== 200) failures++;
        await sleep(paceMs);
      }
    };
    const customer = (): string => `/klanten/${data[Math.floor(Math.random() * data.length)]?.id}`;
    await Promise.all([
      ...Array.from({ length: readersOfCustomers }, () => client(customer, true)),
      ...Array.from({ length: readersOfOrders }, () => client(() => '/werkbonnen?perPage=5', false)),
    ]);
    return times.sort((a, b) => a - b)[Math.floor(times.length * 0.99)] as number;
  };
  const [free, locked]: [number[], number[]] = [[], []];
  await turn(); // compilers and caches settle
  for (let round = 0; round < rounds; round++) {
    free.push(await turn());
    await app.query('begin; lock table app.werkbonnen in access exclusive mode; select pg_switch_wal()');
    locked.push(await turn());
    await app.query('rollback');
    while ((await get('/werkbonnen?perPage=1')).status !== 200) await sleep(200);
  }
  await serving.stop();
  return { free, locked, failures };
}
