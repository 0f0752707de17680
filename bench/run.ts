import { resolve } from 'node:path';
import type { Cluster } from '../demo/cluster/cluster.js';
import { projectRoot } from '../src/paths.js';
import { coldCase } from './cases/cold.js';
import { compressionCase } from './cases/compression.js';
import { deepCase } from './cases/deep.js';
import { floodCase } from './cases/flood.js';
import { customersCase, pagesCase } from './cases/pages.js';
import { portalCase } from './cases/portal.js';
import { detailsCase, listsCase } from './cases/requests.js';
import { scalingCase } from './cases/scaling.js';
import { syncCase } from './cases/sync.js';
import { togetherCase } from './cases/together.js';
import { workCase } from './cases/work.js';
import { writesCase } from './cases/writes.js';
import { type Contenders, startContenders } from './contenders.js';
import { type CaseName, help, type Options, parseOptions } from './options.js';
import { writeReport } from './report/files.js';
import { machineFacts } from './report/machine.js';
import { writeSection } from './report/section.js';
import { textReport } from './report/text.js';
import type { CaseResult } from './result.js';
import { runScale } from './scale/run.js';
import { type Stage, startStage } from './stage.js';

type StagedCase = Exclude<CaseName, 'scaling'>;

/** Dependencies of a case; contenders are started when the first case needs them. */
interface Bench {
  readonly stage: Stage;
  readonly options: Options;
  readonly contenders: () => Promise<Contenders>;
}

/** The cases on the servers of the stage; scaling has servers of its own. */
const cases: Readonly<Record<StagedCase, (bench: Bench) => Promise<CaseResult>>> = {
  cold: ({ stage, options }) => coldCase(stage, options),
  pages: ({ stage, options }) => pagesCase(stage, options),
  customers: ({ stage, options }) => customersCase(stage, options),
  details: async ({ stage, options, contenders }) => detailsCase(stage, await contenders(), options),
  lists: async ({ stage, options, contenders }) => listsCase(stage, await contenders(), options),
  deep: ({ stage, options }) => deepCase(stage, options),
  portal: ({ stage, options }) => portalCase(stage, options),
  sync: ({ stage, options }) => syncCase(stage, options),
  compression: ({ stage, options }) => compressionCase(stage, options),
  together: ({ stage, options }) => togetherCase(stage, options),
  flood: ({ stage, options }) => floodCase(stage, options),
  writes: ({ stage, options }) => writesCase(stage, options),
  work: ({ stage }) => workCase(stage),
};

try {
  const options = parseOptions(process.argv.slice(2));
  if (options === 'help') process.stdout.write(`${help}\n`);
  else await main(options);
} catch (error) {
  process.stderr.write(`${error instanceof TypeError ? error.message : (error as Error).stack}\n`);
  process.exitCode = 1;
}

async function main(options: Options): Promise<void> {
  const { scale, out } = options;
  if (scale !== null) return alone('scale.md', out, (onStarted) => runScale(scale, onStarted));
  const staged = options.cases.filter((name): name is StagedCase => name !== 'scaling');
  if (staged.length > 0) await run(options, staged);
  if (options.cases.includes('scaling')) await alone('scaling.md', out, (onStarted) => scalingCase(options, onStarted));
}

/** A case that breaks off is told in the report; the others go on. */
function notMeasured(name: CaseName, error: Error): CaseResult {
  process.exitCode = 1;
  return { verdicts: [], tables: [], skipped: [`The case ${name} broke off: ${error.message}`] };
}

/** Measures on servers of its own, which an interrupt stops, and writes a page of its own. */
async function alone(
  page: string,
  out: string | null,
  measure: (onStarted: (cluster: Cluster) => void) => Promise<CaseResult & { postgresVersion: string }>,
): Promise<void> {
  const startedMs = performance.now();
  let interrupt = (): void => undefined;
  const { postgresVersion, ...result } = await measure((cluster) => {
    interrupt = () => void cluster.stop().finally(() => process.exit(1));
    process.once('SIGINT', interrupt);
    process.once('SIGTERM', interrupt);
  });
  process.off('SIGINT', interrupt);
  process.off('SIGTERM', interrupt);
  const report = { ...result, machine: machineFacts(postgresVersion) };
  process.stdout.write(textReport(report));
  if (out !== null) writeSection(page, resolve(projectRoot, out), report);
  process.stderr.write(`Took ${Math.round((performance.now() - startedMs) / 1000)} s.\n`);
}

async function run(options: Options, names: readonly StagedCase[]): Promise<void> {
  const startedMs = performance.now();
  let contenders: Promise<Contenders> | undefined;
  const stage = await startStage(options.dir);
  const stop = async (): Promise<void> => {
    await (await contenders?.catch(() => undefined))?.stop();
    await stage.stop();
  };
  const interrupt = (): void => void stop().finally(() => process.exit(1));
  process.once('SIGINT', interrupt);
  process.once('SIGTERM', interrupt);
  try {
    const bench: Bench = {
      stage,
      options,
      contenders: () => {
        contenders ??= startContenders(stage);
        return contenders;
      },
    };
    const results: CaseResult[] = [];
    for (const [i, name] of names.entries()) {
      process.stderr.write(`[${i + 1}/${names.length}] ${name}\n`);
      results.push(await cases[name](bench).catch((error: Error) => notMeasured(name, error)));
    }
    const skipped = [...results.flatMap((result) => result.skipped), ...((await contenders)?.skipped ?? [])];
    const report = {
      verdicts: results.flatMap(({ verdicts }) => verdicts),
      tables: results.flatMap(({ tables }) => tables),
      skipped,
      machine: machineFacts(stage.postgresVersion),
    };
    process.stdout.write(textReport(report));
    if (options.out !== null) writeReport(resolve(projectRoot, options.out), report);
    process.stderr.write(`Took ${Math.round((performance.now() - startedMs) / 1000)} s.\n`);
  } finally {
    process.off('SIGINT', interrupt);
    process.off('SIGTERM', interrupt);
    await stop();
  }
}
