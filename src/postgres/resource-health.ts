import { setTimeout as sleep } from 'node:timers/promises';
import type { Observe } from '../base/events.js';
import type { EventLoop } from '../base/flow/event-loop.js';
import { lockNotAvailable, ServerFault } from './database-errors.js';

// A resource has a state per server and pool; docs/contribute/health.md has the transitions. Short and long statements turn slow
// separately, because a long one can be quiet while it counts or skips. A lock holds both.

/** The statement was not sent, because a lock holds its resource on this server: another server can answer. */
export class ResourceLocked extends ServerFault {
  override readonly helps = 'other server';
  readonly code = lockNotAvailable;
}

/** Statements of the resource wait on a server for a lock of another session. */
export interface LockedResource {
  readonly resource: string;
  readonly server: string;
  readonly seconds: number;
}

/** A resource keeps separate connections this long after a quiet statement. */
const slowMs = 1000;
/** Pause before a statement looks for the end of a lock. */
const pauseBeforeTrial = (): Promise<void> => sleep(100, undefined, { ref: false });

export class ResourceHealth {
  /** Number of connections reserved for the resource. */
  reserved = 0;
  #slowUntilMs = 0;

  constructor(
    readonly name: string,
    private readonly server: ServerHealth,
  ) {}

  get state(): 'ok' | 'slow' | 'locked' {
    if (this.server.locks.has(this.name)) return 'locked';
    return this.reserved > 0 || this.server.loop.ranMs() < this.#slowUntilMs ? 'slow' : 'ok';
  }

  /** Reserves the connection of a quiet statement, or of a statement that begins while the resource is slow. */
  reserve(connection: { reservedFor: ResourceHealth | null }): void {
    if (connection.reservedFor === null) this.reserved++;
    connection.reservedFor = this;
  }

  /** Ends the reservation when the statement has ended; `wasQuiet` keeps the resource slow. */
  release(connection: { reservedFor: ResourceHealth | null }, wasQuiet: boolean): void {
    this.reserved--;
    connection.reservedFor = null;
    if (wasQuiet) this.#slowUntilMs = this.server.loop.ranMs() + slowMs;
  }
}

/** The locks of a server, which its pools share. */
export class ServerHealth {
  /** When the lock of each locked resource was found. */
  readonly locks = new Map<string, number>();
  /** Listeners for the resource of each new lock. */
  readonly onLock: ((resource: string) => void)[] = [];

  constructor(
    readonly server: string,
    readonly loop: Pick<EventLoop, 'ranMs'>,
    private readonly observe: Observe,
    private readonly pause = pauseBeforeTrial,
  ) {}

  get locked(): LockedResource[] {
    return [...this.locks].map(([resource, foundMs]) => this.#describe(resource, foundMs));
  }

  /** Waits until `isLocked` is false after a lock_timeout. Only one statement at a time looks for the end of a lock. */
  async outwait(resource: string, isLocked: () => Promise<boolean>): Promise<void> {
    if (this.locks.has(resource)) return;
    const foundMs = performance.now();
    this.locks.set(resource, foundMs);
    this.observe({ type: 'resource_locked', resource, server: this.server });
    for (const tell of this.onLock) tell(resource);
    do await this.pause();
    while (await isLocked());
    this.locks.delete(resource);
    this.observe({ type: 'resource_unlocked', ...this.#describe(resource, foundMs) });
  }

  #describe(resource: string, foundMs: number): LockedResource {
    return { resource, server: this.server, seconds: Math.round((performance.now() - foundMs) / 1000) };
  }
}
