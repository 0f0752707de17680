import cluster, { type Worker } from 'node:cluster';
import { realpathSync } from 'node:fs';
import { SettingsError, StartRefused } from '../../base/errors.js';
import type { Observe } from '../../base/events.js';
import type { DefinitionTexts } from '../../resource/definition/load.js';
import { sumOfCounts } from '../ops/recent.js';
import type { Readiness } from '../ops/status.js';
import { type BatchDefinitions, reportMs, type WorkerReport } from './reports.js';

// Silence counts in periods that the parent has seen, not by the clock: a frozen parent has missed no report.

/** Periods without a report after which readiness no longer counts. */
const periodsReady = 3;
/** After which a worker is killed: 5 seconds. */
const periodsAlive = 10;
/** For a start: two minutes, because databases can be silent. */
const periodsToStart = 240;
/** Without a report of any worker, after which the parent is not alive. */
const periodsWithoutAny = 20;
/** Before the restart of a worker that never served; another one is replaced at once. */
const failedStartMs = 1000;

interface Watched {
  readonly worker: Worker;
  /** Workers that were started with the same files. */
  readonly batch: number;
  readonly texts: DefinitionTexts;
  /** It has served. */
  isReady: boolean;
  silentPeriods: number;
  isSilent: boolean;
  readiness: Readiness | null;
  /** Why its start was refused. */
  refusal?: string;
}

/** Starts workers (node:cluster), replaces those that end or fall silent, and all of them at a reload. */
export class Supervisor {
  readonly #observe: Observe;
  readonly #onEnd: (worker: Worker) => void;
  readonly #watched = new Map<number, Watched>();
  /** The start fails with the first of them that ends. */
  readonly #awaited = new Set<Worker>();
  #isStopping = false;
  #hasStarted = false;
  #silentPeriods = 0;
  /** The batch that serves; earlier ones drain, a later one is the first of a reload. */
  #batch = 0;
  #count = 0;
  #isReloadAsked = false;
  /** A worker that dies is replaced with these, whatever the files are by then. */
  #texts: DefinitionTexts = [];
  #nextTexts: DefinitionTexts = [];
  /** Null after a reload that succeeded. */
  reloadRefused: string | null = null;

  constructor(observe: Observe, onEnd: (worker: Worker) => void) {
    this.#observe = observe;
    this.#onEnd = onEnd;
    // By default the parent hands sockets over, and those handed to a frozen worker are never answered.
    cluster.schedulingPolicy = cluster.SCHED_NONE;
    // The release of this process: a link can lead to another one by now.
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

  get workers(): Worker[] {
    return [...this.#watched.values()].map(({ worker }) => worker);
  }

  get reporting(): number {
    return this.#heard().length;
  }

  /** Within 10 seconds. */
  get alive(): boolean {
    return this.#silentPeriods <= periodsWithoutAny;
  }

  /** Resolves with the workers' URL. Throws StartRefused when one ends before it was ready. */
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

  /** One worker at a time; if the first is refused, the present ones stay. A call during a reload asks for another. */
  reload(texts: DefinitionTexts = this.#nextTexts): void {
    this.#nextTexts = texts;
    this.#isReloadAsked = this.#others().length > 0;
    if (!this.#isReloadAsked && !this.#isStopping) this.#fork(this.#batch + 1);
  }

  /** The present workers stay. */
  refuseReload(reason: string): void {
    this.reloadRefused = reason;
    this.#observe({ type: 'reload_refused', reason });
  }

  /** Ready while any worker is; all use the same replicas, so one worker's view of them counts. */
  readiness(): Readiness {
    const all = this.#heard().flatMap(({ readiness }) => readiness ?? []);
    const best = all.find(({ status }) => status === 'ready') ?? all[0];
    const recent = sumOfCounts(all.flatMap((each) => each.recent));
    const refusals = all.flatMap(({ refused }) =>
      refused.map((each) => [`${each.use} ${each.resource}`, each] as const),
    );
    const locks = all.flatMap(({ locked }) => locked.map((each) => [`${each.server} ${each.resource}`, each] as const));
    const [refused, locked] = [[...new Map(refusals).values()], [...new Map(locks).values()]];
    const ofAll = { recent, refused, locked, reloadRefused: this.reloadRefused };
    if (!this.#isStopping && best !== undefined) return { ...best, ...ofAll };
    const reason = this.#isStopping ? 'stopping' : 'no worker';
    const none = { replicas: [], primary: null, unfit: [], redis: null };
    return { ...none, ...best, ...ofAll, status: 'not ready', reasons: [reason] };
  }

  /** A worker has a deadline of its own, and is killed when it falls silent. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    await Promise.all(this.workers.map(stopWorker));
  }

  #heard(): Watched[] {
    return [...this.#watched.values()].filter((each) => each.silentPeriods <= periodsReady && each.readiness !== null);
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

  /** There are some during a reload. */
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

  /** Once the new workers serve, an old one drains; when it has ended, another new one starts. */
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
      // The first new worker does not serve yet; and a reload goes on although one of the next has died.
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
    worker.once('exit', (code, signal) => {
      const Refused = code === 2 ? SettingsError : StartRefused;
      reject(new Refused(`A worker did not start: it ended with ${signal ?? code}.`));
    });
  });
}

function stopWorker(worker: Worker): Promise<void> {
  return new Promise((resolve) => {
    worker.once('exit', () => resolve());
    worker.process.kill('SIGTERM');
  });
}
