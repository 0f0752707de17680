import { setImmediate as nextTurn } from 'node:timers/promises';

/**
 * Resolves when the event loop has read what had arrived on the sockets: after a busy turn timers run before answers that
 * arrived long ago, which must count as in time. Three turns, because a connection pauses for one after a large read.
 */
export async function drainSocketReads(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await nextTurn();
}

const callsPerTurn = 2;

/**
 * Makes calls in order, two in each turn of the event loop. Refusals of requests that waited for as long are due together, and a
 * hundred of them would keep the other clients waiting for 20 ms.
 */
export class SpreadCalls {
  readonly #calls: (() => void)[] = [];

  add(call: () => void): void {
    this.#calls.push(call);
    if (this.#calls.length === 1) setImmediate(() => this.#callNext());
  }

  #callNext(): void {
    for (const call of this.#calls.slice(0, callsPerTurn)) call();
    this.#calls.splice(0, callsPerTurn);
    if (this.#calls.length > 0) setImmediate(() => this.#callNext());
  }
}
