import { Bar } from 'cli-progress';
import { plain } from './api.js';
import type { PassProgress, PassReport } from './pass.js';

/** How `pull` tells what it does: a bar and sentences on a terminal, else a JSON line for each pass on stdout. */
export interface Display {
  readonly onPage: ((progress: PassProgress) => void) | undefined;
  passed(report: PassReport): void;
  waiting(reason: string, waitMs: number, whom?: string): void;
  note(sentence: string): void;
}

const toldMsMin = 4000;
const noteLengthMax = 3000;

export function display(isTerminal = process.stdout.isTTY === true): Display {
  let bar: Bar | null = null;
  const clear = (): void => {
    bar?.stop();
    bar = null;
  };
  const note = (sentence: string): void => {
    clear();
    process.stderr.write(`${plain(sentence, noteLengthMax)}\n`);
  };
  return {
    onPage: isTerminal
      ? ({ resource, records, recordsLeft }) => {
          if (recordsLeft === null) return;
          bar ??= started(resource, records + recordsLeft);
          bar.setTotal(records + recordsLeft);
          bar.update(records);
        }
      : undefined,
    passed: (report) => {
      clear();
      process.stdout.write(`${isTerminal ? sentenceOf(report) : JSON.stringify(report)}\n`);
    },
    waiting: (reason, waitMs, whom = 'gateway') => {
      if (waitMs === 0 || waitMs >= toldMsMin)
        note(`Waiting for the ${whom}: ${reason}${waitMs === 0 ? '' : `; again in ${Math.ceil(waitMs / 1000)} s`}.`);
    },
    note,
  };
}

function started(resource: string, total: number): Bar {
  const bar = new Bar({
    format: `${resource} {bar} {value} of {total} records, {eta_formatted} left`,
    clearOnComplete: true,
  });
  bar.start(total, 0);
  return bar;
}

function sentenceOf({ resource, whole, records, deleted, repaired, seconds }: PassReport): string {
  const kind = whole ? 'records, all of them' : 'changed records';
  const more = [...(deleted > 0 ? [`${deleted} deleted`] : []), ...(repaired > 0 ? [`${repaired} repaired`] : [])];
  return `${resource}: ${[`${records} ${kind}`, ...more].join(', ')}, in ${seconds} s`;
}
