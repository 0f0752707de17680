import { readFileSync } from 'node:fs';
import { loadResources } from '../../src/resource/definition/load.js';
import type { Resource } from '../../src/resource/definition/resource.js';
import { type FaultCluster, faultCluster } from '../support/fault-cluster.js';
import { asInProduction, serveProcess } from '../support/serve-process.js';
import type { Figures } from './figures.js';

const partitions = 131;
const growthMbMax = 40;
const cuts = 4;

/** Every combination of filters, orders, members and pages over 131 partitions: the memory of a backend grows by at most 40 MB. */
export async function soakStatements(): Promise<Figures> {
  const setUp = await faultCluster({ replicas: 1 });
  try {
    await addPartitions(setUp);
    // Few connections, so that each meets every combination.
    const serving = await serveProcess(
      setUp.settings({ shortConnections: 1, longConnections: 1, logLevel: 'warn' }),
      asInProduction,
    );
    try {
      const authorization = `Bearer ${await setUp.token()}`;
      const get = async (path: string): Promise<void> => {
        const reply = await fetch(`${serving.url}/api/v1${path}`, { headers: { authorization } });
        await reply.arrayBuffer();
        if (reply.status !== 200) throw new Error(`${path} was answered ${reply.status}`);
      };
      const resources = loadResources('');
      for (const { name } of resources) for (const perPage of [5, 500]) await get(`/${name}?perPage=${perPage}`);
      const before = await megabytesOf(setUp);
      let [requests, most] = [0, before];
      const startedMs = performance.now();
      for (const path of combined(resources)) {
        await get(path);
        if (++requests % 250 === 0) most = Math.max(most, await megabytesOf(setUp));
      }
      most = Math.max(most, await megabytesOf(setUp));
      return {
        ok: most - before <= growthMbMax,
        figures: {
          'combinations asked for': requests,
          'partitions of the log': partitions,
          'private memory of the largest backend after one page of each list (MB)': Math.round(before),
          '… at most, while all combinations were read (MB)': Math.round(most),
          'requests per second': Math.round((requests / (performance.now() - startedMs)) * 1000),
        },
      };
    } finally {
      await serving.stop();
    }
  } finally {
    await setUp.stop();
  }
}

/** Adds partitions to the log until it has 131: a plan over all of them takes a megabyte of a backend. */
async function addPartitions({ sql, caughtUp }: FaultCluster): Promise<void> {
  const [row] = await sql<{ n: number }>(
    `select count(*)::int as n from pg_partition_tree('app.logboeken') where isleaf`,
  );
  for (let year = 2100; year < 2100 + partitions - Number(row?.n); year++)
    await sql(
      `create table app.logboeken_${year} partition of app.logboeken for values from ('${year}-01-01') to ('${year + 1}-01-01')`,
    );
  await sql('analyze');
  await caughtUp();
}

/** Reads how much memory the largest backend of the gateway has to itself: a backend keeps the plans of its prepared statements. */
async function megabytesOf({ cluster }: FaultCluster): Promise<number> {
  const backends = await cluster.replicas[0]?.query<{ pid: number }>(
    "select pid from pg_stat_activity where usename = 'gateway_reader'",
  );
  const kilobytes = (backends ?? []).map(({ pid }) => {
    const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
    return [...rollup.matchAll(/^Private_(?:Clean|Dirty): +(\d+) kB$/gm)].reduce((sum, [, kb]) => sum + Number(kb), 0);
  });
  return Math.max(...kilobytes) / 1000;
}

/** Values of the filters of the reference app, of which most find nothing: a plan is the same for all. */
const values: Readonly<Record<string, string>> = {
  date: '2024-01-01',
  timestamp: '2024-01-01T00:00:00Z',
  uuid: '00000000-0000-4000-8000-000000000000',
};

/** Yields a path for each subset of the filters of a list, in both orders, as small and large page, and with several sets of members. */
function* combined(resources: readonly Resource[]): Generator<string> {
  for (const { name, filters, fields } of resources) {
    const members = Object.keys(fields);
    const subsets: string[][] = [[]];
    for (const filter of Object.keys(filters)) subsets.push(...subsets.map((each) => [...each, filter]));
    for (const [i, subset] of subsets.entries()) {
      const chosen = subset.map((filter) => [filter, valueFor(filters[filter] as Resource['filters'][string])]);
      for (const order of ['asc', 'desc']) {
        const path = (more: Record<string, string>): string =>
          `/${name}?${new URLSearchParams({ ...Object.fromEntries(chosen), order, ...more })}`;
        yield path({ perPage: '2', total: 'true' });
        yield path({ perPage: '2', page: '2' });
        yield path({ perPage: '3000' });
        for (let cut = 0; cut < cuts; cut++) {
          const asked = members.filter((_, at) => ((i * cuts + cut + 1) * (at + 3)) % 5 < 2);
          yield path({ perPage: cut % 2 ? '2' : '300', fields: ['id', ...asked].join(',') });
        }
      }
    }
  }
}

function valueFor({ kind, type }: Resource['filters'][string]): string {
  if (kind === 'from' || kind === 'to') return values.date as string;
  return values[type] ?? 'x';
}
