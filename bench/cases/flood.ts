import { setTimeout as sleep } from 'node:timers/promises';
import { canPin, pinnedApart } from '../affinity.js';
import { type LoadCost, runLoadOnce } from '../load.js';
import type { Options } from '../options.js';
import { detailsOfOther, pacedSeconds, runPaced } from '../paced.js';
import type { PacedResult } from '../paced-process.js';
import { type CaseResult, figure, type Table, type Verdict } from '../result.js';
import { alternate, median, pairedRatio } from '../rounds.js';
import { rowsOf, type Stage } from '../stage.js';

const goal = 2;
const connections = 64;
/** The lowest, so that the measured client, which has the same processors, does not wait for the flood's. */
const priority = 19;
/** The flood begins before the first measured request, and ends after the last. */
const [leadSeconds, trailSeconds] = [1, 1];

interface Turn {
  readonly details: PacedResult;
  readonly flood: LoadCost | null;
}

/** Details of a workspace, alone and while another workspace asks for as much as it can: the limit of requests is lifted. */
export async function floodCase(stage: Stage, options: Options): Promise<CaseResult> {
  if (!canPin())
    return { verdicts: [], tables: [], skipped: ['The flood was not measured: it needs taskset and two processors.'] };
  return pinnedApart(stage, () => flood(stage, options));
}

async function flood(stage: Stage, { rounds, ...options }: Options): Promise<CaseResult> {
  const seconds = pacedSeconds(options.seconds);
  const paths = await detailsOfOther(stage);
  const details = (): Promise<PacedResult> => runPaced(stage, paths, seconds);
  const text = 'select id from app.installaties where workspace_id = $1 order by id limit 1000';
  const ids = await rowsOf(stage.replicaUrl, text, [stage.workspace]);
  const floods: Readonly<Record<string, readonly string[]>> = {
    'beside details': ids.map(([id]) => `/api/v1/installaties/${id}`),
    'beside pages of 100 work orders': ['/api/v1/werkbonnen?perPage=100'],
    'beside refused requests': ['/api/v1/nothing'],
  };
  const beside = async (paths: readonly string[]): Promise<Turn> => {
    const headers = { authorization: `Bearer ${stage.token}` };
    const floodSeconds = seconds + leadSeconds + trailSeconds;
    const load = { origin: stage.origin, headers, paths, connections, seconds: floodSeconds, priority };
    const [measured, flooding] = await Promise.all([
      sleep(leadSeconds * 1000).then(details),
      runLoadOnce(load, stage.gatewayPid, stage.replicaPid),
    ]);
    return { details: measured, flood: flooding };
  };
  const turns: [string, () => Promise<Turn>][] = [
    ['alone', async () => ({ details: await details(), flood: null })],
    ...Object.entries(floods).map(([name, paths]): [string, () => Promise<Turn>] => [name, () => beside(paths)]),
  ];
  for (const [, turn] of turns) await turn(); // not counted: V8 compiles during the first seconds of a load
  const results = await alternate(turns, rounds, ([name, turn], round) => {
    process.stderr.write(`  flood: round ${round + 1} of ${rounds}, details ${name}\n`);
    return turn();
  });
  const p99s = (runs: readonly Turn[] = []): number[] => runs.map(({ details: { p99Ms } }) => p99Ms);
  const verdicts = turns.slice(1).map(
    ([name], i): Verdict => ({
      what: `Details ${name} of a flood, against alone: p99`,
      value: pairedRatio(p99s(results[i + 1]), p99s(results[0])),
      goal,
      bound: 'at most',
      unit: '×',
    }),
  );
  const table: Table = {
    title: 'A flood',
    note: `100 details a second of a workspace, alone and beside another workspace that floods the gateway over ${connections} connections; its limit of requests is lifted, and refused requests are answered 404 without the database. Answers of the flood that are not 200 count, too. Medians of ${rounds} turns of ${seconds} s. The gateway's event loop has a processor to itself; its other threads, PostgreSQL and the clients have the rest, where the flood's client has the lowest priority.`,
    head: ['', 'p50, ms', 'p99, ms', 'not answered 200', 'flood, answers/s', 'gateway CPU, %'],
    rows: turns.map(([name], i) => {
      const runs = results[i] as Turn[];
      const of = (value: (turn: Turn) => number): string => figure(median(runs.map(value)));
      const floodSeconds = seconds + leadSeconds + trailSeconds;
      return [
        name,
        of(({ details: { p50Ms } }) => p50Ms),
        of(({ details: { p99Ms } }) => p99Ms),
        String(runs.reduce((sum, { details: { failures } }) => sum + failures, 0)),
        ...(i === 0
          ? ['', '']
          : [
              of(({ flood }) => (flood === null ? Number.NaN : (flood.requests + flood.failures) / floodSeconds)),
              of(({ flood }) => (flood?.serverCpuMs ?? Number.NaN) / floodSeconds / 10),
            ]),
      ];
    }),
  };
  return { verdicts, tables: [table], skipped: [] };
}
