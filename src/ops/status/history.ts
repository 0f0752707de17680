import type { Sample } from './sample.js';

/** How often samples are taken, and for how long they are kept, milliseconds. */
export interface HistoryBounds {
  readonly everyMs: number;
  readonly keptMs: number;
}

/** Keeps a sample per interval in memory. */
export class StatusHistory {
  readonly #read: () => Promise<Sample>;
  readonly #bounds: HistoryBounds;
  readonly #kept: Sample[] = [];
  #timer: NodeJS.Timeout | undefined;
  #newest: Sample | null = null;
  #reading: Promise<Sample> | null = null;

  constructor(read: () => Promise<Sample>, bounds: HistoryBounds) {
    this.#read = read;
    this.#bounds = bounds;
  }

  /** Takes a sample now, and again every interval until closed. */
  async start(): Promise<void> {
    await this.#keep();
    this.#timer = setInterval(() => void this.#keep().catch(() => undefined), this.#bounds.everyMs).unref();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  /** All samples, the oldest first; the last one is of now. */
  async samples(): Promise<readonly [Sample, ...Sample[]]> {
    const now = await this.#fresh();
    return [...this.#kept.filter(({ tickMs }) => tickMs < now.tickMs), now] as unknown as readonly [
      Sample,
      ...Sample[],
    ];
  }

  async #keep(): Promise<void> {
    const sample = await this.#fresh();
    if (sample !== this.#kept.at(-1)) this.#kept.push(sample);
    while ((this.#kept[0] as Sample).tickMs < sample.tickMs - this.#bounds.keptMs) this.#kept.shift();
  }

  /** A sample younger than a tenth of the interval is used again: many readers of the status cost no more than a few. */
  async #fresh(): Promise<Sample> {
    const freshMs = this.#bounds.everyMs / 10;
    if (this.#newest !== null && performance.now() - this.#newest.tickMs < freshMs) return this.#newest;
    this.#reading ??= this.#read().finally(() => {
      this.#reading = null;
    });
    this.#newest = await this.#reading;
    return this.#newest;
  }
}
