import type { Observe } from '../ops/events.js';
import type { Settings } from '../settings.js';
import { Connection } from './connection.js';
import { parseLsn } from './lsn.js';
import type { Heartbeat } from './position.js';
import type { Statement } from './statement.js';

const positionStatement: Statement = { name: 'position', text: 'select pg_current_wal_flush_lsn()', parameters: [] };

/** Samples the primary's position every probe interval on a connection of its own, for the heartbeat. Never rejects. */
export class PrimaryProbe {
  readonly #settings: Settings;
  readonly #heartbeat: Heartbeat;
  readonly #observe: Observe;
  #connection: Connection | null = null;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;
  /** Whether the last sample succeeded. */
  reachable = false;

  constructor(settings: Settings, heartbeat: Heartbeat, observe: Observe) {
    this.#settings = settings;
    this.#heartbeat = heartbeat;
    this.#observe = observe;
  }

  /** Samples now, and again every interval until closed. */
  async start(): Promise<void> {
    await this.#sample();
    const again = (): void => {
      if (this.#closed) return;
      this.#timer = setTimeout(() => void this.#sample().then(again), this.#settings.probeIntervalMs).unref();
    };
    again();
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#connection?.destroy();
  }

  async #sample(): Promise<void> {
    const deadline = setTimeout(() => this.#connection?.destroy(), this.#settings.probeDeadlineMs);
    try {
      const { primaryUrl: url, connectTimeoutMs, namedStatements } = this.#settings;
      if (!this.#connection?.usable) {
        this.#connection = await Connection.open({
          url,
          applicationName: 'workspace-data-gateway',
          connectTimeoutMs,
          namedStatements,
        });
      }
      const atMs = Date.now(); // taken before asking: what is committed by then lies at or before the answer
      await this.#connection.run({ statement: positionStatement, workspace: null, values: {} }, ([lsn]) => {
        this.#heartbeat.add({ atMs, lsn: parseLsn(lsn as string) });
      });
      this.reachable = true;
    } catch (error) {
      if (this.reachable)
        this.#observe({ type: 'primary_failed', code: String((error as { code?: unknown }).code ?? 'connection') });
      this.reachable = false;
    } finally {
      clearTimeout(deadline);
    }
  }
}
