import { print, redraw, say, terminalColumns } from '../src/cli/command.js';
import type { PassProgress, PassReport } from './pass.js';

/** The account that `pull` gives of its work. */
export interface PullDisplay {
  /** Absent where it would not be shown. */
  readonly page?: (progress: PassProgress) => void;
  waiting(reason: string, waitMs: number, what?: 'gateway' | 'destination'): void;
  /** The end of a pass, or of a comparison. */
  passed(report: Partial<PassReport> & Pick<PassReport, 'resource' | 'deleted' | 'added'>): void;
}

/** A progress bar on a terminal, else a JSON line for each pass. */
export function pullDisplay(): PullDisplay {
  return terminalColumns() === null ? jsonLines() : terminalDisplay();
}

const redrawMs = 100;
/** Shorter pauses are not worth a message. */
const waitMsMin = 4000;
const waitText = (reason: string, waitMs: number, what: string): string =>
  `Waiting ${Math.ceil(waitMs / 1000)} s for the ${what}: ${reason.replace(/\.$/, '')}.`;

function jsonLines(): PullDisplay {
  return {
    waiting: (reason, waitMs, what = 'gateway') => {
      if (waitMs >= waitMsMin || what === 'destination') say(waitText(reason, waitMs, what));
    },
    passed: (report) => print(JSON.stringify(report)),
  };
}

function terminalDisplay(): PullDisplay {
  let [resource, startedMs, drawnMs] = ['', 0, 0];
  const draw = (line: string): void => redraw(line.slice(0, (terminalColumns() ?? 0) - 1));
  return {
    page: (progress) => {
      const nowMs = performance.now();
      if (progress.resource !== resource || progress.pages === 1) [resource, startedMs] = [progress.resource, nowMs];
      if (nowMs - drawnMs < redrawMs && progress.pages > 1) return;
      drawnMs = nowMs;
      draw(progressBar(progress, (nowMs - startedMs) / 1000));
    },
    waiting: (reason, waitMs, what = 'gateway') => draw(waitText(reason, waitMs, what)),
    passed: (report) => {
      redraw('');
      print(sentence(report));
    },
  };
}

const barWidth = 24;
const number = (value: number): string => Math.round(value).toLocaleString('en');

/** A line such as `werkbonnen [######----] 50%  100,000 rows  8,000 rows/s  100 pages left`. */
export function progressBar({ resource, pages, records, pagesLeft }: PassProgress, seconds: number): string {
  const parts = [`${number(records)} rows`];
  if (seconds > 0) parts.push(`${number(records / seconds)} rows/s`);
  if (pagesLeft === null) return [resource, ...parts].join('  ');
  const done = pages / (pages + pagesLeft);
  const bar = '#'.repeat(Math.round(done * barWidth)).padEnd(barWidth, '-');
  return [`${resource} [${bar}] ${Math.floor(done * 100)}%`, ...parts, `${number(pagesLeft)} pages left`].join('  ');
}

function sentence({ resource, records, pages, deleted, added, seconds }: Parameters<PullDisplay['passed']>[0]): string {
  const read = records === undefined ? '' : `${number(records)} rows in ${number(pages ?? 0)} pages, `;
  const time = seconds === undefined ? '' : `, ${seconds} s`;
  return `${resource}: ${read}${number(deleted)} deleted, ${number(added)} added${time}`;
}
