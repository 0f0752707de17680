import type { MetricValues } from '../metrics.js';
import { StatusHistory } from './history.js';
import { historyMs, type StatusReport, type StatusSources, statusReport } from './report.js';
import { sampledMetrics, sampleOf } from './sample.js';

/** The status of a gateway, or of all workers of a parent, with the history of the last ten minutes. */
export interface Status {
  /** Begins the history. */
  start(): Promise<void>;
  report(): Promise<StatusReport>;
  close(): void;
}

/** A sample has about 130 numbers and costs 1 ms; the history takes 1 MB. */
const historyBounds = { everyMs: 5000, keptMs: historyMs };

/** `values` has the current values of the named metrics. */
export function statusOf(values: (names: readonly string[]) => Promise<MetricValues>, sources: StatusSources): Status {
  const history = new StatusHistory(
    async () => sampleOf(await values(sampledMetrics), performance.now()),
    historyBounds,
  );
  return {
    start: () => history.start(),
    report: async () => statusReport(await history.samples(), sources),
    close: () => history.close(),
  };
}
