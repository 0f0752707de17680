import { copyMs, hasPsql, psqlStartMs } from '../copy.js';
import { type DownloadCost, download } from '../download.js';
import { type EventLoopDelay, eventLoopDelay } from '../event-loop.js';
import type { Options } from '../options.js';
import { rssMbOf, treeCpuMsOf } from '../process-cost.js';
import { type CaseResult, figure, type Table, type Verdict } from '../result.js';
import { alternate, median, pairedRatio } from '../rounds.js';
import type { Stage } from '../stage.js';

const rssGoalMb = 150;
const firstByteGoalMs = 30;
const delayGoalMs = 10;

/** 100,000 work orders in one page against COPY, and the memory of pages of 10,000, 100,000 and 200,000. */
export async function pagesCase(stage: Stage, options: Options): Promise<CaseResult> {
  const timed = await againstCopy(stage, options, 'werkbonnen', 100_000, 1.1);
  const firstByteMs = median(timed.pages.map((page) => page.firstByteMs));
  const memory = await memoryOf(stage);
  const verdicts: Verdict[] = [
    ...timed.verdicts,
    {
      what: '100,000 work orders: first byte',
      value: firstByteMs,
      goal: firstByteGoalMs,
      bound: 'at most',
      unit: 'ms',
    },
    ...memory.verdicts,
  ];
  return { verdicts, tables: [...timed.tables, memory.table], skipped: timed.skipped };
}

/** 10,000 customers, seven encrypted fields each, against COPY of the ciphertext; AES is cheaper from Node 24 on. */
export async function customersCase(stage: Stage, options: Options): Promise<CaseResult> {
  const isNode24 = Number.parseInt(process.versions.node, 10) >= 24;
  const timed = await againstCopy(stage, options, 'klanten', 10_000, isNode24 ? 1.3 : 2.5);
  const value = median(timed.delaysMs);
  const what = "10,000 customers in one page: p99 of the event loop's delay";
  return { ...timed, verdicts: [...timed.verdicts, { what, value, goal: delayGoalMs, bound: 'at most', unit: 'ms' }] };
}

/** One turn of either side. */
interface Turn {
  readonly wallMs: number;
  readonly replicaCpuMs: number;
  readonly page?: DownloadCost;
  readonly delay?: EventLoopDelay;
}

/** One page and COPY of the same rows, in turns. */
async function againstCopy(
  stage: Stage,
  { rounds }: Options,
  resource: 'werkbonnen' | 'klanten',
  rows: number,
  goal: number,
): Promise<CaseResult & { pages: DownloadCost[]; delaysMs: number[] }> {
  const what = `${rows.toLocaleString('en')} ${resource === 'klanten' ? 'customers' : 'work orders'} in one page`;
  const readPage = async (): Promise<Omit<Turn, 'replicaCpuMs'>> => {
    await eventLoopDelay(stage);
    const page = await download(pageOf(stage, resource, rows), stage.gatewayPid);
    return { wallMs: page.wallMs, page, delay: await eventLoopDelay(stage) };
  };
  const sides: (() => Promise<Omit<Turn, 'replicaCpuMs'>>)[] = [
    readPage,
    () => copyMs(stage, resource, rows).then((wallMs) => ({ wallMs })),
  ];
  const compared = hasPsql();
  if (!compared) sides.pop();
  for (const side of sides) await side(); // from here on both find the rows in memory
  const turns = await alternate<(typeof sides)[number], Turn>(sides, rounds, async (side) => {
    const beforeMs = treeCpuMsOf(stage.replicaPid);
    const turn = await side();
    return { ...turn, replicaCpuMs: treeCpuMsOf(stage.replicaPid) - beforeMs };
  });
  const [ours = [], theirs = []] = turns;
  const pages = ours.flatMap(({ page }) => page ?? []);
  const delaysMs = ours.flatMap(({ delay }) => delay?.p99Ms ?? []);
  const ratio = pairedRatio(
    ours.map(({ wallMs }) => wallMs),
    theirs.map(({ wallMs }) => wallMs),
  );
  const of = (values: readonly number[]): string => figure(median(values));
  const both = (side: readonly Turn[]): string[] => [
    of(side.map(({ wallMs }) => wallMs)),
    of(side.map(({ replicaCpuMs }) => replicaCpuMs)),
  ];
  const only = [pages.map((page) => page.serverCpuMs), pages.map((page) => page.firstByteMs), delaysMs].map(of);
  const table: Table = {
    title: what,
    note: compared
      ? `Median of ${rounds} turns each; the page took ${figure(ratio)} × the time of COPY. Starting psql and connecting is ${figure(await psqlStartMs(stage))} ms of its time; the page's client counts from its connection on. The page has ${of(pages.map(({ bytes }) => bytes / 1e6))} MB.`
      : `Median of ${rounds} turns.`,
    head: ['', 'wall, ms', 'replica CPU, ms', 'gateway CPU, ms', 'first byte, ms', 'event-loop delay p99, ms'],
    rows: [['gateway', ...both(ours), ...only], ...(compared ? [['COPY by psql', ...both(theirs), '', '', '']] : [])],
  };
  return {
    verdicts: compared ? [{ what: `${what} against COPY: time`, value: ratio, goal, bound: 'at most', unit: '×' }] : [],
    tables: [table],
    skipped: compared ? [] : [`${what} was not compared with COPY: there is no psql on this machine.`],
    pages,
    delaysMs,
  };
}

async function memoryOf(stage: Stage): Promise<{ verdicts: Verdict[]; table: Table }> {
  const verdicts: Verdict[] = [];
  const rows: string[][] = [];
  for (const count of [10_000, 100_000, 200_000]) {
    const before = rssMbOf(stage.gatewayPid);
    const { bytes, peakMb } = await download(pageOf(stage, 'werkbonnen', count), stage.gatewayPid);
    const text = count.toLocaleString('en');
    rows.push([text, figure(bytes / 1e6), figure(before), figure(peakMb)]);
    verdicts.push({
      what: `Gateway memory, page of ${text}`,
      value: peakMb,
      goal: rssGoalMb,
      bound: 'at most',
      unit: 'MB',
    });
  }
  const note = 'Resident memory of the gateway process before a page of work orders, and its peak while it was read.';
  return {
    verdicts,
    table: { title: 'Memory by page size', note, head: ['rows', 'page, MB', 'before, MB', 'peak, MB'], rows },
  };
}

function pageOf({ origin, token }: Stage, resource: string, rows: number): { url: string; token: string } {
  return { url: `${origin}/api/v1/${resource}?perPage=${rows}`, token };
}
