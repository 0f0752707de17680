import { setTimeout as sleep } from 'node:timers/promises';
import type { ServerStatus } from '../../base/events.js';
import { drainSocketReads } from '../../base/flow/event-loop.js';
import { type Count, type LocalWindow, RateLimiter } from '../../base/flow/rate-limiter.js';
import type { OtherGateways } from '../../postgres/heartbeat.js';
import { formatPosition, parsePosition } from '../../postgres/wal-position.js';

export interface Peers extends OtherGateways {
  makeLimiter(name: string, quota: number): RateLimiter;
  redis(): ServerStatus | null;
  close(): void;
}

export const standalone: Peers = {
  makeLimiter: (_, quota) => new RateLimiter(quota),
  publishWrite: async () => {},
  readLastWrite: () => undefined,
  redis: () => null,
  close: () => {},
};

/** Holds the state in Redis, or in the parent of workers. Each call rejects when it fails. */
export interface SharedStore {
  /** Runs `countNext` for the key. */
  count(key: string, known: LocalWindow, requests: number): Promise<Count>;
  /** Stores the position unless a later one is stored. */
  publish(workspace: string, position: string): Promise<unknown>;
  /** Absent: the writes of the others come with the counts. */
  readLastWrite?(workspace: string): Promise<string | null>;
}

export function connectPeers(
  gateways: number,
  store: SharedStore,
  ask: <T>(request: () => Promise<T>) => Promise<T>,
): Pick<Peers, 'makeLimiter' | 'publishWrite' | 'readLastWrite'> {
  return {
    makeLimiter: (name, quota) =>
      new RateLimiter(quota, gateways, (key, known, requests) =>
        ask(() => store.count(`${name}:${key}`, known, requests)),
      ),
    publishWrite: async (workspace, position) => {
      const sent = store.publish(workspace, formatPosition(position));
      sent.catch(() => undefined);
      await ask(() => sent).catch(() => undefined); // sent even while the store is not asked
    },
    readLastWrite: (workspace) =>
      store.readLastWrite &&
      ask(async () => (await store.readLastWrite?.(workspace)) ?? null)
        .then((text) => (text === null ? undefined : parsePosition(text)))
        .catch(() => undefined),
  };
}

const tickMs = 10;
const silentTicksMax = 25;

/**
 * Notices a silent store: no answer for 250 ms while some are due; a shorter silence is a busy machine. Time counts only after the sockets
 * were read, and any answer ends the silence.
 */
export class SilenceDetector {
  readonly #due = new Set<(error: Error) => void>();
  #ticking = false;
  #silentTicks = 0;
  #restUntilMs = 0;

  /** Does not ask a silent store for `restMs`, so that few requests wait 250 ms for it. */
  constructor(
    private readonly restMs: number,
    private readonly onSilence: () => void = () => undefined,
  ) {}

  /** Rejects when the request fails or the store is silent. */
  async ask<T>(request: () => Promise<T>): Promise<T> {
    if (performance.now() < this.#restUntilMs) throw new Error('the store does not answer');
    return new Promise<T>((resolve, reject) => {
      this.#due.add(reject);
      const settled = (): void => {
        this.#silentTicks = 0;
        this.#due.delete(reject);
      };
      request()
        .finally(settled)
        .then(resolve, (error) => {
          this.#fail(error as Error);
          reject(error);
        });
      if (!this.#ticking) void this.#watch();
    });
  }

  async #watch(): Promise<void> {
    this.#ticking = true;
    this.#silentTicks = 0;
    while (this.#due.size > 0) {
      await sleep(tickMs);
      await drainSocketReads();
      if (++this.#silentTicks > silentTicksMax) this.#fail(new Error('the store does not answer'));
    }
    this.#ticking = false;
  }

  #fail(error: Error): void {
    if (performance.now() >= this.#restUntilMs) this.onSilence();
    this.#restUntilMs = performance.now() + this.restMs;
    for (const reject of this.#due) reject(error);
    this.#due.clear();
  }
}
