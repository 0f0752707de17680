import { type LoadCost, runLoad } from '../load.js';
import { type Contender, gatewayOf, startBare, startPlatformatic } from '../peers.js';
import type { Options } from '../report.js';
import { figure, type Measured, type Table } from '../report.js';
import { alternate, middle, pairedRatios } from '../rounds.js';
import { rowsOf, type Stage } from '../stage.js';

const connections = 32;
const idsAsked = 2000;
/**
 * Time in which just-in-time compilers and caches settle; not counted. After 3 s Node.js 24 had not compiled all: single records took the
 * gateway 130 µs instead of 120, and the bare server, which has less to compile, 90 in both.
 */
const warmUpSeconds = 12;
/** Begins each turn, not counted: V8 discards compiled code of a server that has rested while the others had their turns. */
const leadInSeconds = 2;

/** Compares single installations, thousands of them, and lists of the first 100, with the bare server and with Platformatic DB. */
export async function requestsCase(stage: Stage, options: Options): Promise<Measured> {
  const text = 'select id from app.installaties where workspace_id = $1 order by md5(id::text) limit $2';
  const ids = (await rowsOf(stage.replicaUrl, text, [stage.workspace, String(idsAsked)])).map(([id]) => id as string);
  const contenders = [gatewayOf(stage), await startBare(stage), await startPlatformatic(stage)];
  const details = await compare('Detail', stage, contenders, ({ detail }) => ids.map(detail), options);
  const lists = await compare('List of 100', stage, contenders, ({ list }) => [list], options);
  return { figures: { ...details.figures, ...lists.figures }, tables: [...details.tables, ...lists.tables] };
}

/** The first contender is the gateway. */
async function compare(
  title: string,
  { replicaPid }: Stage,
  contenders: readonly Contender[],
  paths: (contender: Contender) => string[],
  { rounds, seconds }: Options,
): Promise<Measured> {
  const run = (contender: Contender, runSeconds: number): Promise<LoadCost> => {
    const { origin, headers, pid } = contender;
    return runLoad(
      { origin, headers, requests: { gets: paths(contender) }, connections, seconds: runSeconds },
      pid,
      replicaPid,
    );
  };
  for (const contender of contenders) await run(contender, Math.min(warmUpSeconds, 4 * seconds));
  const results = await alternate(contenders, rounds, async (contender) => {
    process.stderr.write(`  ${title}: ${contender.name}\n`);
    await run(contender, leadInSeconds);
    return run(contender, seconds);
  });
  const rows = contenders.map(({ name }, i) => {
    const runs = results[i] as LoadCost[];
    const of = (value: (run: LoadCost) => number): string => figure(middle(runs, value));
    return [
      name,
      ...[of((run) => run.perSecond), of((run) => run.p50Ms), of((run) => run.p99Ms), of((run) => run.rssMb)],
      // Milliseconds per request are seconds per 1,000 requests.
      ...[of((run) => run.serverCpuMs / run.requests), of((run) => run.databaseCpuMs / run.requests)],
    ];
  });
  const table: Table = {
    title,
    note: `wrk, ${connections} keep-alive connections, ${rounds} turns of ${seconds} s each, after ${leadInSeconds} s that do not count, medians. CPU is that of each one's process and of the replica's, in seconds per 1,000 requests.`,
    head: ['', 'requests/s', 'p50, ms', 'p99, ms', 'memory, MB', 'CPU s/1,000', 'replica CPU s/1,000'],
    rows,
  };
  const ratios = contenders.slice(1).map(({ name }, i) => {
    const value = pairedRatios(results[0], results[i + 1], ({ perSecond }) => perSecond);
    return [`${title} against ${name}: requests/s`, value] as const;
  });
  return { figures: Object.fromEntries(ratios), tables: [table] };
}
