import type { Observe } from '../events.js';
import type { Settings } from '../settings.js';
import { Connection } from './connection.js';
import type { Heartbeat } from './heartbeat.js';
import { Probe } from './probe.js';
import type { Statement } from './statement.js';
import { parseLsn } from './wal-position.js';

/** The first eight digits of a WAL file's name are its timeline. */
const positionStatement: Statement = {
  name: 'position',
  text: `select pg_current_wal_flush_lsn(), substr(pg_walfile_name(pg_current_wal_flush_lsn()), 1, 8), system_identifier
    from pg_control_system()`,
  parameters: [],
};

/** Samples the primary's position every probe interval on a connection of its own, for the heartbeat. Never rejects. */
export class PrimaryProbe {
  readonly #probe: Probe;
  readonly #intervalMs: number;
  readonly #heartbeat: Heartbeat;
  readonly #observe: Observe;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;
  /** Whether the last sample succeeded. */
  reachable = false;

  constructor(settings: Settings, heartbeat: Heartbeat, observe: Observe) {
    const { primaryUrl: url, connectTimeoutMs, namedStatements, probeDeadlineMs, probeIntervalMs } = settings;
    const connect = (): Promise<Connection> =>
      Connection.open({ url, applicationName: 'workspace-data-gateway', connectTimeoutMs, namedStatements });
    this.#probe = new Probe(connect, positionStatement, probeDeadlineMs);
    this.#intervalMs = probeIntervalMs;
    this.#heartbeat = heartbeat;
    this.#observe = observe;
  }

  /** Samples now, and again every interval until closed. */
  async start(): Promise<void> {
    await this.sample();
    const again = (): void => {
      if (this.#closed) return;
      this.#timer = setTimeout(() => void this.sample().then(again), this.#intervalMs).unref();
    };
    again();
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#probe.close();
  }

  /** Never rejects: `reachable` tells. */
  async sample(): Promise<void> {
    try {
      const [atMs, tickMs] = [Date.now(), performance.now()]; // before asking: what is committed by then lies at or before the answer
      const [lsn, timeline, systemIdentifier] = (await this.#probe.ask()) as [string, string, string];
      this.#heartbeat.add({ atMs, tickMs, lsn: parseLsn(lsn), timeline, systemIdentifier });
      this.reachable = true;
    } catch (error) {
      if (this.reachable && !this.#closed)
        this.#observe({ type: 'primary_failed', code: String((error as { code?: unknown }).code ?? 'connection') });
      this.reachable = false;
    }
  }
}
