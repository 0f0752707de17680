import { encodingsOf } from '../../src/http/encodings.js';
import { loadSettings } from '../../src/settings.js';
import { runToEnd } from '../child.js';
import type { LevelCost } from '../compress-process.js';
import { type DownloadCost, download } from '../download.js';
import { type EventLoopDelay, eventLoopDelay } from '../event-loop.js';
import type { Options } from '../options.js';
import { type CaseResult, figure, type Table, type Verdict } from '../result.js';
import { alternate, median } from '../rounds.js';
import type { Stage } from '../stage.js';

const rows = 100_000;
const goals = { delayMs: 10, rssMb: 150 };
const { compression } = loadSettings({});
const program = new URL('../compress-process.js', import.meta.url);

type Turn = DownloadCost & { readonly delay: EventLoopDelay };

/** 100,000 work orders in one page, in each encoding in turn; and the cost of each level, by which the default was chosen. */
export async function compressionCase(stage: Stage, { rounds }: Options): Promise<CaseResult> {
  const names = ['identity', ...encodingsOf(compression).map(({ name }) => name)];
  const turn = async (encoding: string): Promise<Turn> => {
    await eventLoopDelay(stage);
    const { origin, token, gatewayPid } = stage;
    const what = { url: `${origin}/api/v1/werkbonnen?perPage=${rows}`, token, encoding };
    return { ...(await download(what, gatewayPid)), delay: await eventLoopDelay(stage) };
  };
  for (const name of names) await turn(name);
  const results = await alternate(names, rounds, (name, round) => {
    process.stderr.write(`  compression: round ${round + 1} of ${rounds}, ${name}\n`);
    return turn(name);
  });
  const of = (i: number, value: (turn: Turn) => number): number => median((results[i] as Turn[]).map(value));
  const megabytes = of(0, ({ bytes }) => bytes) / 1e6;
  const plainMs = of(0, ({ serverCpuMs }) => serverCpuMs);
  const table: Table = {
    title: 'Compression: 100,000 work orders in one page',
    note: `Medians of ${rounds} turns each; the page has ${figure(megabytes)} MB without compression, and MB in this table are those. The gateway's settings are the default, COMPRESSION=${compression}. The delay of its event loop is the time by which a timer was late while the page was read.`,
    head: [
      '',
      'size, %',
      'wall, ms/MB',
      'gateway CPU, ms/MB',
      'of it compression',
      'first byte, ms',
      'delay p99, ms',
      'delay max, ms',
      'peak memory, MB',
    ],
    rows: names.map((name, i) => {
      const cpuMs = of(i, ({ serverCpuMs }) => serverCpuMs);
      return [
        name,
        figure(of(i, ({ bytes }) => bytes) / megabytes / 1e4),
        figure(of(i, ({ wallMs }) => wallMs) / megabytes),
        figure(cpuMs / megabytes),
        figure((cpuMs - plainMs) / megabytes),
        figure(of(i, ({ firstByteMs }) => firstByteMs)),
        figure(of(i, ({ delay }) => delay.p99Ms)),
        figure(of(i, ({ delay }) => delay.maxMs)),
        figure(of(i, ({ peakMb }) => peakMb)),
      ];
    }),
  };
  const verdicts = names.flatMap((name, i): Verdict[] => {
    const what = `100,000 work orders as ${name}`;
    const delay = of(i, ({ delay }) => delay.p99Ms);
    const memory = of(i, ({ peakMb }) => peakMb);
    return [
      {
        what: `${what}: p99 of the event loop's delay`,
        value: delay,
        goal: goals.delayMs,
        bound: 'at most',
        unit: 'ms',
      },
      { what: `${what}: gateway memory`, value: memory, goal: goals.rssMb, bound: 'at most', unit: 'MB' },
    ];
  });
  return { verdicts, tables: [table, await levelsTable(stage)], skipped: [] };
}

async function levelsTable({ origin, token }: Stage): Promise<Table> {
  const costs = JSON.parse(await runToEnd(program, [JSON.stringify({ origin, token })], {})) as LevelCost[];
  const inUse = compression.split(' ');
  return {
    title: 'Levels of compression',
    note: 'The first 10,000 rows of each list, compressed by themselves in pieces of CHUNK_BYTES; medians of three turns. The levels in use are marked.',
    head: ['', 'CPU, ms/MB', 'wall, ms/MB', 'size, %', 'in use'],
    rows: costs.map(({ level, cpuMsPerMb, wallMsPerMb, size }) => [
      level,
      ...[cpuMsPerMb, wallMsPerMb, size * 100].map(figure),
      inUse.includes(level) ? '×' : '',
    ]),
  };
}
