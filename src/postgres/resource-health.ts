import { setTimeout as sleep } from 'node:timers/promises';
import type { Observe } from '../base/events.js';
import type { EventLoop } from '../base/flow/event-loop.js';
import { lockNotAvailable, ServerFault } from './database-errors.js';

// A locked or slow resource must not take the connections of the others; docs/contribute/health.md has the states and transitions.
//
// Example: a pool has 8 connections. A statement of `klanten` gets no byte for 150 ms, so `klanten` is slow: its connection is reserved and
// no longer counts, and the statements behind it move to others. Each further statement of `klanten` reserves a connection, up to 8. When
// `werkbonnen` turns slow as well, each of the two may reserve 4. A second after the last quiet statement of `klanten` it is ok again.
// Slowness is a state per pool, because a long statement can be quiet while it counts or skips. A lock holds for all pools of a server:
// after a lock_timeout `outwait` refuses the statements of the resource there, and tries one every 100 ms.

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

/** A resource stays slow for this long after its last quiet statement. */
const slowMs = 1000;
const pauseBeforeTrial = (): Promise<void> => sleep(100, undefined, { ref: false });

/** The state of one resource in one pool. */
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
    return this.reserved > 0 || this.server.loop.ranMs < this.#slowUntilMs ? 'slow' : 'ok';
  }

  /** Reserves the connection of a quiet statement, or the connection on which a statement begins while the resource is slow. */
  reserve(connection: { reservedFor: ResourceHealth | null }): void {
    if (connection.reservedFor === null) this.reserved++;
    connection.reservedFor = this;
  }

  /** Ends the reservation when the statement has ended; `wasQuiet` keeps the resource slow. */
  release(connection: { reservedFor: ResourceHealth | null }, wasQuiet: boolean): void {
    this.reserved--;
    connection.reservedFor = null;
    if (wasQuiet) this.#slowUntilMs = this.server.loop.ranMs + slowMs;
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

  /** Is called after a lock_timeout. Resolves when `isLocked` is false; only one call at a time asks, all others return. */
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
