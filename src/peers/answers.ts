import { setImmediate as turn } from 'node:timers/promises';

const tickMs = 10;
const silentTicksMax = 5;
/** How long a peer that fell silent is not asked: so it costs some requests 50 ms, and not every one. */
const restMs = 1000;

/**
 * Asks a peer, and notices when it stops to answer: no answer at all for 50 ms while some are due. Time counts only after
 * the sockets were read, because a busy process finds its timers due before answers that have arrived long ago.
 */
export class Answers {
  readonly #due = new Set<(error: Error) => void>();
  readonly #onSilence: () => void;
  #ticking = false;
  #silentTicks = 0;
  #restUntilMs = 0;

  constructor(onSilence: () => void = () => undefined) {
    this.#onSilence = onSilence;
  }

  /** Rejects when the request fails or the peer is silent; after that for a second at once. */
  async ask<T>(request: () => Promise<T>): Promise<T> {
    if (performance.now() < this.#restUntilMs) throw new Error('the peer does not answer');
    return new Promise<T>((resolve, reject) => {
      this.#due.add(reject);
      const settled = (): void => {
        this.#silentTicks = 0;
        this.#due.delete(reject);
      };
      request().then(
        (answer) => {
          settled();
          resolve(answer);
        },
        (error) => {
          settled();
          this.#fail(error as Error);
          reject(error);
        },
      );
      if (!this.#ticking) void this.#watch();
    });
  }

  async #watch(): Promise<void> {
    this.#ticking = true;
    this.#silentTicks = 0;
    while (this.#due.size > 0) {
      await new Promise((resolve) => setTimeout(resolve, tickMs));
      await turn();
      await turn();
      if (++this.#silentTicks > silentTicksMax) this.#fail(new Error('the peer does not answer'));
    }
    this.#ticking = false;
  }

  #fail(error: Error): void {
    if (performance.now() >= this.#restUntilMs) this.#onSilence();
    this.#restUntilMs = performance.now() + restMs;
    for (const reject of this.#due) reject(error);
    this.#due.clear();
  }
}
