import cluster, { type Worker } from 'node:cluster';
import { AggregatorRegistry } from 'prom-client';
import { loadResources } from './definition/load.js';
import { StartRefused } from './errors.js';
import { close, listen } from './http/listeners.js';
import { apiVersion } from './http/render.js';
import { openapi } from './openapi/openapi.js';
import { docsPage } from './openapi/page.js';
import type { Readiness } from './ops/readiness.js';
import { opsServer } from './ops/server.js';
import { serveWorkers } from './peers/parent.js';
import type { Settings } from './settings.js';

/** A worker's report to its parent. */
export type WorkerReport =
  | { readonly type: 'ready'; readonly url: string }
  | { readonly type: 'readiness'; readonly readiness: Readiness };

/** Several gateways on this machine, behind one port and one ops listener. */
export interface Workers {
  readonly url: string;
  readonly opsUrl: string;
  stop(): Promise<void>;
}

const restartMs = 1000;

/**
 * Starts webConcurrency workers (node:cluster), each a whole gateway without ops listener. The parent counts for the rate
 * limits, passes on write positions, replaces a worker that dies, and serves the metrics and the readiness of all workers.
 * Throws StartRefused when a worker fails before it was ready.
 */
export async function startWorkers(settings: Settings): Promise<Workers> {
  serveWorkers();
  const resources = loadResources(settings.resourcesDir);
  const readiness = new Map<number, Readiness>();
  let stopping = false;
  cluster.on('message', (worker: Worker, message: WorkerReport) => {
    if (message?.type === 'readiness') readiness.set(worker.id, message.readiness);
  });
  cluster.on('exit', (worker) => {
    readiness.delete(worker.id);
    if (!stopping) setTimeout(() => stopping || cluster.fork(), restartMs);
  });
  const stopAll = async (): Promise<void> => {
    stopping = true;
    const workers = Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);
    await Promise.all(workers.map(stopWorker));
  };
  try {
    const urls = await Promise.all(Array.from({ length: settings.webConcurrency }, () => untilReady(cluster.fork())));
    const registry = new AggregatorRegistry();
    const pages = {
      metrics: () => registry.clusterMetrics(),
      readiness: () => combinedReadiness([...readiness.values()], stopping),
      docsHtml: docsPage(openapi(resources, { version: apiVersion, ...settings })),
    };
    const ops = opsServer(pages, settings);
    const opsUrl = await listen(ops, settings.opsHost, settings.opsPort);
    const stop = async (): Promise<void> => {
      await stopAll();
      await close(ops);
    };
    return { url: urls[0] as string, opsUrl, stop };
  } catch (error) {
    await stopAll();
    throw error;
  }
}

/** Resolves with the worker's URL; rejects when the worker ends before it is ready, after printing its reason to stderr. */
function untilReady(worker: Worker): Promise<string> {
  return new Promise((resolve, reject) => {
    worker.on('message', (message: WorkerReport) => {
      if (message?.type === 'ready') resolve(message.url);
    });
    worker.once('exit', () => reject(new StartRefused('A worker did not start.')));
  });
}

/** Lets the worker drain and end, and waits for its exit; the worker has a deadline of its own. */
function stopWorker(worker: Worker): Promise<void> {
  return new Promise((resolve) => {
    worker.once('exit', () => resolve());
    worker.process.kill('SIGTERM');
  });
}

/** Ready while any worker is. The state of the replicas is that of a single worker, because all workers use the same replicas. */
function combinedReadiness(all: readonly Readiness[], stopping: boolean): Readiness {
  const best = all.find(({ status }) => status === 'ready') ?? all[0];
  if (stopping || best === undefined) {
    return { status: 'not ready', reasons: [stopping ? 'stopping' : 'no worker'], replicas: best?.replicas ?? [] };
  }
  return best;
}
