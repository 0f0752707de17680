import type { Observe } from '../events.js';
import { type Connect, errorCode } from './connection.js';
import type { Heartbeat } from './heartbeat.js';
import { Probe, type ProbeBounds } from './probe.js';
import type { Statement } from './statement.js';
import { parseLsn, walPositionStatement } from './wal-position.js';

const positionStatement: Statement = {
  name: 'position',
  text: `select pg_current_wal_flush_lsn(), lsn, timeline, system from (${walPositionStatement}) position`,
  parameters: [],
};

/** Samples the primary's position for the heartbeat, on a connection of its own. */
export class PrimaryProbe {
  readonly #probe: Probe;
  readonly #heartbeat: Heartbeat;
  readonly #observe: Observe;
  /** Whether the last sample succeeded. */
  reachable = false;

  constructor(connect: Connect, bounds: ProbeBounds, heartbeat: Heartbeat, observe: Observe) {
    this.#probe = new Probe(connect, positionStatement, bounds);
    this.#heartbeat = heartbeat;
    this.#observe = observe;
  }

  /** Samples now, and again every interval until closed. */
  start(): Promise<void> {
    return this.#probe.repeat(() => this.sample());
  }

  close(): void {
    this.#probe.close();
  }

  /** Samples once. Never rejects; the outcome is `reachable`. */
  async sample(): Promise<void> {
    try {
      // Taken before the statement, so that all commits until then lie at or before the position.
      const [atMs, tickMs] = [Date.now(), performance.now()];
      const [lsn, insertLsn, timeline, systemIdentifier] = (await this.#probe.ask()) as [
        string,
        string,
        string,
        string,
      ];
      const positions = { lsn: parseLsn(lsn), insertLsn: parseLsn(insertLsn) };
      this.#heartbeat.add({ atMs, tickMs, ...positions, timeline, systemIdentifier });
      this.reachable = true;
    } catch (error) {
      if (this.reachable && !this.#probe.closed) this.#observe({ type: 'primary_failed', code: errorCode(error) });
      this.reachable = false;
    }
  }
}
