import type { ServerResponse } from 'node:http';
import { KeyedSemaphore } from '../db/keyed-semaphore.js';
import { Problem } from '../errors.js';
import type { Observe, ShedBound } from '../events.js';
import type { Access } from './tokens.js';

/** Bounds of large pages. */
export interface LargePageBounds {
  readonly largePagesPerToken: number;
  readonly largePagesPerWorkspace: number;
  /** How long a large page waits for another one to end. */
  readonly queueWaitMs: number;
}

/**
 * Bounds the large pages under way per token and per workspace. Each takes statements, and memory for as long as its client
 * reads, so without a bound a single client could take them all.
 */
export class LargePages {
  readonly #perToken: KeyedSemaphore;
  readonly #perWorkspace: KeyedSemaphore;
  readonly #waitMs: number;
  readonly #observe: Observe;

  constructor({ largePagesPerToken, largePagesPerWorkspace, queueWaitMs }: LargePageBounds, observe: Observe) {
    this.#perToken = new KeyedSemaphore(() => largePagesPerToken);
    this.#perWorkspace = new KeyedSemaphore(() => largePagesPerWorkspace);
    this.#waitMs = queueWaitMs;
    this.#observe = observe;
  }

  get underWay(): number {
    return this.#perWorkspace.held;
  }

  /** Counts a page until its response is closed. Waits queueWaitMs for room, then throws Problem `overloaded`. */
  async enter({ tokenId, workspace }: Access, response: ServerResponse): Promise<void> {
    const deadlineMs = performance.now() + this.#waitMs;
    const releaseToken = await this.#perToken.acquire(tokenId, this.#waitMs);
    if (releaseToken === null) throw this.#overloaded('large_pages_per_token');
    const release = await this.#perWorkspace.acquire(workspace, deadlineMs - performance.now());
    if (release === null) {
      releaseToken();
      throw this.#overloaded('large_pages_per_workspace');
    }
    const leave = (): void => {
      release();
      releaseToken();
    };
    if (response.closed)
      leave(); // the client disconnected during the wait
    else response.once('close', leave);
  }

  #overloaded(bound: ShedBound): Problem {
    this.#observe({ type: 'request_shed', bound });
    return new Problem('overloaded', 'Too many large pages are under way; read fewer at a time.', {
      headers: { 'Retry-After': '2' },
    });
  }
}
