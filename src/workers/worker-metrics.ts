import cluster, { type Worker } from 'node:cluster';
import { setTimeout as sleep } from 'node:timers/promises';
import { AggregatorRegistry, type Registry } from 'prom-client';
import { type MetricValues, type ReadMetrics, valuesOf } from '../ops/metrics.js';
import type { MetricsQuestion, WorkerReport } from './reports.js';

/** How long a scrape waits for a worker. */
const answerMsMax = 1000;

/**
 * The metrics of all workers together. A worker that does not answer, or has ended, is present with the counts of its last
 * answer, so that sums do not fall; its gauges are left out, because they no longer hold.
 */
export class WorkerMetrics {
  readonly #own: ReadMetrics;
  /** The counts of the last answer of each worker that runs. */
  readonly #counts = new Map<number, MetricValues>();
  /** The sum of the last counts of all workers that have ended. */
  #ended: Promise<MetricValues> = Promise.resolve([]);
  readonly #waiting = new Map<number, (metrics: MetricValues) => void>();
  #lastId = 0;

  /** `own` has the parent's metrics. */
  constructor(own: ReadMetrics) {
    this.#own = own;
    cluster.on('message', (_, message: WorkerReport) => {
      if (message?.type === 'metrics') this.#waiting.get(message.id)?.(message.metrics);
    });
  }

  /** Keeps the counts of a worker that has ended. */
  retire({ id }: Worker): void {
    const counts = this.#counts.get(id) ?? [];
    this.#counts.delete(id);
    this.#ended = this.#ended.then((ended) => valuesOf(sumOf([ended, counts])));
  }

  /** The text for Prometheus; takes a second at most. */
  async text(workers: readonly Worker[]): Promise<string> {
    return (await this.#sum(workers)).metrics();
  }

  /** The metrics with these names; takes a second at most. */
  async values(workers: readonly Worker[], names: readonly string[]): Promise<MetricValues> {
    return valuesOf(await this.#sum(workers, names), names);
  }

  async #sum(workers: readonly Worker[], names?: readonly string[]): Promise<Registry> {
    const ended = this.#ended; // of now: a worker that ends from here on counts by its answer
    const answers = await Promise.all(workers.map((worker) => this.#ask(worker, names)));
    return sumOf([await this.#own(names), await ended, ...answers]);
  }

  async #ask(worker: Worker, names?: readonly string[]): Promise<MetricValues> {
    const kept = this.#counts.get(worker.id) ?? [];
    const id = ++this.#lastId;
    const answered = new Promise<MetricValues>((resolve) => this.#waiting.set(id, resolve));
    worker.send({ type: 'metrics', id, names } satisfies MetricsQuestion, () => undefined); // a worker that has died does not answer
    const metrics = await Promise.race([answered, sleep(answerMsMax, null, { ref: false })]);
    this.#waiting.delete(id);
    if (metrics === null || worker.isDead()) return kept;
    const isOther = ({ name }: MetricValues[number]): boolean => names !== undefined && !names.includes(name);
    const others = (this.#counts.get(worker.id) ?? []).filter(isOther);
    this.#counts.set(worker.id, [...others, ...metrics.filter(isCount)]);
    return metrics;
  }
}

/** prom-client's declaration says that `type` is a number of an enum; it is the word of the text format. */
function isCount({ type }: MetricValues[number]): boolean {
  return (type as unknown as string) !== 'gauge';
}

function sumOf(parts: readonly MetricValues[]): Registry {
  return AggregatorRegistry.aggregate([...parts]) as Registry;
}
