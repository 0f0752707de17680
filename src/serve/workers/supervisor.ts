import cluster, { type Worker } from 'node:cluster';
import { realpathSync } from 'node:fs';
import { SettingsError, StartRefused } from '../../base/errors.js';
import type { Observe } from '../../base/events.js';
import type { Resource } from '../../resource/definition/resource.js';
import { sumCounts } from '../ops/recent.js';
import { type Readiness, reportStatus } from '../ops/status.js';
import { listenToWorkers } from '../peers/channel.js';
import { type FromWorker, reportMs, storeStart } from './messages.js';

// Silence counts in periods that the parent has seen, not by the clock: a frozen parent has missed no report.

/** Readiness no longer counts after this many periods without a report. */
const periodsReady = 3;
/** A worker is killed after this many silent periods: 5 seconds. */
const periodsAlive = 10;
/** A start may take two minutes, because databases can be silent. */
const periodsToStart = 240;
/** Replicas that answer late have 10 seconds. */
const periodsUntilReady = 20;
/** The parent is not alive after this many periods without a report of any worker. */
const periodsWithoutAny = 20;
/** Pause before a worker that never served restarts; another one is replaced at once. */
const failedStartMs = 1000;

interface WatchedWorker {
  readonly worker: Worker;
  readonly batch: Batch;
  /** Resolves after its last message. */
  readonly ended: Promise<void>;
  /** Is called once the worker has served. */
  readonly removeStart: () => void;
  /** Start that fails with this worker; null once it has served, and for successors. */
  pendingStart: { readonly resolve: (url: string) => void; readonly reject: (error: Error) => void } | null;
  isReady: boolean;
  silentPeriods: number;
  /** Reports that the first of a reload may make before it is ready. */
  reportsLeft: number;
  isSilent: boolean;
  readiness: Readiness | null;
  /** The reason why its start was refused. */
  refusal?: string;
}

/** Definitions that the parent has validated. A worker that dies is replaced by one with the same, whatever the files are by then. */
interface Batch {
  readonly number: number;
  readonly resources: readonly Resource[];
  hasServed: boolean;
}

/** Starts workers (node:cluster), replaces those that end or fall silent, and all of them at a reload. */
export class Supervisor {
  readonly #watched = new Map<number, WatchedWorker>();
  #isStopping = false;
  #silentPeriods = 0;
  /** The batch that serves; earlier ones drain, a later one is the first of a reload. */
  #batch: Batch;
  /** Definitions that were asked for during a reload. */
  #next: readonly Resource[] | null = null;
  /** Null after a reload that succeeded. */
  reloadRefused: string | null = null;

