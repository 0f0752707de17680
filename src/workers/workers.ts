import { loadResources } from '../definition/load.js';
import type { Observe } from '../events.js';
import { descriptions } from '../http/descriptions.js';
import { close, listen } from '../http/listeners.js';
import { apiVersion } from '../http/render.js';
import { logEvents } from '../ops/log.js';
import { eventMetrics } from '../ops/metrics.js';
import { opsServer } from '../ops/server.js';
import { statusOf } from '../ops/status/status.js';
import { serveWorkers } from '../peers/parent.js';
import type { Settings } from '../settings.js';
import { balanceConnections } from './connections.js';
import { Supervisor } from './supervisor.js';
import { WorkerMetrics } from './worker-metrics.js';

/** Several gateways on this machine, behind one port and one ops listener. */
export interface Workers {
  readonly url: string;
  readonly opsUrl: string;
  /** Reports events of the parent to its log and metrics. */
  readonly observe: Observe;
  stop(): Promise<void>;
}

/**
 * Starts webConcurrency workers (node:cluster), each a whole gateway without ops listener. The parent counts for the rate
 * limits, passes on write positions, replaces a worker that dies or is frozen, and serves the metrics and the readiness of all
 * workers. Throws StartRefused when a worker fails before it was ready.
 */
export async function startWorkers(settings: Settings): Promise<Workers> {
  const resources = loadResources(settings.resourcesDir);
  const counters = eventMetrics();
  const observe: Observe = (event) => {
    log.add(event);
    counters.observe(event);
  };
  const log = logEvents(settings.logLevel, observe);
  serveWorkers();
  balanceConnections();
  const metrics = new WorkerMetrics(counters.values);
  const supervisor = new Supervisor(observe, (worker) => metrics.retire(worker));
  try {
    const url = await supervisor.start(settings.webConcurrency);
    const status = statusOf((names) => metrics.values(supervisor.workers, names), {
      readiness: () => supervisor.readiness(),
      workers: () => ({ configured: settings.webConcurrency, reporting: supervisor.reporting }),
      lagMaxMs: settings.lagMaxMs,
    });
    await status.start();
    const { docs } = descriptions(resources, { version: apiVersion, ...settings });
    const pages = {
      status,
      alive: () => supervisor.alive,
      metrics: () => metrics.text(supervisor.workers),
      readiness: () => supervisor.readiness(),
      docs: settings.docs === 'ops' ? docs(false) : null,
    };
    const ops = opsServer(pages, settings);
    const opsUrl = await listen(ops, settings.opsHost, settings.opsPort);
    const stop = async (): Promise<void> => {
      await supervisor.stop();
      status.close();
      await close(ops);
      await log.close();
    };
    return { url, opsUrl, observe, stop };
  } catch (error) {
    await supervisor.stop();
    await log.close();
    throw error;
  }
}
