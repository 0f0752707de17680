import { Bar } from 'cli-progress';
import { stripControls } from './api.js';
import type { PassProgress, PassReport } from './pass.js';

/** Shows a bar and sentences on a terminal, otherwise a JSON line for each pass on stdout. */
export interface Display {
  readonly onPage: ((progress: PassProgress) => void) | undefined;
  reportPass(report: PassReport): void;
  reportWait(reason: string, waitMs: number, whom?: string): void;
  note(sentence: string): void;
  /** Prints a result on stdout. */
  print(text: string): void;
}

export interface Outlets {
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
}

/** Shortest wait to report; shorter ones count when they follow each other for this long, then again after a while. */
const reportedMsMin = 4000;
const reportedAgainMs = 30_000;
/** Waits that are further apart do not belong together. */
const gapMsMax = 15_000;
const noteLengthMax = 3000;

export function openDisplay({ out, err }: Outlets, isTerminal = process.stdout.isTTY === true): Display {
  let bar: Bar | null = null;
  const isReported = makeWaitFilter();
  const clear = (): void => {
    bar?.stop();
    bar = null;
  };
  const note = (sentence: string): void => {
    clear();
    err(`${stripControls(sentence, noteLengthMax)}\n`);
  };
  return {
    onPage: isTerminal
      ? ({ resource, records, recordsLeft }) => {
          if (recordsLeft === null) return;
          bar ??= startBar(resource, records + recordsLeft);
          bar.setTotal(records + recordsLeft);
          bar.update(records);
        }
      : undefined,
    reportPass: (report) => {
      clear();
      out(`${isTerminal ? describePass(report) : JSON.stringify(report)}\n`);
    },
    reportWait: (reason, waitMs, whom = 'gateway') => {
      if (isReported(waitMs))
        note(`Waiting for the ${whom}: ${reason}${waitMs === 0 ? '' : `; again in ${Math.ceil(waitMs / 1000)} s`}.`);
    },
    note,
    print: out,
  };
}

/** Decides which waits to report. */
export function makeWaitFilter(now = () => performance.now()): (waitMs: number) => boolean {
  let [firstMs, lastMs, reportedMs] = Array<number>(3).fill(Number.NEGATIVE_INFINITY) as [number, number, number];
  return (waitMs) => {
    const nowMs = now();
    if (nowMs - lastMs > gapMsMax) firstMs = nowMs;
    lastMs = nowMs + waitMs;
    const isLong = waitMs === 0 || waitMs >= reportedMsMin;
    const isDue = nowMs + waitMs - firstMs >= reportedMsMin && nowMs - reportedMs >= reportedAgainMs;
    if (isLong || isDue) reportedMs = nowMs;
    return isLong || isDue;
  };
}

function startBar(resource: string, total: number): Bar {
  const bar = new Bar({
    format: `${resource} {bar} {value} of {total} records, {eta_formatted} left`,
    clearOnComplete: true,
  });
  bar.start(total, 0);
  return bar;
}

function describePass({ resource, whole, records, deleted, repaired, seconds }: PassReport): string {
  const kind = whole ? 'records, all of them' : 'changed records';
  const changes = [...(deleted > 0 ? [`${deleted} deleted`] : []), ...(repaired > 0 ? [`${repaired} repaired`] : [])];
  return `${resource}: ${[`${records} ${kind}`, ...changes].join(', ')}, in ${seconds} s`;
}
