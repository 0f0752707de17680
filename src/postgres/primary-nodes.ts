import type { Observe } from '../events.js';
import { type ConnectionOptions, errorCode } from './connection.js';
import type { Heartbeat, PositionSample } from './heartbeat.js';
import { connectWith, type Login } from './login.js';
import type { LateCheck } from './probe.js';
import { Probe, type ProbeBounds } from './probe.js';
import type { Statement } from './statement.js';
import { parseLsn, walPositionStatement } from './wal-position.js';

/** No row on a server in recovery, where these functions fail: the sub-select is evaluated before them. */
const positionStatement: Statement = {
  name: 'position',
  text: `select pg_current_wal_flush_lsn(), lsn, timeline, system from (${walPositionStatement}) position
    where (select not pg_is_in_recovery())`,
  parameters: [],
};

const reasons: Readonly<Record<string, string>> = {
  in_recovery: 'it is in recovery',
  old_timeline: 'it is on the timeline of before a promotion',
  unchecked: 'it is not checked yet',
};

/** A server that is the primary, or can become it. */
export interface PrimaryNode {
  /** Host, port and database. */
  readonly name: string;
  readonly login: Login;
  /** To be made before its first use; null where the start checked it. */
  readonly check: LateCheck | null;
}

interface ProbedNode extends PrimaryNode {
  readonly probe: Probe;
}

/**
 * The servers of PRIMARY_URLS. Each is asked for its position again and again; the primary is the one that is not in recovery,
 * and its positions are the heartbeat. A failover puts another server in its place without a restart.
 */
export class PrimaryNodes {
  readonly #nodes: readonly ProbedNode[];
  readonly #heartbeat: Heartbeat;
  readonly #observe: Observe;
  readonly #onChange: () => void;
  #current: ProbedNode;
  /** Whether the last sample of the primary succeeded. */
  reachable = false;
  /** Why it did not; null while it is reachable. */
  reason: string | null = 'not probed yet';

  /** `nodes` are not empty; the first is taken for the primary until one has answered as such. */
  constructor(
    nodes: readonly PrimaryNode[],
    options: Omit<ConnectionOptions, 'url'> & { readonly probe: ProbeBounds },
    heartbeat: Heartbeat,
    observe: Observe,
    onChange: () => void,
  ) {
    this.#nodes = nodes.map((node) => {
      const probe = new Probe(connectWith(node.login, options), positionStatement, options.probe);
      return { ...node, probe };
    });
    this.#current = this.#nodes[0] as ProbedNode;
    this.#heartbeat = heartbeat;
    this.#observe = observe;
    this.#onChange = onChange;
  }

  /** The login of the primary of this moment; null while it is not checked. */
  get login(): Login | null {
    const { login, check } = this.#current;
    return check?.isComplete === false ? null : login;
  }

  /** Samples now, in the order of the setting, and again every interval until closed. */
  async start(): Promise<void> {
    for (const node of this.#nodes) await node.probe.repeat(() => this.#sample(node));
  }

  close(): void {
    for (const { probe } of this.#nodes) probe.close();
  }

  /** Samples the primary once. Never rejects; the outcome is `reachable`. */
  sample(): Promise<void> {
    return this.#sample(this.#current);
  }

  async #sample(node: ProbedNode): Promise<void> {
    try {
      // Taken before the statement, so that all commits until then lie at or before the position.
      const [atMs, tickMs] = [Date.now(), performance.now()];
      const [lsn, insertLsn, timeline, systemIdentifier] = (await node.probe.ask()) as string[];
      if (lsn === undefined || insertLsn === undefined) return this.#fail(node, 'in_recovery');
      await node.check?.repeat();
      if (node.check?.isComplete === false) return this.#fail(node, 'unchecked', node.check.result.refusal);
      const positions = { lsn: parseLsn(lsn), insertLsn: parseLsn(insertLsn) };
      const history = { timeline: timeline as string, systemIdentifier: systemIdentifier as string };
      this.#accept(node, { atMs, tickMs, ...positions, ...history });
    } catch (error) {
      this.#fail(node, errorCode(error));
    }
  }

  /**
   * Two servers can be out of recovery: after a failover the old primary comes back on its old timeline, where writes are lost.
   * So the later timeline wins, and an earlier one than the newest sample's is never accepted.
   */
  #accept(node: ProbedNode, sample: PositionSample): void {
    const { newest } = this.#heartbeat;
    const isCurrent = node === this.#current;
    if (newest !== undefined && sample.systemIdentifier !== newest.systemIdentifier && !isCurrent) return;
    if (newest?.systemIdentifier === sample.systemIdentifier && sample.timeline < newest.timeline)
      return this.#fail(node, 'old_timeline');
    if (!isCurrent && this.reachable && sample.timeline === newest?.timeline) return;
    this.#heartbeat.add(sample);
    this.reachable = true;
    this.reason = null;
    if (isCurrent) return;
    this.#current = node;
    if (newest !== undefined) this.#observe({ type: 'primary_changed', server: node.name });
    this.#onChange();
  }

  #fail(node: ProbedNode, code: string, reason: string | null = null): void {
    if (node !== this.#current) return;
    this.reason = reason ?? reasons[code] ?? `it does not answer (${code})`;
    if (this.reachable && !node.probe.closed) this.#observe({ type: 'primary_failed', code });
    this.reachable = false;
  }
}
