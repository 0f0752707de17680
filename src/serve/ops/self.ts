import { readdirSync, readFileSync } from 'node:fs';
import { getHeapStatistics } from 'node:v8';
import type { EventLoop } from '../../base/flow/event-loop.js';

/** A bound that the process itself has reached. The status names it before it reports on any server. */
export interface Lack {
  readonly what: keyof typeof lacks;
  readonly sentence: string;
}

export interface OwnSources {
  readonly loop: Pick<EventLoop, 'measureLateMs'>;
  /** Time for which the log has taken no byte of the waiting lines. */
  readonly logStuckMs: () => number;
}

/** Bound for the lateness of the loop in the last minute. */
const lateMsMax = 12_000;
const logStuckMsMax = 10_000;
const ratioMax = 0.9;
const formatMegabytes = (bytes: number): string => Math.round(bytes / 1_048_576).toLocaleString('en');

const lacks = {
  processor: ({ loop }: OwnSources) => {
    const lateMs = loop.measureLateMs();
    return lateMs > lateMsMax && `it had no processor time for ${Math.round(lateMs / 1000)} s of the last minute`;
  },
  descriptors: () => {
    const [open, max] = [countDescriptors(), readDescriptorsMax()];
    return max !== null && open > max * ratioMax && `${open} of ${max} file descriptors are open (EMFILE beyond them)`;
  },
  memory: () => {
    const { used_heap_size: used, heap_size_limit: max } = getHeapStatistics();
    return used > max * ratioMax && `${formatMegabytes(used)} of ${formatMegabytes(max)} MB of its heap are used`;
  },
  log: ({ logStuckMs }: OwnSources) =>
    logStuckMs() > logStuckMsMax && `nothing has read its log for ${Math.round(logStuckMs() / 1000)} s`,
} satisfies Readonly<Record<string, (sources: OwnSources) => string | false>>;

/** Lacks that make observations of servers worthless. */
const blinding: readonly string[] = ['processor', 'descriptors'];

export const lackNames = Object.keys(lacks) as Lack['what'][];

export function listLacks(sources: OwnSources): Lack[] {
  return lackNames.flatMap((what) => {
    const words = lacks[what](sources);
    return words === false ? [] : [{ what, sentence: `The gateway itself is at its limits: ${words}.` }];
  });
}

export function canJudge(all: readonly Lack[]): boolean {
  return !all.some(({ what }) => blinding.includes(what));
}

/** Returns null if the system does not tell. Node raises the soft limit to the hard one as it starts. */
export function readDescriptorsMax(): number | null {
  try {
    const [, soft = ''] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return soft === '' ? null : Number(soft);
  } catch (error) {
    return isExhausted(error) ? 0 : null; // this file takes a descriptor, too
  }
}

function countDescriptors(): number {
  try {
    return readdirSync('/proc/self/fd').length;
  } catch (error) {
    return isExhausted(error) ? Number.POSITIVE_INFINITY : 0;
  }
}

function isExhausted(error: unknown): boolean {
  return /^E[MN]FILE$/.test((error as NodeJS.ErrnoException).code ?? '');
}
