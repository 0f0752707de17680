import { setImmediate as nextTurn } from 'node:timers/promises';

/** Reads all sockets before a timer acts on a missing answer: a turn reads, the next resumes paused sockets, the third reads those. */
export async function drainSocketReads(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await nextTurn();
}

const tickMs = 20;
/** A longer gap between two ticks counts as this long, because in the remainder the process did not read its sockets. */
const gapMsMax = 2 * tickMs;
/** The slots of the last minute, by which faults are counted, too. */
export const [minuteSlots, slotMs] = [12, 5000];

/** A clock that stops while the process gets no processor time: only by it is a server late. Each gateway has one. */
export class EventLoop {
  readonly #timer = setInterval(() => this.#tick(), tickMs).unref();
  #tickAtMs = performance.now();
  #ranMs = 0;
  /** Milliseconds that the loop was late, per slot of the last minute. */
  readonly #late = [0];
  #slotAtMs = this.#tickAtMs;

  /** Milliseconds that the loop has run; only differences have a meaning. */
  get ranMs(): number {
    return this.#ranMs + Math.min(performance.now() - this.#tickAtMs, gapMsMax);
  }

  /** Calls `act` once the loop has run for `ms` and read its sockets. The returned function cancels. */
  callAfter(ms: number, act: () => void): () => void {
    const dueMs = this.ranMs + ms;
    const callIfDue = (): void => {
      const leftMs = dueMs - this.ranMs;
      if (leftMs > 0) timer = setTimeout(callIfDue, leftMs);
      else void drainSocketReads().then(() => isCancelled || act());
    };
    let isCancelled = false;
    let timer = setTimeout(callIfDue, ms);
    return () => {
      isCancelled = true;
      clearTimeout(timer);
    };
  }

  /** Returns how late the loop was in the last minute. */
  measureLateMs(): number {
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
    this.#late.splice(0, this.#late.length - minuteSlots);
    this.#late[this.#late.length - 1] = (this.#late.at(-1) as number) + Math.max(0, gapMs - gapMsMax);
  }
}
