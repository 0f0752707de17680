import cluster, { type Worker } from 'node:cluster';
import { realpathSync } from 'node:fs';
import { SettingsError, StartRefused } from '../../base/errors.js';
import type { Observe } from '../../base/events.js';
import type { DefinitionTexts } from '../../resource/definition/load.js';
import { sumOfCounts } from '../ops/recent.js';
import type { Readiness } from '../ops/status.js';
import { type BatchDefinitions, reportMs, type WorkerReport } from './reports.js';

// Silence is counted in periods of `reportMs` that the parent has seen, not by the clock: a parent that was frozen itself, or
// had no processor, has missed no report of its workers.

/** Periods without a report after which a worker's readiness no longer counts. */
const periodsReady = 3;
/** Periods without a report after which a worker is killed: its event loop has stood still for 5 seconds. */
const periodsAlive = 10;
/** Periods that a worker has to start: two minutes, because it may wait for databases that do not answer. */
const periodsToStart = 240;
/** Periods without a report of any worker after which the parent is not alive. */
const periodsWithoutAny = 20;

/** Pause before the restart of a worker that never served; another one is replaced at once. */
const failedStartMs = 1000;

interface Watched {
  readonly worker: Worker;
  /** Workers that were started with the same files. */
  readonly batch: number;
  readonly texts: DefinitionTexts;
  /** Whether it has served. */
  isReady: boolean;
  silentPeriods: number;
  isSilent: boolean;
  readiness: Readiness | null;
  /** Why its start was refused. */
  refusal?: string;
}

/** Starts workers (node:cluster), replaces a worker that ends or no longer reports, and all of them at a reload. */
export class Supervisor {
  readonly #observe: Observe;
  readonly #onEnd: (worker: Worker) => void;
  readonly #watched = new Map<number, Watched>();
  /** Workers of the start that are not ready: the start fails with the first of them that ends. */
  readonly #awaited = new Set<Worker>();
  #isStopping = false;
  #hasStarted = false;
  #silentPeriods = 0;
  /** The workers of this batch serve. Those of an earlier one drain in turn, and the one of a later one is the first of a reload. */
  #batch = 0;
  /** Number of workers that serve outside a reload. */
  #count = 0;
  #isReloadAsked = false;
  /** The definitions of the batch that serves: a worker that dies is replaced by one with these, whatever the files are by then. */
  #texts: DefinitionTexts = [];
  #nextTexts: DefinitionTexts = [];
  /** Why the last reload was refused; null after one that succeeded. */
  reloadRefused: string | null = null;

