import { ConnectionPool, type PoolLimits } from './db/connection-pool.js';
import { connectionUrls, serverName } from './db/connection-url.js';
import { Heartbeat } from './db/heartbeat.js';
import { type CheckResult, LateCheck } from './db/late-check.js';
import { connectWith, Login } from './db/login.js';
import { Primary, type PrimaryBounds } from './db/primary.js';
import { type PrimaryNode, PrimaryNodes } from './db/primary-nodes.js';
import type { ProbeBounds } from './db/probe.js';
import { Replica, type ReplicaBounds } from './db/replica.js';
import type { Observe } from './events.js';
import { ActiveKeys } from './flow/gate.js';
import type { Settings } from './settings.js';

/** The connections of a gateway to its databases. */
export interface Databases {
  readonly replicas: readonly Replica[];
  readonly heartbeat: Heartbeat;
  /** Null without PRIMARY_URLS: then there are no write routes. */
  readonly primary: PrimaryParts | null;
  /** Probes all servers, and again at every interval. Resolves when the state of each is known. */
  start(): Promise<void>;
  close(): Promise<void>;
}

/** The uses of the primary: writes, the few reads for which no replica is fresh enough, and the samples of its position. */
export interface PrimaryParts {
  readonly writes: Primary;
  readonly reads: ConnectionPool;
  readonly nodes: PrimaryNodes;
}

/** The servers, counted from 0, that the start could not check, and the check to make before their first use. */
export interface LateChecks {
  readonly unchecked: ReadonlyMap<number, CheckResult>;
  readonly uncheckedPrimaries: ReadonlyMap<number, CheckResult>;
  readonly check: (kind: 'replica' | 'primary', url: string) => Promise<CheckResult>;
}

/** Constructs pools and probes; opens no connection. `readAgain` reads the settings again, for logins that were renewed. */
export function databases(
  settings: Settings,
  readAgain: () => Settings,
  observe: Observe,
  late: LateChecks,
): Databases {
  const login = (url: string, setting: 'replicaUrls' | 'primaryUrls'): Login =>
    new Login(
      url,
      () => connectionUrls(readAgain()[setting]),
      () => observe({ type: 'login_renewed', server: serverName(url) }),
    );
  const heartbeat = new Heartbeat(settings.lagMaxMs * 2);
  const bounds = replicaBounds(settings, new ActiveKeys());
  const replicas = connectionUrls(settings.replicaUrls).map((url, i) => {
    const own = login(url, 'replicaUrls');
    const first = late.unchecked.get(i);
    const check = first === undefined ? null : new LateCheck(first, () => late.check('replica', own.url));
    return new Replica(serverName(url), connectWith(own, settings), bounds, heartbeat, observe, check);
  });
  const nodes = connectionUrls(settings.primaryUrls).map((url, i) => {
    const own = login(url, 'primaryUrls');
    const first = late.uncheckedPrimaries.get(i);
    const check = first === undefined ? null : new LateCheck(first, () => late.check('primary', own.url));
    return { name: serverName(url), login: own, check };
  });
  const primary = nodes.length === 0 ? null : primaryParts(nodes, settings, heartbeat, observe);
  return {
    replicas,
    heartbeat,
    primary,
    start: async () => {
      const connected = replicas.map((replica, i) => (late.unchecked.has(i) ? undefined : replica.connect()));
      await primary?.nodes.start();
      await Promise.all(connected);
      await Promise.all(replicas.map((replica) => replica.start()));
      // A second time, the primary first: a replica that is ahead of a position sampled after its probe follows another history.
      await primary?.nodes.sample();
      await Promise.all(replicas.map((replica) => replica.probe()));
    },
    close: async () => {
      primary?.nodes.close();
      for (const replica of replicas) replica.close();
      primary?.reads.close();
      await primary?.writes.close();
    },
  };
}

function primaryParts(
  all: readonly PrimaryNode[],
  settings: Settings,
  heartbeat: Heartbeat,
  observe: Observe,
): PrimaryParts {
  const options = { ...settings, probe: probeBounds(settings) };
  const nodes: PrimaryNodes = new PrimaryNodes(all, options, heartbeat, observe, () => {
    writes.moveToNewPrimary();
    reads.reset();
  });
  const writes = new Primary(() => nodes.login, primaryBounds(settings), observe);
  const reads = new ConnectionPool(primaryReadLimits(settings), () => connectWith(nodes.login as Login, settings)()); // asked only while the primary is reachable
  return { nodes, writes, reads };
}

function probeBounds({ probeIntervalMs, probeDeadlineMs }: Settings): ProbeBounds {
  return { intervalMs: probeIntervalMs, deadlineMs: probeDeadlineMs };
}

function replicaBounds(settings: Settings, activeWorkspaces: ActiveKeys): ReplicaBounds {
  const { queueMax, statementTimeoutMs, shortConnections, shortDepth, longConnections, lagMaxMs } = settings;
  const { shortPerWorkspace, longPerWorkspace, chunksBesideDetails } = settings;
  const both = { queueMax, statementTimeoutMs };
  const shareShort = { perWorkspace: shortPerWorkspace, sharing: { activeWorkspaces, divisor: 8 } };
  const shareLong = { perWorkspace: longPerWorkspace, sharing: { activeWorkspaces, divisor: 4 } };
  return {
    short: { ...both, ...shareShort, connections: shortConnections, depth: shortDepth },
    long: { ...both, ...shareLong, connections: longConnections, depth: 1 },
    chunksBesideDetails,
    probe: probeBounds(settings),
    lagMaxMs,
  };
}

function primaryBounds(settings: Settings): PrimaryBounds {
  const { primaryConnections, queueMax, writeWaitMs, writeTimeoutMs, namedStatements } = settings;
  return { connections: primaryConnections, queueMax, waitMs: writeWaitMs, timeoutMs: writeTimeoutMs, namedStatements };
}

/** Limits of the pool for reads on the primary, whose number per second is capped. */
function primaryReadLimits({ primaryReadConnections, statementTimeoutMs, queueMax }: Settings): PoolLimits {
  const connections = primaryReadConnections;
  return { connections, depth: 1, perWorkspace: connections, queueMax, statementTimeoutMs };
}