  constructor(
    private readonly count: number,
    resources: readonly Resource[],
    private readonly observe: Observe,
    private readonly onEnd: (worker: Worker) => void,
  ) {
    this.#batch = { number: 0, resources, hasServed: false };
    // By default the parent hands sockets over, and a frozen worker never answers those that it got.
    cluster.schedulingPolicy = cluster.SCHED_NONE;
    // The release of this process: a link can lead to another one by now.
    cluster.setupPrimary({ exec: realpathSync(process.argv[1] as string) });
    listenToWorkers<FromWorker>({
      ready: ({ url, readiness }, { id }) => this.#handleReady(this.#watched.get(id), url, readiness),
      report: ({ readiness }, { id }) => this.#handleReport(this.#watched.get(id), readiness),
      refused: ({ reason }, { id }) => Object.assign(this.#watched.get(id) ?? {}, { refusal: reason }),
    });
    setInterval(() => this.#countSilence(), reportMs).unref();
  }

  get workers(): Worker[] {
    return [...this.#watched.values()].filter(({ isReady }) => isReady).map(({ worker }) => worker);
  }

  get resources(): readonly Resource[] {
    return this.#batch.resources;
  }

  get reporting(): number {
    return this.#listReporting().length;
  }

  /** True if a report came within 10 seconds. */
  get alive(): boolean {
    return this.#silentPeriods <= periodsWithoutAny;
  }

  /** Resolves with the workers' URL. Throws StartRefused when one ends before it was ready. */
  async start(): Promise<string> {
    const startOne = (): Promise<string> =>
      new Promise((resolve, reject) => {
        this.#fork().pendingStart = { resolve, reject };
      });
    const [url] = await Promise.all(Array.from({ length: this.count }, startOne));
    return url as string;
  }

  /** Replaces one worker at a time; if the first is refused, the present ones stay. A call during a reload asks for another. */
  reload(resources: readonly Resource[]): void {
    this.#next = this.#listOtherBatches().length > 0 ? resources : null;
    if (this.#next !== null || this.#isStopping) return;
    try {
      this.#fork({ number: this.#batch.number + 1, resources, hasServed: false });
    } catch (error) {
      this.refuseReload((error as Error).message); // the disk can be full
    }
  }

  /** Keeps the present workers. */
  refuseReload(reason: string): void {
    this.reloadRefused = reason;
    this.observe({ type: 'reload_refused', reason });
  }

  /** Reports ready while any worker is; all use the same replicas, so one worker's view of them counts. */
  getReadiness(): Readiness {
    const all = this.#listReporting().flatMap(({ readiness }) => readiness ?? []);
    const best = all.find(({ status }) => status === 'ready') ?? all[0];
    const recent = sumCounts(all.flatMap((each) => each.recent));
    const refusals = all.flatMap(({ refused }) =>
      refused.map((each) => [`${each.use} ${each.resource}`, each] as const),
    );
    const locks = all.flatMap(({ locked }) => locked.map((each) => [`${each.server} ${each.resource}`, each] as const));
    const [refused, locked] = [[...new Map(refusals).values()], [...new Map(locks).values()]];
    const lacks = [...new Map(all.flatMap((each) => each.lacks.map((lack) => [lack.what, lack]))).values()];
    const writesObstacle = all.find((each) => each.writesObstacle !== undefined)?.writesObstacle;
    const ofAll = { lacks, recent, refused, locked, writesObstacle, reloadRefused: this.reloadRefused };
    if (!this.#isStopping && best !== undefined) return { ...best, ...ofAll };
    const reason = this.#isStopping ? 'stopping' : 'no worker';
    const none = { replicas: [], primary: null, unfit: [], redis: null };
    return { ...none, ...best, ...ofAll, status: 'not ready', reasons: [reason] };
  }

  /** Each worker has a deadline, and is killed when it falls silent. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    await Promise.all([...this.#watched.values()].map(stopWorker));
  }

  #listReporting(): WatchedWorker[] {
    return [...this.#watched.values()].filter((each) => each.silentPeriods <= periodsReady && each.readiness !== null);
  }

  #fork(batch = this.#batch): WatchedWorker {
    const { resources, hasServed } = batch;
    const { env, remove } = storeStart({ resources, isSuccessor: hasServed });
    const worker = cluster.fork(env);
    const ended = waitForEnd(worker).then(([code, signal]) => this.#handleExit(watched, code, signal));
    const fresh = { pendingStart: null, isReady: false, isSilent: false, readiness: null };
    const periods = { silentPeriods: periodsAlive - periodsToStart, reportsLeft: periodsUntilReady };
    const watched: WatchedWorker = { worker, batch, ended, removeStart: remove, ...periods, ...fresh };
    this.#watched.set(worker.id, watched);
    return watched;
  }

  /** Tries again in a second if the definitions cannot be written, for example because the disk is full. */
  #forkAnother(): void {
    try {
      this.#fork();
    } catch (error) {
      this.observe({ type: 'worker_refused', reason: (error as Error).message });
      setTimeout(() => this.#restart(), failedStartMs);
    }
  }

  /** Lists the workers of other batches, which exist during a reload. */
  #listOtherBatches(): WatchedWorker[] {
    return [...this.#watched.values()].filter(({ batch }) => batch !== this.#batch);
  }

  #handleReady(watched: WatchedWorker | undefined, url: string, readiness: Readiness | null): void {
    if (watched === undefined) return;
    const { batch, pendingStart } = watched;
    watched.removeStart();
    watched.isReady = true;
    watched.pendingStart = null;
    pendingStart?.resolve(url);
    if (batch === this.#batch) this.#replaceNext();
    batch.hasServed ||= batch === this.#batch;
    this.#handleReport(watched, readiness);
  }

  #handleReport(watched: WatchedWorker | undefined, readiness: Readiness | null): void {
    if (watched === undefined) return;
    Object.assign(watched, { readiness, silentPeriods: 0 });
    this.#silentPeriods = 0;
    if (watched.batch.number <= this.#batch.number) return;
    if (readiness?.status === 'ready') {
      this.#batch = Object.assign(watched.batch, { hasServed: true });
      this.#replaceNext();
    } else if (--watched.reportsLeft === 0) {
      const reasons = readiness === null ? [] : reportStatus(readiness, 0).faults.map(({ sentence }) => sentence);
      watched.refusal = `A new worker is not ready: ${reasons.join(' ')}`;
      void stopWorker(watched);
    }
  }

  /** Drains an old worker once the new ones serve; when it has ended, another new one starts. */
  #replaceNext(): void {
    const [old] = this.#listOtherBatches();
    if (old === undefined) return;
    if (this.#watched.size <= this.count) this.#forkAnother();
    else if ([...this.#watched.values()].every(({ batch, isReady }) => isReady || this.#isOld(batch)))
      void stopWorker(old);
  }

  /** Continues after the end of an old worker, or of the first new one. */
  #continueReload({ batch, refusal }: WatchedWorker, end: string): void {
    if (batch.number > this.#batch.number) this.refuseReload(refusal ?? `A new worker ended with ${end}.`);
    else if (this.#listOtherBatches().length > 0) return this.#replaceNext();
    else {
      this.reloadRefused = null;
      this.observe({ type: 'reloaded', workers: this.#watched.size });
    }
    if (this.#next !== null) this.reload(this.#next);
  }

  #countSilence(): void {
    this.#silentPeriods++;
    for (const watched of this.#watched.values()) {
      if (++watched.silentPeriods <= periodsAlive || watched.isSilent) continue;
      watched.isSilent = true;
      watched.worker.process.kill('SIGKILL'); // a frozen process handles no other signal
    }
  }

  #handleExit(watched: WatchedWorker, code: number | null, signal: string | null): void {
    const { worker, batch, pendingStart, isReady, isSilent: silent } = watched;
    this.#watched.delete(worker.id);
    watched.removeStart();
    this.onEnd(worker);
    const Refused = code === 2 ? SettingsError : StartRefused;
    const reason = watched.refusal ?? `it ended with ${signal ?? code}.`;
    pendingStart?.reject(new Refused(`A worker did not start: ${reason}`));
    if (this.#isStopping || pendingStart !== null) return;
    if (batch !== this.#batch) return this.#continueReload(watched, String(signal ?? code));
    const restartMs = isReady ? 0 : failedStartMs;
    this.observe({ type: 'worker_died', workerPid: worker.process.pid ?? 0, code, signal, silent, restartMs });
    if (restartMs === 0) this.#restart();
    else setTimeout(() => this.#restart(), restartMs);
  }

  #restart(): void {
    if (this.#isStopping) return;
    // The first new worker does not serve yet; and a reload goes on although one of the next has died.
    const serving = [...this.#watched.values()].filter(({ batch }) => batch.number <= this.#batch.number);
    if (serving.length < this.count) this.#forkAnother();
    else if (serving.some(({ batch }) => this.#isOld(batch))) this.#replaceNext();
  }

  #isOld({ number }: Batch): boolean {
    return number < this.#batch.number;
  }
}

/** Resolves after its last message: the channel can end before the process, or after it. */
function waitForEnd(worker: Worker): Promise<[code: number | null, signal: string | null]> {
  const disconnected = new Promise<void>((resolve) => worker.once('disconnect', resolve));
  return new Promise((resolve) => {
    worker.once('exit', (code, signal) => void disconnected.then(() => resolve([code, signal])));
    // The system can refuse another process, and reports no exit then.
    if (worker.process.pid === undefined)
      worker.once('error', ({ code }: NodeJS.ErrnoException) => resolve([null, String(code)]));
  });
}

async function stopWorker({ worker, ended }: WatchedWorker): Promise<void> {
  worker.process.kill('SIGTERM');
  await ended;
}
