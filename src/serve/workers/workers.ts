import type { Worker } from 'node:cluster';
import { setTimeout as sleep } from 'node:timers/promises';
import { AggregatorRegistry, Gauge, type Registry } from 'prom-client';
import type { Observe } from '../../base/events.js';
import { Closers } from '../../base/flow/closers.js';
import { pick } from '../../base/members.js';
import { loadResources } from '../../resource/definition/load.js';
import type { Resource } from '../../resource/definition/resource.js';
import type { Settings } from '../../settings.js';
import { type FixedBody, makeDescriptions } from '../http/descriptions.js';
import { close, listen } from '../http/listeners.js';
import { apiVersion } from '../http/render.js';
import { documentSettings } from '../openapi/values.js';
import { openLog } from '../ops/log.js';
import { gauges, type MetricValues, makeEventMetrics } from '../ops/metrics.js';
import { makeOpsServer } from '../ops/ops-server.js';
import { reportStatus } from '../ops/status.js';
import { listenToWorkers, sendToWorker } from '../peers/channel.js';
import { serveWorkers } from '../peers/workers.js';
import type { FromParent, FromWorker } from './messages.js';
import { Supervisor } from './supervisor.js';

export interface Workers {
  readonly url: string;
  readonly opsUrl: string;
  readonly observe: Observe;
  /** Reads settings, definitions, codecs and keys again; an event reports the outcome. */
  reload(): void;
  stop(): Promise<void>;
}

/** Starts whole gateways (node:cluster). Throws StartRefused when a worker fails before it was ready. */
export async function startWorkers(settings: Settings, readAgain: () => Settings): Promise<Workers> {
  const resources = loadResources(settings.resourcesDir);
  const closers = new Closers();
  const counters = makeEventMetrics();
  const observe: Observe = (event) => {
    log.add(event);
    counters.observe(event);
  };
  const log = openLog(settings.logLevel, observe);
  closers.add(() => log.close());
  serveWorkers();
  const metrics = new WorkerMetrics(counters.values);
  const supervisor = new Supervisor(settings.webConcurrency, resources, observe, (worker) => metrics.retire(worker));
  closers.add(() => supervisor.stop());
  addReloadGauge([counters.registry], supervisor);
  const docs = new WeakMap([[resources, makeOpsDocs(settings, resources)]]);
  const reload = (): void => {
    try {
      const now = readAgain();
      const resourcesNow = loadResources(now.resourcesDir);
      docs.set(resourcesNow, makeOpsDocs(now, resourcesNow));
      supervisor.reload(resourcesNow);
    } catch (error) {
      supervisor.refuseReload((error as Error).message);
    }
  };
  try {
    const url = await supervisor.start();
    const pages = makePages(settings, supervisor, metrics);
    const ops = makeOpsServer({ ...pages, docs: () => docs.get(supervisor.resources) ?? null }, settings, observe);
    const opsUrl = await listen(ops, settings.opsHost, settings.opsPort);
    closers.add(() => close(ops));
    return { url, opsUrl, observe, reload, stop: () => closers.terminate() };
  } catch (error) {
    await closers.terminate().catch(() => undefined); // the error of the start is reported, not the error of the end
    throw error;
  }
}

function makePages({ webConcurrency, lagMaxMs }: Settings, supervisor: Supervisor, metrics: WorkerMetrics) {
  return {
    status: () => {
      const workers = { configured: webConcurrency, reporting: supervisor.reporting };
      return reportStatus(supervisor.getReadiness(), lagMaxMs, workers);
    },
    alive: () => supervisor.alive,
    metrics: () => metrics.composeText(supervisor.workers),
    readiness: () => supervisor.getReadiness(),
  };
}

function addReloadGauge(registers: Registry[], supervisor: Supervisor): void {
  const { help, ofWorkers: aggregator } = gauges.reload_refused;
  new Gauge({
    name: 'gateway_reload_refused',
    help,
    aggregator,
    registers,
    collect() {
      this.set(Number(supervisor.reloadRefused !== null));
    },
  });
}

/** Makes the page if it belongs to the ops listener. */
function makeOpsDocs(settings: Settings, resources: readonly Resource[]): FixedBody | null {
  const { docs } = makeDescriptions(resources, { version: apiVersion, ...pick(settings, ...documentSettings) });
  return settings.docs === 'ops' ? docs(false) : null;
}

const answerMsMax = 1000;

/** Keeps the counts of the last answer of a silent or lost worker, so that sums do not fall; its gauges go. */
class WorkerMetrics {
  readonly #counts = new Map<number, MetricValues>();
  #ended: Promise<MetricValues> = Promise.resolve([]);
  readonly #waiting = new Map<number, (metrics: MetricValues) => void>();
  #lastId = 0;

  constructor(private readonly ownMetrics: () => Promise<MetricValues>) {
    listenToWorkers<FromWorker>({ metrics: ({ id, metrics }) => this.#waiting.get(id)?.(metrics) });
  }

  retire({ id }: Worker): void {
    const counts = this.#counts.get(id) ?? [];
    this.#counts.delete(id);
    this.#ended = this.#ended.then((ended) => sumMetrics([ended, counts]).getMetricsAsJSON() as Promise<MetricValues>);
  }

  /** Takes a second at most. */
  async composeText(workers: readonly Worker[]): Promise<string> {
    const ended = this.#ended; // read now: a worker that ends from here on counts by its answer
    const answers = await Promise.all(workers.map((worker) => this.#ask(worker)));
    return sumMetrics([await this.ownMetrics(), await ended, ...answers]).metrics();
  }

  async #ask(worker: Worker): Promise<MetricValues> {
    const lastCounts = this.#counts.get(worker.id) ?? [];
    const id = ++this.#lastId;
    const answered = new Promise<MetricValues>((resolve) => this.#waiting.set(id, resolve));
    sendToWorker<FromParent>(worker, { type: 'metrics', id }); // a worker that has died does not answer
    const metrics = await Promise.race([answered, sleep(answerMsMax, null, { ref: false })]);
    this.#waiting.delete(id);
    if (metrics === null || worker.isDead()) return lastCounts;
    this.#counts.set(worker.id, metrics.filter(isCount));
    return metrics;
  }
}

/** Reads `type`, which prom-client declares as a number, as the word of the text format. */
function isCount({ type }: MetricValues[number]): boolean {
  return (type as unknown as string) !== 'gauge';
}

function sumMetrics(ofWorkers: readonly MetricValues[]): Registry {
  return AggregatorRegistry.aggregate([...ofWorkers]) as Registry;
}
