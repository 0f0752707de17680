import type { ServerResponse } from 'node:http';
import { Problem } from '../errors.js';
import type { Observe, ShedBound } from '../events.js';
import type { Settings } from '../settings.js';
import type { Access } from './auth.js';

interface Bound {
  readonly name: ShedBound;
  readonly max: number;
  readonly whose: (access: Access) => string;
}

/**
 * How many large pages a token and a workspace have under way. Each of them costs memory for as long as its client
 * takes, and statements; without a bound one client could have them all.
 */
export class LargePages {
  readonly #bounds: readonly Bound[];
  readonly #waitMs: number;
  readonly #observe: Observe;
  /** Pages under way per token and per workspace. */
  readonly #counts = new Map<string, number>();
  readonly #waiting = new Set<() => void>();
  #underWay = 0;

  constructor(settings: Settings, observe: Observe) {
    this.#bounds = [
      { name: 'large_pages_per_token', max: settings.largePagesPerToken, whose: ({ tokenId }) => `t ${tokenId}` },
      {
        name: 'large_pages_per_workspace',
        max: settings.largePagesPerWorkspace,
        whose: ({ workspace }) => `w ${workspace}`,
      },
    ];
    this.#waitMs = settings.queueWaitMs;
    this.#observe = observe;
  }

  get underWay(): number {
    return this.#underWay;
  }

  /** Counts a page in until its response is closed. Waits a little for room, then throws Problem `overloaded`. */
  async enter(access: Access, response: ServerResponse): Promise<void> {
    const deadlineMs = performance.now() + this.#waitMs;
    const full = (): Bound | undefined =>
      this.#bounds.find(({ max, whose }) => (this.#counts.get(whose(access)) ?? 0) >= max);
    for (let bound = full(); bound !== undefined; bound = full()) {
      if (await this.#changes(deadlineMs - performance.now())) continue;
      this.#observe({ type: 'request_shed', bound: bound.name });
      throw new Problem('overloaded', 'Too many large pages are under way; read fewer at a time.', {
        headers: { 'Retry-After': '2' },
      });
    }
    if (response.closed) return; // its client left while it waited
    this.#count(access, 1);
    response.once('close', () => {
      this.#count(access, -1);
      for (const look of this.#waiting) look();
    });
  }

  #count(access: Access, change: 1 | -1): void {
    this.#underWay += change;
    for (const { whose } of this.#bounds) {
      const count = (this.#counts.get(whose(access)) ?? 0) + change;
      if (count === 0) this.#counts.delete(whose(access));
      else this.#counts.set(whose(access), count);
    }
  }

  /** Resolves with true when a page has ended, with false when the time is up. */
  #changes(waitMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const settle = (changed: boolean): void => {
        clearTimeout(timer);
        this.#waiting.delete(look);
        resolve(changed);
      };
      const look = (): void => settle(true);
      const timer = setTimeout(() => settle(false), waitMs);
      this.#waiting.add(look);
    });
  }
}
