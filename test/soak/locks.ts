import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { type FaultCluster, faultCluster } from '../support/fault-cluster.js';
import { serveProcess } from '../support/serve-process.js';
import { templateName } from '../support/template.js';
import type { Figures } from './figures.js';

const rounds = 3;
const [readersOfCustomers, readersOfOthers] = [16, 8];
const paceMs = 20;
const ratioMax = 2;

interface Kind {
  readonly seconds: number;
  /** Clients read it beside customers. */
  readonly path: string;
  readonly begin: () => Promise<unknown>;
  readonly end: () => Promise<unknown>;
}

const orders = { seconds: 6, path: '/werkbonnen?perPage=5' };

/** Makes statements of a resource wait, in three ways. After a switch of the WAL file the replicas have the lock of the app soon. */
function kindsOf(setUp: FaultCluster, app: pg.Client): Readonly<Record<string, Kind>> {
  const held = (change: string) => () => app.query(`begin; ${change}; select pg_switch_wal()`);
  const end = () => app.query('rollback');
  let commits: NodeJS.Timeout | undefined;
  const commitOn = (): void => {
    commits = setInterval(() => void setUp.sql('update fault.pace set ms = ms').catch(() => undefined), 50);
  };
  return {
    'a lock of 20 s with other commits': {
      ...orders,
      seconds: 20,
      begin: () => held('lock table app.werkbonnen in access exclusive mode')().then(commitOn),
      end: () => {
        clearInterval(commits);
        return end();
      },
    },
    'a rewrite': {
      ...orders,
      begin: held('alter table app.werkbonnen add column later uuid default gen_random_uuid()'),
      end,
    },
    'a slow plan': {
      seconds: 6,
      path: '/installaties?perPage=5',
      begin: () => setUp.pace(3000),
      end: () => setUp.pace(0),
    },
  };
}

/** Details of customers while clients also read another resource: their 99th percentile while it waits against without, in turns. */
export async function soakLocks(): Promise<Figures> {
  const setUp = await faultCluster();
  const app = new pg.Client(setUp.cluster.primary.url(templateName));
  await app.connect();
  try {
    const figures: Record<string, string> = {};
    const ratios = [];
    for (const replicas of [1, 2])
      for (const [name, kind] of Object.entries(kindsOf(setUp, app))) {
        const { free, beside, failures } = await measure(setUp, kind, replicas);
        const ratio = middle(beside) / middle(free);
        ratios.push(ratio);
        const p99 = `p99 ${spread(free)} ms without, ${spread(beside)} ms beside: ${ratio.toFixed(2)} times`;
        figures[`${name}, ${replicas} replicas`] = `${p99}; ${failures} not answered 200`;
        console.error(name, replicas, figures[`${name}, ${replicas} replicas`]);
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

/** Measures in turns, three times each: the 99th percentile of a turn without the wait, and of a turn beside it. */
async function measure(setUp: FaultCluster, { seconds, path, begin, end }: Kind, replicas: number) {
  const all = setUp.settings().replicaUrls.split(' ');
  const serving = await serveProcess(setUp.settings({ replicaUrls: all.slice(0, replicas).join(' ') }));
  const headers = { authorization: `Bearer ${await setUp.token()}` };
  const get = (path: string): Promise<Response> => fetch(`${serving.url}/api/v1${path}`, { headers });
  const { data } = (await (await get('/klanten?perPage=50')).json()) as { data: { id: string }[] };
  let failures = 0;
  const turn = async (): Promise<number> => {
    const endMs = performance.now() + seconds * 1000;
    const times: number[] = [];
    const client = async (next: () => string, isCounted: boolean): Promise<void> => {
      while (performance.now() < endMs) {
        const startedMs = performance.now();
        const response = await get(next());
        await response.arrayBuffer();
        if (isCounted) times.push(performance.now() - startedMs);
        if (isCounted && response.status !== 200) failures++;
        await sleep(paceMs);
      }
    };
    const customer = (): string => `/klanten/${data[Math.floor(Math.random() * data.length)]?.id}`;
    await Promise.all([
      ...Array.from({ length: readersOfCustomers }, () => client(customer, true)),
      ...Array.from({ length: readersOfOthers }, () => client(() => path, false)),
    ]);
    return times.sort((a, b) => a - b)[Math.floor(times.length * 0.99)] as number;
  };
  const [free, beside]: [number[], number[]] = [[], []];
  await turn(); // compilers and caches settle
  for (let round = 0; round < rounds; round++) {
    free.push(await turn());
    await begin();
    beside.push(await turn());
    await end();
    while ((await get(path)).status !== 200) await sleep(200);
  }
  await serving.stop();
  const byTime = (a: number, b: number): number => a - b;
  return { free: free.sort(byTime), beside: beside.sort(byTime), failures };
}
