import { ActiveWorkspaces } from './db/active-workspaces.js';
import { ConnectionPool, type PoolLimits } from './db/connection-pool.js';
import { connectionUrls } from './db/connection-url.js';
import { Heartbeat } from './db/heartbeat.js';
import { connectWith, Login } from './db/login.js';
import { Primary, type PrimaryBounds } from './db/primary.js';
import { PrimaryProbe } from './db/primary-probe.js';
import type { ProbeBounds } from './db/probe.js';
import { Replica, type ReplicaBounds } from './db/replica.js';
import type { Observe } from './events.js';
import type { Settings } from './settings.js';

/** The connections of a gateway to its databases. */
export interface Databases {
  readonly replicas: readonly Replica[];
  readonly heartbeat: Heartbeat;
  /** Null without PRIMARY_URL: then there are no write routes. */
  readonly primary: PrimaryParts | null;
  /** Probes all servers, and again at every interval. Resolves when the state of each is known. */
  start(): Promise<void>;
  close(): Promise<void>;
}

/** The uses of the primary: writes, the few reads for which no replica is fresh enough, and the samples of its position. */
export interface PrimaryParts {
  readonly writes: Primary;
  readonly reads: ConnectionPool;
  readonly probe: PrimaryProbe;
}

/** Constructs pools and probes; opens no connection. `readAgain` reads the settings again, for logins that were renewed. */
export function databases(settings: Settings, readAgain: () => Settings, observe: Observe): Databases {
  const login = (url: string, setting: 'replicaUrls' | 'primaryUrl', server: string): Login =>
    new Login(
      url,
      () => connectionUrls(readAgain()[setting]),
      () => observe({ type: 'login_renewed', server }),
    );
  const heartbeat = new Heartbeat(settings.lagMaxMs * 2);
  const bounds = replicaBounds(settings, new ActiveWorkspaces());
  const replicas = connectionUrls(settings.replicaUrls).map((url, i) => {
    const name = `replica${i + 1}`;
    return new Replica(name, connectWith(login(url, 'replicaUrls', name), settings), bounds, heartbeat, observe);
  });
  const { primaryUrl } = settings;
  const primary =
    primaryUrl === '' ? null : primaryParts(login(primaryUrl, 'primaryUrl', 'primary'), settings, heartbeat, observe);
  return {
    replicas,
    heartbeat,
    primary,
    start: async () => {
      await primary?.probe.start();
      await Promise.all(replicas.map((replica) => replica.start()));
      // A second time, the primary first: a replica that is ahead of a position sampled after its probe follows another history.
      await primary?.probe.sample();
      await Promise.all(replicas.map((replica) => replica.probe()));
    },
    close: async () => {
      primary?.probe.close();
      for (const replica of replicas) replica.close();
      primary?.reads.close();
      await primary?.writes.close();
    },
  };
}

function primaryParts(login: Login, settings: Settings, heartbeat: Heartbeat, observe: Observe): PrimaryParts {
  const connect = connectWith(login, settings);
  return {
    writes: new Primary(login, primaryBounds(settings), observe),
    reads: new ConnectionPool(primaryReadLimits(settings), connect),
    probe: new PrimaryProbe(connect, probeBounds(settings), heartbeat, observe),
  };
}

function probeBounds({ probeIntervalMs, probeDeadlineMs }: Settings): ProbeBounds {
  return { intervalMs: probeIntervalMs, deadlineMs: probeDeadlineMs };
}

function replicaBounds(settings: Settings, activeWorkspaces: ActiveWorkspaces): ReplicaBounds {
  const { queueMax, statementTimeoutMs, shortConnections, shortDepth, longConnections, lagMaxMs } = settings;
  const { shortPerWorkspace, longPerWorkspace } = settings;
  const both = { queueMax, statementTimeoutMs, activeWorkspaces };
  return {
    short: { ...both, connections: shortConnections, depth: shortDepth, perWorkspace: shortPerWorkspace },
    long: { ...both, connections: longConnections, depth: 1, perWorkspace: longPerWorkspace },
    probe: probeBounds(settings),
    lagMaxMs,
  };
}

function primaryBounds({ primaryConnections, queueMax, writeWaitMs, writeTimeoutMs }: Settings): PrimaryBounds {
  return { connections: primaryConnections, queueMax, waitMs: writeWaitMs, timeoutMs: writeTimeoutMs };
}

/** Limits of the pool for reads on the primary, whose number per second is capped. */
function primaryReadLimits({ primaryReadConnections, statementTimeoutMs, queueMax }: Settings): PoolLimits {
  const connections = primaryReadConnections;
  return { connections, depth: 1, perWorkspace: connections, queueMax, statementTimeoutMs };
}
