import cluster from 'node:cluster';
import type { Server } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DestinationStream } from 'pino';
import { type AppDeps, app } from './app.js';
import { fittingSettings } from './check/fitting-settings.js';
import { checkServerLate } from './check/inspect.js';
import { type CompiledResource, compileResource, redactionOf } from './definition/compiled.js';
import { loadResources } from './definition/load.js';
import type { Resource } from './definition/resource.js';
import { StartRefused } from './errors.js';
import type { Observe } from './events.js';
import { ActiveKeys } from './flow/gate.js';
import { gatesOf } from './flow/gates.js';
import { bodyReader } from './http/body.js';
import { descriptions } from './http/descriptions.js';
import { encodingsOf } from './http/encodings.js';
import { close, connectionsOf, drain, listen } from './http/listeners.js';
import { apiVersion } from './http/render.js';
import { apiServer } from './http/server.js';
import { Tokens } from './http/tokens.js';
import { logEvents, startTraces } from './ops/log.js';
import { type GaugeSources, metricsEvents, type ReadMetrics } from './ops/metrics.js';
import { type Readiness, readinessOf } from './ops/readiness.js';
import { type OpsDeps, opsServer } from './ops/server.js';
import { statusOf } from './ops/status/status.js';
import { readText } from './paths.js';
import { type Peers, standalone } from './peers/peers.js';
import { connectWith, Login } from './postgres/connection.js';
import { ConnectionPool, type PoolLimits } from './postgres/connection-pool.js';
import { connectionUrls, serverName } from './postgres/connection-url.js';
import { Heartbeat, WritePositions } from './postgres/heartbeat.js';
import { Primary, type PrimaryBounds, type PrimaryNode, PrimaryNodes } from './postgres/primary.js';
import { type CheckResult, LateCheck, type ProbeBounds } from './postgres/probe.js';
import { Replica, type ReplicaBounds } from './postgres/replica.js';
import { Upkeep } from './postgres/upkeep.js';
import { verifyKeys } from './projection/aes-gcm/verify-keys.js';
import { loadCodecModule } from './projection/codec.js';
import { decryptModeOf } from './projection/codecs.js';
import { type Keyring, parseKeyring } from './projection/keyring.js';
import type { ProjectionOptions } from './projection/redact.js';
import { ChunkMemory } from './read/chunks.js';
import { PageMemory } from './read/page-memory.js';
import { primaryReads } from './read/routing.js';
import type { Settings } from './settings.js';
import { LatestTimeline } from './sync/pass.js';
import { assertWireShape } from './wire/wire.js';

/**
 * Compiles the definitions, checks the databases, opens the listeners. `readAgain` reads the settings again when PostgreSQL
 * refuses a login. Throws StartRefused after closing all that it opened.
 */
export async function startGateway(
  given: Settings,
  logTo?: DestinationStream,
  readAgain: () => Settings = () => given,
): Promise<Gateway> {
  const closers = new Closers();
  const sinks: Observe[] = [];
  const observe: Observe = (event) => {
    for (const sink of sinks) sink(event);
  };
  const log = logEvents(given.logLevel, observe, logTo);
  sinks.push(log.add);
  closers.add(() => log.close());
  try {
    if (given.otelExporterOtlpEndpoint !== '') closers.add(await startTraces(given.otelExporterOtlpEndpoint));
    assertWireShape();
    const keyring = refusing(() => parseKeyring(given.dataKeys || '{}'));
    const resources = loadResources(given.resourcesDir);
    const checking = fittingSettings(given, resources, observe);
    checking.catch(() => undefined); // the keys can be refused first
    if (decryptModeOf(given.decrypt) === 'batched') refusing(() => verifyKeys(keyring)); // while PostgreSQL answers
    const addSink = (sink: Observe): unknown => sinks.push(sink);
    return await openGateway({ given, checking, resources, keyring, readAgain, observe, addSink, closers });
  } catch (error) {
    await closers.closeAll();
    throw error;
  }
}

function refusing<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new StartRefused(`DATA_KEYS: ${(error as Error).message}`);
  }
}

/** Closes what a gateway has opened, such as its pools, in the reverse order of its opening. */
class Closers {
  readonly #closers: (() => unknown)[] = [];

  add(close: () => unknown): void {
    this.#closers.push(close);
  }

