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

/** Messages of a worker to its parent. */
export type WorkerMessage =
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
 * Starts webConcurrency workers (node:cluster), each a whole gateway without ops listener. The parent counts the limits, passes
 * writes on between them, replaces a worker that dies, and serves metrics and readiness of all. Throws StartRefused when
 * a worker does not start the first time.
 */
export async function startWorkers(settings: Settings): Promise<Workers> {
  serveWorkers();
  const resources = loadResources(settings.resourcesDir);
  const readiness = new Map<number, Readiness>();
  let stopping = false;
  cluster.on('message', (worker: Worker, message: WorkerMessage) => {
    if (message?.type === 'readiness') readiness.set(worker.id, message.readiness);
  });
  cluster.on('exit', (worker) => {
    readiness.delete(worker.id);
    if (!stopping) setTimeout(() => stopping || cluster.fork(), restartMs);
  });
  const stopAll = async (): Promise<void> => {
    stopping = true;
    const workers = Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);
    await Promise.all(workers.map((worker) => ended(worker)));
  };
  try {
    const urls = await Promise.all(Array.from({ length: settings.webConcurrency }, () => ready(cluster.fork())));
    const registry = new AggregatorRegistry();
    const pages = {
      metrics: () => registry.clusterMetrics(),
      readiness: () => combined([...readiness.values()], stopping),
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

/** Resolves with the worker's URL; rejects when it ends before. Its own words are on stderr already. */
function ready(worker: Worker): Promise<string> {
  return new Promise((resolve, reject) => {
    worker.on('message', (message: WorkerMessage) => {
      if (message?.type === 'ready') resolve(message.url);
    });
    worker.once('exit', () => reject(new StartRefused('A worker did not start.')));
  });
}

/** Asks the worker to drain and end, and waits for it; it has a deadline of its own. */
function ended(worker: Worker): Promise<void> {
  return new Promise((resolve) => {
    worker.once('exit', () => resolve());
    worker.process.kill('SIGTERM');
  });
}

/** Ready while any worker is; the state of the replicas is that of the first, as all look at the same. */
function combined(all: readonly Readiness[], stopping: boolean): Readiness {
  const best = all.find(({ status }) => status === 'ready') ?? all[0];
  if (stopping || best === undefined) {
    return { status: 'not ready', reasons: [stopping ? 'stopping' : 'no worker'], replicas: best?.replicas ?? [] };
  }
  return best;
}
