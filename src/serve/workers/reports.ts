import type { Batch, Gateway } from '../gateway.js';
import type { MetricValues } from '../ops/metrics.js';
import type { Readiness } from '../ops/status.js';

export type WorkerReport =
  /** Every `reportMs` while the worker serves. */
  | { readonly type: 'report'; readonly readiness: Readiness }
  | { readonly type: 'ready'; readonly url: string; readonly opsUrl: string }
  /** Asked for, because what a parent sends before a worker listens is lost. */
  | { readonly type: 'definitions' }
  | { readonly type: 'refused'; readonly reason: string }
  | { readonly type: 'metrics'; readonly id: number; readonly metrics: MetricValues };

/** Answered with the worker's metrics and the same id. */
export interface MetricsQuestion {
  readonly type: 'metrics';
  readonly id: number;
}

export interface BatchDefinitions extends Batch {
  readonly type: 'definitions';
}

export const reportMs = 500;

/** Those on disk can be broken by now, or not be meant to serve yet. */
export function definitionsOfParent(): Promise<BatchDefinitions> {
  return new Promise((resolve) => {
    process.once('message', resolve); // the parent sends nothing before
    sendToParent({ type: 'definitions' });
  });
}

/** The parent may be gone. */
export function sendToParent(message: WorkerReport): void {
  process.send?.(message, undefined, undefined, () => undefined);
}

/** Reports that the event loop runs, and answers questions for metrics. */
export function reportToParent({ readiness, metrics }: Gateway): void {
  const report = (): void => sendToParent({ type: 'report', readiness: readiness() });
  report();
  setInterval(report, reportMs).unref();
  process.on('message', async ({ type, id }: MetricsQuestion) => {
    if (type === 'metrics') sendToParent({ type, id, metrics: await metrics() });
  });
}