  async closeAll(): Promise<void> {
    for (const close of this.#closers.splice(0).reverse()) await close();
  }
}

/** A running gateway. */
export interface Gateway {
  /** Origins of the two listeners, such as http://127.0.0.1:8080. */
  readonly url: string;
  readonly opsUrl: string;
  /** The API listener. */
  readonly server: Server;
  readonly replicas: readonly Replica[];
  readonly readiness: () => Readiness;
  readonly metrics: ReadMetrics;
  /** Reports events of the process, such as an uncaught error, to the gateway's log and metrics. */
  readonly observe: Observe;
  /** Not ready → drain → closed. Resolves when everything has ended, after drainMs at the latest. */
  stop(): Promise<void>;
}

/** The parts that exist before the databases are checked, and the checks. */
interface Opening {
  readonly given: Settings;
  /** Rejects with every fault that refuses the start. */
  readonly checking: ReturnType<typeof fittingSettings>;
  readonly resources: readonly Resource[];
  readonly keyring: Keyring;
  /** Reads the settings again when PostgreSQL refuses a login. */
  readonly readAgain: () => Settings;
  readonly observe: Observe;
  /** Adds a consumer of events. */
  readonly addSink: (sink: Observe) => void;
  /** Is given all that is opened here. */
  readonly closers: Closers;
}

/** Constructs the parts of a gateway, connects them, and opens the listeners. */
async function openGateway(opening: Opening): Promise<Gateway> {
  const { resources, readAgain, observe, addSink, closers } = opening;
  const compiling = compile(opening); // while PostgreSQL answers
  compiling.catch(() => undefined); // the checks name this fault among all others
  const { settings, unfit, system, ...unchecked } = await opening.checking;
  const compiled = await compiling;
  const servers = databases(settings, readAgain, observe, {
    ...unchecked,
    check: (kind, url) => checkServerLate(kind, url, { settings, resources, system }),
  });
  const { replicas, heartbeat, primary } = servers;
  const positions = new WritePositions(() => heartbeat.first);
  const peers = await peersOf(settings, positions, observe);
  closers.add(() => peers.close());
  positions.share(peers);
  const gates = gatesOf(settings, observe);
  const underWay = { requests: 0 };
  const sources: GaugeSources = {
    replicas,
    primary: primary?.nodes ?? null,
    unfit,
    redis: () => peers.redis(),
    requestsInFlight: () => underWay.requests,
    largePages: gates.largePages,
    clientConnections: () => connectionsOf(api),
  };
  const metrics = metricsEvents(sources, resources);
  addSink(metrics.observe);
  closers.add(() => servers.close());
  await servers.start();
  const upkeep = primary && new Upkeep(primary.writes, settings, observe);
  closers.add(() => upkeep?.close());
  const pages = descriptions(resources, { version: apiVersion, ...settings });
  const shared = { positions, peers, gates, underWay, pages, upkeep };
  const api = apiServer(app(requestDeps(opening, settings, compiled, servers, shared)), settings, observe);
  const opsDocs = settings.docs === 'ops' ? pages.docs(false) : null;
  let stopping = false;
  const readiness = (): Readiness => readinessOf(sources, stopping);
  const ops = {
    alive: () => true,
    metrics: () => metrics.registry.metrics(),
    readiness,
    status: statusOf(metrics.values, { readiness, workers: () => null, lagMaxMs: settings.lagMaxMs }),
    docs: () => opsDocs,
  };
  const opsUrl = cluster.isWorker ? '' : await listenOps(settings, ops, closers);
  const url = await listen(api, settings.host, settings.port);
  observe({ type: 'started', url, opsUrl });
  const stop = async (): Promise<void> => {
    stopping = true;
    observe({ type: 'stopping' });
    await sleep(settings.notReadyMs);
    await drain(api, settings.drainMs);
    await closers.closeAll();
  };
  return { url, opsUrl, server: api, replicas, readiness, metrics: metrics.values, observe, stop };
}

/** Parts that requests share with the rest of the gateway. */
interface SharedParts {
  readonly positions: WritePositions;
  readonly peers: Peers;
  readonly gates: ReturnType<typeof gatesOf>;
  readonly underWay: { requests: number };
  readonly upkeep: Upkeep | null;
  readonly pages: ReturnType<typeof descriptions>;
}

/** All that requests need. */
function requestDeps(
  { observe }: Opening,
  settings: Settings,
  compiled: readonly CompiledResource[],
  { replicas, heartbeat, primary }: Databases,
  { positions, peers, gates, underWay, pages, upkeep }: SharedParts,
): AppDeps {
  const failureLimiter = peers.limiter('address', settings.authFailuresPerMinute);
  const { queueWaitMs, chunkRowsMax, chunkBytes, resumeMs, skipRowsMax } = settings;
  return {
    ...settings,
    observe,
    encodings: encodingsOf(settings.compression),
    underWay,
    tracing: settings.otelExporterOtlpEndpoint !== '',
    listLimits: settings,
    reads: {
      replicas,
      observe,
      queueWaitMs,
      chunkRowsMax,
      chunkBytes,
      resumeMs,
      skipRowsMax,
      primaryReachable: () => primary?.nodes.reachable ?? false,
      chunkMemory: new ChunkMemory(),
      pageMemory: new PageMemory(settings.pageMemoryMax, settings.pageMemoryMs),
      lastWrite: (workspace) => positions.of(workspace),
      heartbeat,
      freshnessWaitMs: settings.freshnessWaitMs,
      primary: primary
        ? primaryReads(primary.reads, () => primary.nodes.reachable, settings.primaryReadsPerSecond, observe)
        : () => null,
      chunkWaitMs: settings.statementTimeoutMs,
    },
    latestTimeline: new LatestTimeline(() => heartbeat.newest),
    compiled,
    gates,
    index: pages.index,
    openapi: pages.openapi,
    docs: settings.docs === 'public' ? pages.docs(true) : null,
    tokens: new Tokens({
      ...settings,
      replicas,
      observe,
      gate: gates.unknownTokens,
      noteUse: (tokenId) => upkeep?.noteUse(tokenId),
      isExhausted: async (address) => !(await failureLimiter.peek(address)).allowed,
    }),
    tokenLimiter: peers.limiter('token', settings.rateLimitPerMinute),
    writeLimiter: settings.writesPerMinute === 0 ? null : peers.limiter('write', settings.writesPerMinute),
    failureLimiter,
    publicLimiter: peers.limiter('public', settings.publicRequestsPerMinute),
    readBody: bodyReader(settings.bodyBytesMax),
    writes: primary && { primary: primary.writes, positions, observe },
  };
}

/** The resources with all that their requests need. Throws StartRefused when CODEC_MODULE cannot be loaded. */
async function compile({ given, resources, keyring, observe }: Opening): Promise<CompiledResource[]> {
  const projection: ProjectionOptions = {
    keyring,
    legacy: given.decodeLegacy,
    decrypt: decryptModeOf(given.decrypt),
    reportMismatch: (cell) => observe({ type: 'decrypt_mismatch', ...cell }),
    redaction: redactionOf(resources),
    decode: await loadCodecModule(given.codecModule),
    moduleText: given.codecModule === '' ? undefined : readText(given.codecModule),
  };
  return resources.map((resource) => compileResource(resource, projection, observe, resources));
}

/** Limits and write positions are shared through Redis, else with the other workers of a parent, else not at all. Loads no code of the others. */
async function peersOf(settings: Settings, positions: WritePositions, observe: Observe): Promise<Peers> {
  if (settings.redisUrl !== '') {
    const { redisPeers } = await import('./peers/redis.js');
    return redisPeers(settings, settings.instances * settings.webConcurrency, observe);
  }
  if (cluster.isWorker) {
    const { workerPeers } = await import('./peers/workers.js');
    return workerPeers(settings.webConcurrency, (workspace, position) => positions.learn(workspace, position));
  }
  return standalone;
}

async function listenOps(settings: Settings, deps: OpsDeps, closers: Closers): Promise<string> {
  await deps.status.start();
  closers.add(() => deps.status.close());
  const ops = opsServer(deps, settings);
  closers.add(() => close(ops));
  return listen(ops, settings.opsHost, settings.opsPort);
}

/** The connections of a gateway to its databases. */
interface Databases {
  readonly replicas: readonly Replica[];
  readonly heartbeat: Heartbeat;
  /** Null without PRIMARY_URLS: then there are no write routes. */
  readonly primary: PrimaryParts | null;
  /** Probes all servers, and again at every interval. Resolves when the state of each is known. */
  start(): Promise<void>;
  close(): Promise<void>;
}

/** The uses of the primary: writes, the few reads for which no replica is fresh enough, and the samples of its position. */
interface PrimaryParts {
  readonly writes: Primary;
  readonly reads: ConnectionPool;
  readonly nodes: PrimaryNodes;
}

/** The servers, counted from 0, that the start could not check, and the check to make before their first use. */
interface LateChecks {
  readonly unchecked: ReadonlyMap<number, CheckResult>;
  readonly uncheckedPrimaries: ReadonlyMap<number, CheckResult>;
  readonly check: (kind: 'replica' | 'primary', url: string) => Promise<CheckResult>;
}

/** Constructs pools and probes; opens no connection. `readAgain` reads the settings again, for logins that were renewed. */
function databases(settings: Settings, readAgain: () => Settings, observe: Observe, late: LateChecks): Databases {
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
  const { shortPerWorkspace, longPerWorkspace } = settings;
  const both = { queueMax, statementTimeoutMs };
  const shareShort = { perWorkspace: shortPerWorkspace, sharing: { activeWorkspaces, divisor: 8 } };
  const shareLong = { perWorkspace: longPerWorkspace, sharing: { activeWorkspaces, divisor: 4 } };
  return {
    short: { ...both, ...shareShort, connections: shortConnections, depth: shortDepth },
    long: { ...both, ...shareLong, connections: longConnections, depth: 1 },
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
