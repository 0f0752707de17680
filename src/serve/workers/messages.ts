import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { StartRefused } from '../../base/errors.js';
import type { Gateway, WorkerStart } from '../gateway.js';
import type { MetricValues } from '../ops/metrics.js';
import type { Readiness } from '../ops/status.js';
import { listenToParent, sendToParent } from '../peers/channel.js';

// Messages between a parent and its workers, except the counts (peers/workers.ts). docs/contribute/workers.md has the picture.

export type FromWorker =
  /** Comes once, and first. A gateway without workers sends it to the program that started it. */
  | { readonly type: 'ready'; readonly url: string; readonly opsUrl: string; readonly readiness: Readiness | null }
  /** Comes instead of `ready` if the start failed. */
  | { readonly type: 'refused'; readonly reason: string }
  /** Comes every `reportMs` after `ready`. */
  | { readonly type: 'report'; readonly readiness: Readiness }
  | { readonly type: 'metrics'; readonly id: number; readonly metrics: MetricValues };

/** Is sent to a ready worker, which answers with the same id. */
export type FromParent = { readonly type: 'metrics'; readonly id: number };

export const reportMs = 500;

/** Reports that the event loop runs, and answers questions for metrics. */
export function serveParent({ url, opsUrl, readiness, metrics }: Gateway): void {
  listenToParent<FromParent>({
    metrics: async ({ id }) => sendToParent<FromWorker>({ type: 'metrics', id, metrics: await metrics() }),
  });
  sendToParent<FromWorker>({ type: 'ready', url, opsUrl, readiness: readiness() });
  setInterval(() => sendToParent<FromWorker>({ type: 'report', readiness: readiness() }), reportMs).unref();
}

const pathName = 'WORKER_START';

/** Writes a file for one worker, which no other user of the machine can read. */
export function storeStart(start: WorkerStart): { readonly env: Record<string, string>; readonly remove: () => void } {
  const folder = tmpdir();
  try {
    const path = join(mkdtempSync(join(folder, 'gateway-worker-')), 'start.json');
    writeFileSync(path, JSON.stringify(start), { mode: 0o600 });
    return { env: { [pathName]: path }, remove: () => rmSync(dirname(path), { recursive: true, force: true }) };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new StartRefused(`The definitions for the workers cannot be written to ${folder}: ${code}. Set TMPDIR.`);
  }
}

export function readStart(env: NodeJS.ProcessEnv): WorkerStart {
  return JSON.parse(readFileSync(env[pathName] as string, 'utf8')) as WorkerStart;
}
