import { setTimeout as sleep } from 'node:timers/promises';
import { runToEnd } from '../child.js';
import { eventLoopDelay } from '../event-loop.js';
import { runLoadOnce } from '../load.js';
import type { Options } from '../options.js';
import { detailsOfOther, pacedSeconds, runPaced } from '../paced.js';
import type { PacedResult } from '../paced-process.js';
import { cpuMsOf, peakMbOf, resetPeak } from '../process-cost.js';
import { type CaseResult, figure, type Table, type Verdict } from '../result.js';
import { alternate, median, pairedRatio } from '../rounds.js';
import type { Stage } from '../stage.js';
import type { Streams, StreamsResult } from '../streams-process.js';
import { largeWorkspace } from '../sync-workspace.js';

const goals = { megabytes: 0.9, p99: 3 };
const streamsAtOnce = 8;
/** As many as PostgreSQL has connections for large pages. */
const workspaces = 4;
const workOrders = 20_000;
/** As in the case of details. */
const connections = 32;
/** The lowest, so that the measured client, which has the same processors, does not wait for the readers of the pages. */
const priority = 19;
/** Shorter turns than of other cases, as there are many. */
const secondsMax = 3;
/** The streams begin before the first detail, and end after the last. */
const [leadSeconds, trailSeconds] = [0.5, 0.5];
const program = new URL('../streams-process.js', import.meta.url);

/** Result of a turn; absent parts were not under way. */
interface Turn {
  readonly streams?: StreamsResult;
  readonly details?: PacedResult;
  readonly gatewayCpuMs: number;
  readonly delayMs: number;
  readonly peakMb: number;
}
type Parts = Pick<Turn, 'streams' | 'details'>;

/** Pages of 10,000 work orders of four workspaces, one and eight at a time, and details of another workspace beside them. */
export async function togetherCase(stage: Stage, { rounds, ...options }: Options): Promise<CaseResult> {
  const seconds = Math.min(options.seconds, secondsMax);
  const tokens: string[] = [];
  for (let n = 1; n <= workspaces; n++) tokens.push((await largeWorkspace(stage, workOrders + n)).token);
  const paths = await detailsOfOther(stage);
  const paceSeconds = pacedSeconds(seconds);
  const paced = (): Promise<PacedResult> => runPaced(stage, paths, paceSeconds);
  const headers = { authorization: `Bearer ${stage.other.token}` };
  const load = { origin: stage.origin, headers, paths, connections, seconds };
  const many = (): Promise<PacedResult> => runLoadOnce(load, stage.gatewayPid, stage.replicaPid);
  const streams = async (count: number, streamSeconds: number): Promise<StreamsResult> => {
    const clients = Array.from({ length: count }, (_, n) => tokens[n % tokens.length] as string);
    const what: Streams = {
      url: `${stage.origin}/api/v1/werkbonnen?perPage=10000`,
      tokens: clients,
      seconds: streamSeconds,
    };
    return JSON.parse(await runToEnd(program, [JSON.stringify(what)], {}, priority)) as StreamsResult;
  };
  const beside = async (details: () => Promise<PacedResult>, detailSeconds: number): Promise<Parts> => {
    const [asked, reading] = await Promise.all([
      sleep(leadSeconds * 1000).then(details),
      streams(streamsAtOnce, detailSeconds + leadSeconds + trailSeconds),
    ]);
    return { details: asked, streams: reading };
  };
  const turns: Readonly<Record<string, () => Promise<Parts>>> = {
    'one page at a time': async () => ({ streams: await streams(1, seconds) }),
    'eight at a time': async () => ({ streams: await streams(streamsAtOnce, seconds) }),
    '100 details a second alone': async () => ({ details: await paced() }),
    '100 details a second beside eight pages': () => beside(paced, paceSeconds),
    'details over 32 connections alone': async () => ({ details: await many() }),
    'details over 32 connections beside eight pages': () => beside(many, seconds),
  };
  const names = Object.keys(turns);
  const results = await alternate(names, rounds, (name, round) => {
    process.stderr.write(`  together: round ${round + 1} of ${rounds}, ${name}\n`);
    return costOf(stage, turns[name] as () => Promise<Parts>);
  });
  const [one = [], eight = [], ...details] = results;
  const rates = (runs: readonly Turn[]): number[] =>
    runs.map(({ streams }) => streams?.megabytesPerSecond ?? Number.NaN);
  const p99s = (runs: readonly Turn[]): number[] => runs.map(({ details }) => details?.p99Ms ?? Number.NaN);
  const verdicts: Verdict[] = [
    {
      what: 'Eight pages of 10,000 at a time against one: MB/s',
      value: pairedRatio(rates(eight), rates(one)),
      goal: goals.megabytes,
      bound: 'at least',
      unit: '×',
    },
    ...['100 details a second', 'Details over 32 connections'].map(
      (what, i): Verdict => ({
        what: `${what} beside eight pages of 10,000 against alone: p99`,
        value: pairedRatio(p99s(details[2 * i + 1] ?? []), p99s(details[2 * i] ?? [])),
        goal: goals.p99,
        bound: 'at most',
        unit: '×',
      }),
    ),
  ];
  return { verdicts, tables: [tableOf(names, results, { rounds, seconds })], skipped: [] };
}

async function costOf(stage: Stage, turn: () => Promise<Parts>): Promise<Turn> {
  await eventLoopDelay(stage);
  resetPeak(stage.gatewayPid);
  const beforeMs = cpuMsOf(stage.gatewayPid);
  const parts = await turn();
  const gatewayCpuMs = cpuMsOf(stage.gatewayPid) - beforeMs;
  return { ...parts, gatewayCpuMs, delayMs: (await eventLoopDelay(stage)).p99Ms, peakMb: peakMbOf(stage.gatewayPid) };
}

function tableOf(
  names: readonly string[],
  results: readonly Turn[][],
  { rounds, seconds }: Pick<Options, 'rounds' | 'seconds'>,
): Table {
  return {
    title: 'Together',
    note: `Pages of 10,000 work orders of ${workspaces} workspaces, read one after the other by one client and by ${streamsAtOnce}; details of another workspace, at a fixed pace, and over ${connections} connections as fast as they are answered. The gateway, PostgreSQL and the clients share the machine's processors, of which eight pages can take all; the readers of the pages have the lowest priority. Medians of ${rounds} turns of ${seconds} s, at the fixed pace of ${pacedSeconds(seconds)} s. The delay is the time by which a timer of the gateway was late.`,
    head: [
      '',
      'MB/s',
      'details p50, ms',
      'details p99, ms',
      'not answered 200',
      'gateway CPU, ms',
      'delay p99, ms',
      'peak memory, MB',
    ],
    rows: names.map((name, i) => {
      const runs = results[i] as Turn[];
      const of = (value: (turn: Turn) => number | undefined): string =>
        figure(median(runs.map((run) => value(run) ?? Number.NaN)));
      return [
        name,
        of(({ streams }) => streams?.megabytesPerSecond),
        of(({ details }) => details?.p50Ms),
        of(({ details }) => details?.p99Ms),
        String(runs.reduce((sum, { details, streams }) => sum + (details?.failures ?? 0) + (streams?.refused ?? 0), 0)),
        of(({ gatewayCpuMs }) => gatewayCpuMs),
        of(({ delayMs }) => delayMs),
        of(({ peakMb }) => peakMb),
      ];
    }),
  };
}
