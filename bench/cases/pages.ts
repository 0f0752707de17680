import { loadResources } from '../../src/resource/definition/load.js';
import { compileStatements } from '../../src/resource/statements/statements.js';
import { Client } from '../client.js';
import { cpuMsOf, outputOf, peakMbOf, resetPeak, treeCpuMsOf } from '../processes.js';
import type { Options } from '../report.js';
import { type Figure, figure, type Measured, type Table } from '../report.js';
import { alternate, middle, pairedRatios } from '../rounds.js';
import { eventLoopDelayMs, type Stage } from '../stage.js';

/** Compares pages with COPY of the same rows in PostgreSQL's own text: encrypted or shielded values come as they are stored. */
const pages = [
  { name: '100,000 work orders', resource: 'werkbonnen', rows: 100_000 },
  { name: '10,000 customers', resource: 'klanten', rows: 10_000 },
  { name: '100,000 log entries', resource: 'logboeken', rows: 100_000 },
] as const;
type Page = (typeof pages)[number];

interface Turn {
  readonly wallMs: number;
  readonly firstByteMs: number;
  readonly bytes: number;
  readonly gatewayMs: number;
  readonly replicaMs: number;
  readonly delayMs: number;
  readonly peakMb: number;
}

/** Compares one page with COPY of the same rows, in turns. */
export async function pagesCase(stage: Stage, { rounds }: Options): Promise<Measured> {
  const figures: Record<string, Figure> = {};
  const rows: string[][] = [];
  for (const page of pages) {
    process.stderr.write(`  ${page.name}\n`);
    const sides = [() => readPage(stage, page), () => copy(stage, page)];
    for (const side of sides) await costOf(stage, side); // from here on both find the rows in memory
    if (page.resource === 'werkbonnen') sides.push(() => readPage(stage, page, '&fields=nummer,datum,status'));
    const [ours = [], theirs = [], cut] = await alternate(sides, rounds, (side) => costOf(stage, side));
    if (cut !== undefined)
      figures[`${page.name}, four of eleven members against all: rows/s`] = pairedRatios(
        ours,
        cut,
        ({ wallMs }) => wallMs,
      );
    figures[`${page.name} in one page against COPY: time`] = pairedRatios(ours, theirs, ({ wallMs }) => wallMs);
    figures[`${page.name}: p99 of the event loop's delay`] = ours.map(({ delayMs }) => delayMs);
    figures[`${page.name}: gateway memory`] = ours.map(({ peakMb }) => peakMb);
    const common = (turns: readonly Turn[]): string[] =>
      [middle(turns, ({ wallMs }) => wallMs), middle(turns, ({ replicaMs }) => replicaMs)].map(figure);
    const only = (['gatewayMs', 'firstByteMs', 'delayMs', 'peakMb'] as const).map((of) =>
      figure(middle(ours, (turn) => turn[of])),
    );
    rows.push(
      [`${page.name}, ${figure(middle(ours, ({ bytes }) => bytes / 1e6))} MB`, ...common(ours), ...only],
      ['COPY by psql', ...common(theirs), '', '', '', ''],
    );
  }
  const table: Table = {
    title: 'Pages against COPY',
    note: `Medians of ${rounds} turns each. Starting psql is part of COPY's time, the connection part of the page's.`,
    head: [
      '',
      'wall, ms',
      'replica CPU, ms',
      'gateway CPU, ms',
      'first byte, ms',
      'event-loop delay p99, ms',
      'peak memory, MB',
    ],
    rows,
  };
  return { figures, tables: [table] };
}

type Timed = Pick<Turn, 'wallMs' | 'firstByteMs' | 'bytes'>;

async function costOf(stage: Stage, side: () => Promise<Timed>): Promise<Turn> {
  await eventLoopDelayMs(stage);
  resetPeak(stage.gatewayPid);
  const [gatewayMs, replicaMs] = [cpuMsOf(stage.gatewayPid), treeCpuMsOf(stage.replicaPid)];
  const timed = await side();
  return {
    ...timed,
    gatewayMs: cpuMsOf(stage.gatewayPid) - gatewayMs,
    replicaMs: treeCpuMsOf(stage.replicaPid) - replicaMs,
    delayMs: await eventLoopDelayMs(stage),
    peakMb: peakMbOf(stage.gatewayPid),
  };
}

async function readPage(stage: Stage, { resource, rows }: Page, fields = ''): Promise<Timed> {
  const startedMs = performance.now();
  const client = await Client.connect(stage);
  const { firstByteMs, bytes } = await client.page(`/api/v1/${resource}?perPage=${rows}${fields}`);
  client.close();
  return { wallMs: performance.now() - startedMs, firstByteMs, bytes };
}

/** Writes the gateway's own statement with its values in it: the same columns, rows and order. */
async function copy(stage: Stage, { resource, rows }: Page): Promise<Timed> {
  const found = loadResources('').find(({ name }) => name === resource);
  const statement = found && compileStatements(found).list([]).rows.all;
  if (statement === undefined) throw new Error(`There is no list ${resource}.`);
  const values: Readonly<Record<string, string>> = { limit: String(rows) };
  const select = statement.text.replace(
    /\$(\d+)/g,
    (_, n) => `'${values[statement.parameters[Number(n) - 1] as string]}'`,
  );
  return { wallMs: await psqlMs(stage, `copy (${select}) to stdout`), firstByteMs: Number.NaN, bytes: Number.NaN };
}

/** Measures the wall time, in milliseconds, of a psql process that runs the command as the reader of the workspace. */
export async function psqlMs(
  { readerUrl, mac }: Pick<Stage, 'readerUrl' | 'mac'>,
  command: string,
  to = '/dev/null',
): Promise<number> {
  const url = new URL(readerUrl);
  // In the environment, because every user of the machine can read a process's arguments.
  const env = { PGOPTIONS: `-c gateway.workspace_id=${mac}`, PGPASSWORD: url.password };
  url.password = '';
  const startedMs = performance.now();
  await outputOf('psql', ['-X', '-q', '-o', to, '-c', command, url.href], { env });
  return performance.now() - startedMs;
}
