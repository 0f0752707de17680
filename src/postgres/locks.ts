import { lockNotAvailable, ServerFault } from '../base/errors.js';
import type { Observe } from '../base/events.js';

/** The statement was not sent, because a lock holds its resource there: another server can answer. */
export class ResourceLocked extends ServerFault {
  override readonly helps = 'other server';
  readonly code = lockNotAvailable;
}

/** A resource whose statements on a server wait for a lock of another session. */
export interface LockedResource {
  readonly resource: string;
  readonly server: string;
  readonly seconds: number;
}

/** The locked resources of a server, which its pools share. */
export class Locks {
  readonly #server: string;
  readonly #observe: Observe;
  /** By resource, when its lock was found. */
  readonly #foundMs = new Map<string, number>();
  readonly #listeners: ((resource: string) => void)[] = [];

  constructor(server: string, observe: Observe) {
    this.#server = server;
    this.#observe = observe;
  }

  has(resource: string): boolean {
    return this.#foundMs.has(resource);
  }

  all(): LockedResource[] {
    const secondsOf = (foundMs: number): number => Math.round((performance.now() - foundMs) / 1000);
    return [...this.#foundMs].map(([resource, foundMs]) => {
      return { resource, server: this.#server, seconds: secondsOf(foundMs) };
    });
  }

  listen(listener: (resource: string) => void): void {
    this.#listeners.push(listener);
  }

  /** Returns whether the lock was not known yet. */
  add(resource: string): boolean {
    if (this.has(resource)) return false;
    this.#foundMs.set(resource, performance.now());
    this.#observe({ type: 'resource_locked', resource, server: this.#server });
    for (const listener of this.#listeners) listener(resource);
    return true;
  }

  delete(resource: string): void {
    const [known] = this.all().filter((each) => each.resource === resource);
    if (this.#foundMs.delete(resource)) this.#observe({ type: 'resource_unlocked', ...(known as LockedResource) });
  }
}
