import type { Batch, Gateway } from '../gateway.js';
import type { MetricValues } from '../ops/metrics.js';
import type { Readiness } from '../ops/status.js';

/** From a worker to its parent, beside the messages of peers/workers. */
export type WorkerReport =
  /** Sent every `reportMs` while the worker serves. */
  | { readonly type: 'report'; readonly readiness: Readiness }
  | { readonly type: 'ready'; readonly url: string }
  /** Asks for its definitions: what a parent sends before a worker listens is lost. */
  | { readonly type: 'definitions' }
  /** Why the worker does not start. */
  | { readonly type: 'refused'; readonly reason: string }
  | { readonly type: 'metrics'; readonly id: number; readonly metrics: MetricValues };

/** From the parent to a worker: answered with the worker's metrics and the same id. */
export interface MetricsQuestion {
  readonly type: 'metrics';
  readonly id: number;
}

/** From the parent to a worker. */
export interface BatchDefinitions extends Batch {
  readonly type: 'definitions';
}

/** Interval of a worker's reports. */
export const reportMs = 500;

/** Asks the parent for the definitions of this worker: those on disk can be broken by now, or not be meant to serve yet. */
export function definitionsOfParent(): Promise<BatchDefinitions> {
  return new Promise((resolve) => {
    process.once('message', resolve); // the parent sends nothing before
    process.send?.({ type: 'definitions' } satisfies WorkerReport, undefined, undefined, () => undefined);
  });
}

/** The worker's side: reports that its event loop runs, and answers the parent's questions for metrics. */
export function reportToParent({ readiness, metrics }: Gateway): void {
  const send = (message: WorkerReport): unknown => process.send?.(message, undefined, undefined, () => undefined); // the parent may be gone
  const report = (): unknown => send({ type: 'report', readiness: readiness() });
  report();
  setInterval(report, reportMs).unref();
  process.on('message', async ({ type, id }: MetricsQuestion) => {
    if (type === 'metrics') send({ type, id, metrics: await metrics() });
  });
}