  /** `onEnd` is called with each worker that has ended. */
  constructor(observe: Observe, onEnd: (worker: Worker) => void) {
    this.#observe = observe;
    this.#onEnd = onEnd;
    // Each worker accepts connections itself. Under the default policy the parent hands sockets over, and those that it has handed
    // to a worker that is frozen or killed are never answered.
    cluster.schedulingPolicy = cluster.SCHED_NONE;
    // Of the release of this process: a link to the releases can lead to another one by now.
    cluster.setupPrimary({ exec: realpathSync(process.argv[1] as string) });
    cluster.on('message', (worker: Worker, message: WorkerReport) => {
      if (message?.type === 'report') this.#handleReport(worker, message.readiness);
      if (message?.type === 'ready') this.#handleReady(worker);
      const watched = this.#watched.get(worker.id);
      if (message?.type === 'definitions' && watched) this.#sendDefinitions(watched);
      if (message?.type === 'refused' && watched) watched.refusal = message.reason;
    });
    cluster.on('exit', (worker, code, signal) => {
      const handle = (): void => this.#handleExit(worker, code, signal);
      if (worker.isConnected())
        worker.once('disconnect', handle); // after its last message
      else handle();
    });
    setInterval(() => this.#countSilence(), reportMs).unref();
  }

  /** Workers that run. */
  get workers(): Worker[] {
    return [...this.#watched.values()].map(({ worker }) => worker);
  }

  /** Number of workers whose reports arrive. */
  get reporting(): number {
    return this.#heard().length;
  }

  /** Whether any worker has reported in the last 10 seconds. */
  get alive(): boolean {
    return this.#silentPeriods <= periodsWithoutAny;
  }

  /** Resolves with the workers' URL when all have been ready. Throws StartRefused when one ends before, after it printed its reason to stderr. */
  async start(count: number, texts: DefinitionTexts): Promise<string> {
    this.#count = count;
    this.#texts = texts;
    const started = async (): Promise<string> => {
      const worker = this.#fork();
      this.#awaited.add(worker);
      const url = await untilReady(worker);
      this.#awaited.delete(worker);
      return url;
    };
    const [url] = await Promise.all(Array.from({ length: count }, started));
    this.#hasStarted = true;
    return url as string;
  }

  /**
   * Replaces the workers one at a time by others with these definitions, and with all other files as they are now. When the first of these is refused, or not
   * ready, the present ones stay. A call during a reload asks for another one after it.
   */
  reload(texts: DefinitionTexts = this.#nextTexts): void {
    this.#nextTexts = texts;
    this.#isReloadAsked = this.#others().length > 0;
    if (!this.#isReloadAsked && !this.#isStopping) this.#fork(this.#batch + 1);
  }

  /** Tells that the files as they are now cannot serve; the present workers stay. */
  refuseReload(reason: string): void {
    this.reloadRefused = reason;
    this.#observe({ type: 'reload_refused', reason });
  }

  /** Ready while any worker is. The state of the replicas is that of a single worker, because all workers use the same replicas. */
  readiness(): Readiness {
    const all = this.#heard().flatMap(({ readiness }) => readiness ?? []);
    const best = all.find(({ status }) => status === 'ready') ?? all[0];
    const recent = sumOfCounts(all.flatMap((each) => each.recent));
    const refusals = all.flatMap(({ refused }) =>
      refused.map((each) => [`${each.use} ${each.resource}`, each] as const),
    );
    const ofAll = { recent, refused: [...new Map(refusals).values()], reloadRefused: this.reloadRefused };
    if (!this.#isStopping && best !== undefined) return { ...best, ...ofAll };
    const reason = this.#isStopping ? 'stopping' : 'no worker';
    const none = { replicas: [], primary: null, unfit: [], redis: null };
    return { ...none, ...best, ...ofAll, status: 'not ready', reasons: [reason] };
  }

  /** Lets the workers drain and end; a worker has a deadline of its own, and is killed when it no longer reports. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    await Promise.all(this.workers.map(stopWorker));
  }

  #heard(): Watched[] {
    const heard = ({ silentPeriods, readiness }: Watched): boolean =>
      silentPeriods <= periodsReady && readiness !== null;
    return [...this.#watched.values()].filter(heard);
  }

  #fork(batch = this.#batch): Worker {
    const worker = cluster.fork();
    const silentPeriods = periodsAlive - periodsToStart;
    const texts = batch > this.#batch ? this.#nextTexts : this.#texts;
    const fresh = { isReady: false, silentPeriods, isSilent: false, readiness: null };
    this.#watched.set(worker.id, { worker, batch, texts, ...fresh });
    return worker;
  }

  #sendDefinitions({ worker, batch, texts }: Watched): void {
    const isSuccessor = this.#hasStarted && batch === this.#batch;
    worker.send({ type: 'definitions', texts, isSuccessor } satisfies BatchDefinitions, () => undefined);
  }

  /** Workers of another batch than the one that serves: there are some during a reload. */
  #others(): Watched[] {
    return [...this.#watched.values()].filter(({ batch }) => batch !== this.#batch);
  }

  #handleReady({ id }: Worker): void {
    const watched = this.#watched.get(id);
    if (watched !== undefined) watched.isReady = true;
    if (watched?.batch === this.#batch) this.#replaceNext();
  }

  #handleReport(worker: Worker, readiness: Readiness): void {
    const watched = this.#watched.get(worker.id);
    if (watched === undefined) return;
    watched.readiness = readiness;
    watched.silentPeriods = 0;
    this.#silentPeriods = 0;
    if (watched.batch <= this.#batch) return;
    if (readiness.status === 'ready') {
      this.#batch = watched.batch;
      this.#texts = watched.texts;
      return;
    }
    watched.refusal = `A new worker is not ready: ${readiness.reasons.join(', ')}.`;
    void stopWorker(worker);
  }

  /** The next step of a reload: once the new workers serve, an old one drains; when it has ended, another new one starts. */
  #replaceNext(): void {
    const [old] = this.#others();
    if (old === undefined) return;
    if (this.#watched.size <= this.#count) this.#fork();
    else if ([...this.#watched.values()].every(({ batch, isReady }) => isReady || batch < this.#batch))
      void stopWorker(old.worker);
  }

  /** After the end of an old worker, or of the first new one. */
  #continueReload({ batch, refusal }: Watched, end: string): void {
    if (batch > this.#batch) this.refuseReload(refusal ?? `A new worker ended with ${end}.`);
    else if (this.#others().length > 0) return this.#replaceNext();
    else {
      this.reloadRefused = null;
      this.#observe({ type: 'reloaded', workers: this.#watched.size });
    }
    if (this.#isReloadAsked) this.reload();
  }

  #countSilence(): void {
    this.#silentPeriods++;
    for (const watched of this.#watched.values()) {
      if (++watched.silentPeriods <= periodsAlive || watched.isSilent) continue;
      watched.isSilent = true;
      watched.worker.process.kill('SIGKILL'); // a frozen process handles no other signal
    }
  }

  #handleExit(worker: Worker, code: number | null, signal: string | null): void {
    const watched = this.#watched.get(worker.id);
    this.#watched.delete(worker.id);
    this.#onEnd(worker);
    if (watched === undefined || this.#isStopping || this.#awaited.has(worker)) return;
    if (watched.batch !== this.#batch) return this.#continueReload(watched, String(signal ?? code));
    const restartMs = watched.isReady ? 0 : failedStartMs;
    const workerPid = worker.process.pid ?? 0;
    this.#observe({ type: 'worker_died', workerPid, code, signal, silent: watched.isSilent, restartMs });
    const restart = (): void => {
      if (this.#isStopping) return;
      // The first new worker of a reload does not serve yet; and a reload goes on although one of the next has died.
      const serving = [...this.#watched.values()].filter(({ batch }) => batch <= this.#batch);
      if (serving.length < this.#count) this.#fork();
      else if (serving.some(({ batch }) => batch < this.#batch)) this.#replaceNext();
    };
    if (restartMs === 0) restart();
    else setTimeout(restart, restartMs);
  }
}

function untilReady(worker: Worker): Promise<string> {
  return new Promise((resolve, reject) => {
    worker.on('message', (message: WorkerReport) => {
      if (message?.type === 'ready') resolve(message.url);
    });
    worker.once('exit', (code, signal) =>
      reject(
        new (code === 2 ? SettingsError : StartRefused)(`A worker did not start: it ended with ${signal ?? code}.`),
      ),
    );
  });
}

function stopWorker(worker: Worker): Promise<void> {
  return new Promise((resolve) => {
    worker.once('exit', () => resolve());
    worker.process.kill('SIGTERM');
  });
}
