import type { FaultCluster, FaultGateway } from '../support/fault-cluster.js';
import { faultCluster } from '../support/fault-cluster.js';
import { type PageRead, readPage, withoutCursors } from '../support/page-reader.js';
import { until } from '../support/patience.js';
import type { Figures } from './figures.js';

/** A thousand pages disturbed in every way. */
export async function soakPages(): Promise<Figures> {
  const setUp = await faultCluster();
  try {
    const gateway = await setUp.gateway(disturbedSettings, true);
    const startedMs = performance.now();
    const run = await disturbPages(setUp, gateway, '/installaties?perPage=800', 1000);
    for (const fault of run.faults) console.error(fault);
    return {
      ok: run.faults.length === 0 && run.resumed >= 1000,
      figures: {
        'Pages read while replicas were harmed': run.pages,
        'Pages continued after their replica failed them': run.resumed,
        'Pages not byte for byte as undisturbed, broken off, or paused for 2.5 s': run.faults.length,
        'Longest pause of a client (ms)': Math.round(run.longestGapMs),
        'Duration (s)': Math.round((performance.now() - startedMs) / 1000),
      },
    };
  } finally {
    await setUp.stop();
  }
}

interface Disturbed {
  /** Pages that lost a statement and were continued. */
  readonly resumed: number;
  readonly pages: number;
  readonly faults: readonly string[];
  readonly longestGapMs: number;
}

const pagesAtATime = 10;

const disturbedSettings = {
  chunkRowsMax: 40,
  longConnections: pagesAtATime,
  longPerWorkspace: pagesAtATime,
  largePagesPerToken: pagesAtATime,
  largePagesPerWorkspace: pagesAtATime,
};

interface Harm {
  readonly harm: (setUp: FaultCluster, replica: number) => unknown;
  readonly heal: (setUp: FaultCluster, replica: number) => unknown;
}

const nothing = (): undefined => undefined;

/** Ways to take a replica, or its connections, from under running pages; the cheap ones come more often. */
const harms: readonly Harm[] = [
  { harm: terminateBackends, heal: nothing },
  { harm: ({ proxies }, i) => proxies[i]?.cut(), heal: nothing },
  { harm: ({ cluster }, i) => cluster.replicas[i]?.kill9(), heal: ({ cluster }, i) => cluster.replicas[i]?.start() },
  { harm: terminateBackends, heal: nothing },
  { harm: ({ proxies }) => proxies.map((proxy) => proxy.cut()), heal: nothing },
  { harm: ({ cluster }, i) => cluster.replicas[i]?.freeze(), heal: ({ cluster }, i) => cluster.replicas[i]?.thaw() },
  { harm: terminateBackends, heal: nothing },
  { harm: ({ proxies }, i) => proxies[i]?.cut(), heal: nothing },
  { harm: ({ proxies }, i) => proxies[i]?.blackHole(), heal: ({ proxies }, i) => proxies[i]?.restore() },
];

/** Harms a replica in the middle of each ten pages, until enough were continued: each comes out as an undisturbed one. */
async function disturbPages(
  setUp: FaultCluster,
  gateway: FaultGateway,
  path: string,
  wanted: number,
): Promise<Disturbed> {
  const token = await setUp.token();
  const url = gateway.url(path);
  const { body: undisturbed } = await readPage(url, { token });
  await setUp.pace(0.5);
  const resumed = (): Promise<number> => gateway.metric('gateway_pages_resumed_total');
  const allHealthy = (): boolean => gateway.gateway.replicas.every(({ state }) => state.healthy);
  const before = await resumed();
  const faults: string[] = [];
  let [pages, longestGapMs] = [0, 0];
  for (let round = 0; (await resumed()) - before < wanted && round < wanted; round++) {
    const { harm, heal } = harms[round % harms.length] as Harm;
    const replica = round % 2;
    let begun = 0;
    const reading = Array.from({ length: pagesAtATime }, () => readBegun(url, token, () => begun++));
    await until(() => begun === pagesAtATime, 10_000, 5);
    await new Promise((resolve) => setTimeout(resolve, (round * 37) % 150));
    await harm(setUp, replica);
    for (const page of await Promise.all(reading)) {
      pages++;
      longestGapMs = Math.max(longestGapMs, page.longestGapMs);
      const fault = faultOf(page, undisturbed);
      if (fault !== null) faults.push(`round ${round}: ${fault}`);
    }
    await heal(setUp, replica);
    await until(allHealthy, 15_000, 25);
  }
  await setUp.pace(0);
  return { resumed: (await resumed()) - before, pages, faults, longestGapMs };
}

/** A page that a busy machine could not begin in time (503) was not disturbed: it is asked for again, as Retry-After says. */
async function readBegun(url: string, token: string, onFirstBytes: () => void): Promise<PageRead> {
  for (let attempt = 1; ; attempt++) {
    const page = await readPage(url, { token, onFirstBytes });
    if (page.status !== 503 || attempt === 20) return page;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** Says in what a page differs from an undisturbed one, apart from its cursors; null if in nothing. */
function faultOf(page: PageRead, undisturbed: string): string | null {
  if (page.status !== 200) return `status ${page.status}: ${page.body}`;
  if (!page.complete) return `broken off after ${page.body.length} of ${undisturbed.length} characters`;
  if (withoutCursors(page.body) !== withoutCursors(undisturbed)) return 'not what an undisturbed page gives';
  return page.longestGapMs >= 2500 ? `a pause of ${Math.round(page.longestGapMs)} ms` : null;
}

/** Ends them on both replicas, so that the other one's idle connections are dead as well. */
async function terminateBackends({ cluster }: FaultCluster): Promise<void> {
  const text = `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'workspace-data-gateway'`;
  await Promise.all(cluster.replicas.map((node) => node.query(text)));
}
