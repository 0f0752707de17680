import { setImmediate as nextTurn } from 'node:timers/promises';

/** Timers run before answers that arrived long ago. Three turns, as a connection pauses one. */
export async function drainSocketReads(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await nextTurn();
}

const tickMs = 20;
/** A longer gap between two ticks counts as so much: for the rest of it this process did not run, or did not come to its sockets. */
const gapMsMax = 2 * tickMs;
const [slots, slotMs] = [12, 5000];

/** This clock stops while the process gets no processor time: a server is late only by this clock. Each gateway has one. */
export class EventLoop {
  readonly #timer = setInterval(() => this.#tick(), tickMs).unref();
  #tickAtMs = performance.now();
  #ranMs = 0;
  /** Each slot of the last minute has the milliseconds that the loop was late. */
  readonly #late = [0];
  #slotAtMs = this.#tickAtMs;

  /** Counts how long the loop has run; only differences tell something. */
  ranMs(): number {
    return this.#ranMs + Math.min(performance.now() - this.#tickAtMs, gapMsMax);
  }

  /** Calls `act` once the loop has run for so long, and read its sockets. The result cancels. */
  after(ms: number, act: () => void): () => void {
    const dueMs = this.ranMs() + ms;
    const look = (): void => {
      const leftMs = dueMs - this.ranMs();
      if (leftMs > 0) timer = setTimeout(look, leftMs);
      else void drainSocketReads().then(() => isCancelled || act());
    };
    let isCancelled = false;
    let timer = setTimeout(look, ms);
    return () => {
      isCancelled = true;
      clearTimeout(timer);
    };
  }

  /** Sums up the last minute. */
  lateMs(): number {
    this.#tick();
    return this.#late.reduce((sum, ms) => sum + ms);
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #tick(): void {
    const nowMs = performance.now();
    const gapMs = nowMs - this.#tickAtMs;
    this.#tickAtMs = nowMs;
    this.#ranMs += Math.min(gapMs, gapMsMax);
    for (; nowMs - this.#slotAtMs >= slotMs; this.#slotAtMs += slotMs) this.#late.push(0);
    this.#late.splice(0, this.#late.length - slots);
    this.#late[this.#late.length - 1] = (this.#late.at(-1) as number) + Math.max(0, gapMs - gapMsMax);
  }
}
