import type { Options } from '../options.js';
import { read } from '../portal.js';
import { type CaseResult, figure, type Table } from '../result.js';
import { alternate, median } from '../rounds.js';
import type { Stage } from '../stage.js';
import { standbyDelayMs, standstill } from '../standstill.js';

const rows = 100_000;
const chunkRows = 2000;
const modes = ['keyset', 'portal'] as const;
const names = { keyset: 'chunks by key', portal: 'one portal (pg-cursor)' };

/** The one primitive of every list against what one would take instead: what each costs, and what a slow client does with it. */
export async function portalCase(stage: Stage, { rounds }: Options): Promise<CaseResult> {
  const { readerUrl: url, workspace } = stage;
  const runs = await alternate(modes, rounds, (mode) =>
    read({ mode, url, workspace, rows, chunkRows }, stage.replicaPid),
  );
  const cost: Table = {
    title: 'Why no portal is held open: cost',
    note: `${rows.toLocaleString('en')} work orders read and written as JSON that is thrown away, ${chunkRows.toLocaleString('en')} rows at a time; medians of ${rounds} turns.`,
    head: ['', 'wall, ms', 'CPU, ms', 'replica CPU, ms', 'peak memory, MB'],
    rows: modes.map((mode, i) => {
      const middle = (of: (run: NonNullable<(typeof runs)[number]>[number]) => number): string =>
        figure(median((runs[i] ?? []).map(of)));
      return [
        names[mode],
        middle(({ wallMs }) => wallMs),
        middle(({ cpuMs }) => cpuMs),
        middle(({ replicaCpuMs }) => replicaCpuMs),
        middle(({ peakMb }) => peakMb),
      ];
    }),
  };
  const slow: string[][] = [];
  for (const mode of modes) {
    const { ms, failure } = await standstill(stage, mode);
    slow.push([names[mode], figure(ms), failure === null ? 'goes on' : `fails with ${failure}`]);
  }
  const effect: Table = {
    title: 'Why no portal is held open: a slow client',
    note: `A client takes 1,000 work orders, then nothing for 6 s, while rows are deleted and vacuumed on the primary. The replica's max_standby_streaming_delay is ${standbyDelayMs / 1000} s here; by default it is 30 s.`,
    head: ['', 'replay stands still, ms', 'the next read'],
    rows: slow,
  };
  return { verdicts: [], tables: [cost, effect], skipped: [] };
}
