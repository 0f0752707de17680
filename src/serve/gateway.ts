import cluster from 'node:cluster';
import type { Server } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DestinationStream } from 'pino';
import type { Observe } from '../base/events.js';
import { Closers } from '../base/flow/closers.js';
import { EventLoop } from '../base/flow/event-loop.js';
import { ActiveKeys } from '../base/flow/gate.js';
import { makeGates, makeLimits } from '../base/flow/gates.js';
import { pick, splitList } from '../base/members.js';
import { checkServerLate, fitSettings } from '../doctor/inspect.js';
import { FitnessWatch, type WatchedServer } from '../doctor/watch.js';
import { makePrimaryLender } from '../postgres/choice.js';
import { type ConnectionOptions, makeConnect, StatementNames } from '../postgres/connection.js';
import { ConnectionPool, type PoolLimits } from '../postgres/connection-pool.js';
import { getServerName, makeUrlReader } from '../postgres/connection-url.js';
import { Heartbeat, WritePositions } from '../postgres/heartbeat.js';
import {
  Primary,
  type PrimaryBounds,
  PrimaryNodes,
  primaryReadConnections,
  type ServerNode,
} from '../postgres/primary.js';
import { type CheckResult, LateCheck, type ProbeBounds } from '../postgres/probe.js';
import { Replica } from '../postgres/replica.js';
import { ServerHealth } from '../postgres/resource-health.js';
import { listSessionSettings } from '../postgres/wire/session.js';
import { makeWorkspaceMac } from '../postgres/workspace-mac.js';
import { type CompiledResource, compileResources } from '../resource/compiled.js';
import { loadResources } from '../resource/definition/load.js';
import type { Resource } from '../resource/definition/resource.js';
import { parseKeyring } from '../resource/projection/keyring.js';
import type { Settings } from '../settings.js';
import { type AppDeps, makeApp } from './app.js';
import { makeApiServer } from './http/api-server.js';
import { makeBodyReader } from './http/body.js';
import { type Descriptions, makeDescriptions } from './http/descriptions.js';
import { close, countConnections, drain, listen } from './http/listeners.js';
import { apiVersion } from './http/render.js';
import { Tokens } from './http/token-look-up.js';
import { documentSettings } from './openapi/values.js';
import { openLog, startTraces } from './ops/log.js';
import { type GaugeSources, type MetricValues, makeMetrics } from './ops/metrics.js';
import { makeOpsServer, type OpsDeps } from './ops/ops-server.js';
import { RecentFaults } from './ops/recent.js';
import { listLacks, readDescriptorsMax } from './ops/self.js';
import { judgeReadiness, type Readiness, reportStatus } from './ops/status.js';
import { type Peers, standalone } from './peers/peers.js';
import { ChunkMemory } from './read/chunk-memory.js';
import { PageMemory } from './read/page-memory.js';
import { watchTimeline } from './sync/pass.js';
import { makeTokenSeal, readSyncKeys } from './sync/token-seal.js';
import { Upkeep } from './upkeep.js';

/** A parent's message to its workers, which read no file of definitions: it may be broken by now, or not be meant to serve yet. */
export interface WorkerStart {
  readonly resources: readonly Resource[];
  /** Workers with these definitions have served: resources that no longer fit are refused, not the start. */
  readonly isSuccessor: boolean;
}

/** Starts a gateway; `readAgain` serves the login of each new connection. Throws StartRefused after closing everything it opened. */
export async function startGateway(
  startSettings: Settings,
  logTo?: DestinationStream,
  readAgain: () => Settings = () => startSettings,
  { resources = loadResources(startSettings.resourcesDir), isSuccessor = false }: Partial<WorkerStart> = {},
): Promise<Gateway> {
  const closers = new Closers();
  const sinks: Observe[] = [];
  const observe: Observe = (event) => {
    for (const sink of sinks) sink(event);
  };
  const log = openLog(startSettings.logLevel, observe, logTo);
  sinks.push(log.add);
  closers.add(() => log.close());
  try {
    if (startSettings.otelExporterOtlpEndpoint !== '')
      closers.add(await startTraces(startSettings.otelExporterOtlpEndpoint));
    // Alone: while something else holds the event loop, the checks would find each server late.
    const { settings, ...checked } = await fitSettings(startSettings, resources, observe, isSuccessor);
    const keyring = parseKeyring(startSettings.dataKeys || '{}');
    const codecs = pick(startSettings, 'codecModule', 'decodeLegacy');
    const compiled = await compileResources(codecs, resources, keyring, observe);
    const reporting = { observe, logStuckMs: log.stuckMs, sinks, closers };
    const opening = { ...checked, resources, isSuccessor, compiled, readAgain, ...reporting };
    return await openGateway(settings, opening);
  } catch (error) {
    await closers.terminate().catch(() => undefined); // the error of the start is reported, not the error of the end
    throw error;
  }
}

export interface Gateway {
  readonly url: string;
  readonly opsUrl: string;
  readonly replicas: readonly Replica[];
  readonly readiness: () => Readiness;
  readonly metrics: () => Promise<MetricValues>;
  /** Reports events of the process, such as an uncaught error. */
  readonly observe: Observe;
  /** Goes from not ready to drained to closed, after drainMs at the latest. */
  stop(): Promise<void>;
}

/** State of a start with the findings of the checks, before the databases are connected. */
interface CheckedStart extends Omit<Awaited<ReturnType<typeof fitSettings>>, 'settings'> {
  readonly resources: readonly Resource[];
  readonly isSuccessor: boolean;
  readonly compiled: readonly CompiledResource[];
  readonly readAgain: () => Settings;
  readonly observe: Observe;
  readonly logStuckMs: () => number;
  readonly sinks: Observe[];
  /** Collects everything that is opened, to close it in reverse order. */
  readonly closers: Closers;
}

async function openGateway(settings: Settings, opening: CheckedStart): Promise<Gateway> {
  const { resources, observe, sinks, closers } = opening;
  const opened = await openAll(settings, opening);
  const { databases, watch, recent } = opened;
  const pages = makeDescriptions(resources, { version: apiVersion, ...pick(settings, ...documentSettings) });
  const clientConnectionsMax = countRoomForClients(settings, databases.replicas.length, observe);
  const app = makeApp(makeDeps(settings, opening, opened, pages));
  const timeLimits = pick(settings, 'headersTimeoutMs', 'requestTimeoutMs', 'keepAliveTimeoutMs', 'slowClientMs');
  const api = makeApiServer(app, { ...timeLimits, clientConnectionsMax }, observe);
  const sources = makeGaugeSources(settings, opening, opened, api);
  const metrics = makeMetrics(sources);
  sinks.push(watch.handle, recent.observe, metrics.observe);
  await databases.start();
  if (opening.isSuccessor) await databases.readable(); // other workers answer meanwhile
  if (opening.isDoubtful) await watch.look();
  const stopping = new AbortController();
  const readiness = (): Readiness => judgeReadiness(sources, stopping.signal.aborted);
  const opsDocs = settings.docs === 'ops' ? pages.docs(false) : null;
  const ops = {
    alive: () => true,
    metrics: () => metrics.registry.metrics(),
    readiness,
    status: () => reportStatus(readiness(), settings.lagMaxMs),
    docs: () => opsDocs,
  };
  const opsUrl = cluster.isWorker ? '' : await listenOps(settings, ops, closers, observe);
  const url = await listen(api, settings.host, settings.port);
  observe({ type: 'started', url, opsUrl });
  const stop = async (): Promise<void> => {
    stopping.abort();
    observe({ type: 'stopping' });
    await sleep(settings.notReadyMs);
    await drain(api, settings.drainMs);
    await closers.terminate();
  };
  return { url, opsUrl, replicas: databases.replicas, readiness, metrics: metrics.values, observe, stop };
}

type OpenParts = Awaited<ReturnType<typeof openAll>>;

/** Connects to nothing but Redis; `closers` closes all parts in reverse order. */
async function openAll(settings: Settings, opening: CheckedStart) {
  const { resources, observe, closers } = opening;
  const loop = new EventLoop();
  closers.add(() => loop.close());
  const databases = openDatabases(settings, opening, loop);
  closers.add(() => databases.close());
  const { heartbeat, primary } = databases;
  const positions = new WritePositions(() => heartbeat.first);
  const peers = await openPeers(settings, positions, observe);
  closers.add(() => peers.close());
  positions.join(peers);
  const watch = new FitnessWatch(databases.watched, resources, settings, observe);
  closers.add(() => watch.close());
  const upkeep = primary && new Upkeep(primary.writes, pick(settings, 'wallKey', 'upkeepIntervalMs'), observe);
  closers.add(() => upkeep?.close());
  const readBody = primary && (await makeBodyReader(settings.bodyBytesMax));
  const shared = { gates: makeGates(settings), limits: makeLimits(settings, peers), inFlight: { requests: 0 } };
  return { ...shared, loop, databases, positions, peers, watch, upkeep, readBody, recent: new RecentFaults() };
}

function makeGaugeSources(settings: Settings, opening: CheckedStart, opened: OpenParts, api: Server): GaugeSources {
  const { loop, databases, peers, watch, upkeep, gates, recent, inFlight } = opened;
  const { replicas, primary } = databases;
  return {
    ...pick(opening, 'resources', 'unfit'),
    ...pick(settings, 'lagMaxMs'),
    replicas,
    primary: primary?.nodes ?? null,
    writesObstacle: () => primary?.writes.obstacle,
    refused: () => watch.refused,
    lacks: () => listLacks({ loop, ...pick(opening, 'logStuckMs') }),
    recent: () => recent.getCounts(),
    redis: () => peers.redis(),
    requestsInFlight: () => inFlight.requests,
    storedAnswersBytes: () => upkeep?.answersBytes ?? null,
    largePages: gates.countLargePages,
    clientConnections: () => countConnections(api),
  };
}

/** Descriptors for files, the ops listener and its clients. */
const otherDescriptors = 64;
/** A lock reserves up to twice the connections of a pool, and the pool opens others. */
const reservedFactor = 3;
/** A replica has one connection for its probe and one for the looks at its views. */
const ownConnections = 2;

/** Counts client connections for which the limit of open files leaves room after servers and ops listener; at least a quarter of it. */
function countRoomForClients(settings: Settings, replicas: number, observe: Observe): number {
  const { clientConnectionsMax, shortConnections, longConnections, primaryConnections } = settings;
  const ofReplicas = replicas * (reservedFactor * (shortConnections + longConnections) + ownConnections);
  const others = ofReplicas + reservedFactor * primaryConnections + otherDescriptors;
  const max = readDescriptorsMax() ?? Number.POSITIVE_INFINITY;
  const needed = clientConnectionsMax + others;
  if (max >= needed) return clientConnectionsMax;
  observe({ type: 'descriptors_few', max, needed });
  return Math.min(clientConnectionsMax, Math.max(Math.floor(max / 4), max - others));
}

function makeDeps(settings: Settings, opening: CheckedStart, opened: OpenParts, pages: Descriptions): AppDeps {
  const { resources, compiled, observe } = opening;
  const { databases, watch, positions, upkeep, readBody } = opened;
  const { replicas, heartbeat, primary } = databases;
  const reads = makeReadDeps(settings, observe, opened);
  return {
    ...pick(settings, 'trustedProxyHops', 'deprecation', 'sunset', 'logClientAddress', 'basicAuth', 'publicUrl'),
    ...pick(settings, 'corsOrigins', 'pageTimeMaxMs'),
    ...pick(opened, 'gates', 'limits', 'inFlight'),
    observe,
    compiled,
    tracing: settings.otelExporterOtlpEndpoint !== '',
    listLimits: pick(settings, 'perPageDefault', 'perPageMax', 'timeZone'),
    reads,
    noteRead: (tokenId, content) => upkeep?.noteRead(tokenId, content),
    latestTimeline: watchTimeline(() => heartbeat.newest),
    syncSeal: makeTokenSeal(settings.wallKey, () => readSyncKeys(reads)),
    ...pages,
    docs: settings.docs === 'public' ? pages.docs(true) : null,
    tokens: new Tokens({
      ...pick(settings, 'tokenCacheMax', 'tokenCacheMs', 'queueWaitMs'),
      replicas,
      observe,
      gate: opened.gates.unknownTokens,
      lendPrimary: reads.lendPrimary,
      mayRefuse: (again) => {
        const fits = () => !resources.every(({ name }) => watch.refuses(name, 'read'));
        return again ? watch.lookAfresh().then((isJudged) => isJudged && fits()) : fits();
      },
      noteUse: (tokenId) => upkeep?.noteUse(tokenId),
    }),
    writes: primary &&
      readBody && {
        primary: primary.writes,
        refuses: (resource) => watch.refuses(resource, 'write'),
        positions,
        observe,
        readBody,
      },
  };
}

function makeReadDeps(
  settings: Settings,
  observe: Observe,
  { databases, watch, positions }: OpenParts,
): AppDeps['reads'] {
  const { replicas, heartbeat, primary } = databases;
  return {
    ...pick(settings, 'queueWaitMs', 'detailWaitMs', 'statementTimeoutMs', 'freshnessWaitMs', 'resumeMs'),
    ...pick(settings, 'chunkRowsMax', 'chunkBytes', 'skipRowsMax'),
    replicas,
    heartbeat,
    refuses: (resource) => watch.refuses(resource, 'read'),
    observe,
    primaryReachable: () => primary?.nodes.isReachable ?? false,
    chunkMemory: new ChunkMemory(),
    pageMemory: new PageMemory(settings.pageMemoryMax),
    findLastWrite: (workspace) => positions.findLastWrite(workspace),
    lendPrimary: primary
      ? makePrimaryLender(primary.reads, () => primary.nodes.isReachable, settings.primaryReadsPerSecond, observe)
      : () => null,
  };
}

/** Connects through Redis, or the parent of workers, and imports only the chosen one. */
async function openPeers(settings: Settings, positions: WritePositions, observe: Observe): Promise<Peers> {
  if (settings.redisUrl !== '') {
    const { connectRedisPeers } = await import('./peers/redis.js');
    const target = pick(settings, 'redisUrl', 'redisCa', 'redisSentinels', 'redisSentinelName');
    return connectRedisPeers(target, settings.instances * settings.webConcurrency, observe);
  }
  if (cluster.isWorker) {
    const { connectWorkerPeers } = await import('./peers/workers.js');
    return connectWorkerPeers(settings.webConcurrency, (workspace, position) => positions.learn(workspace, position));
  }
  return standalone;
}

async function listenOps(settings: Settings, deps: OpsDeps, closers: Closers, observe: Observe): Promise<string> {
  const ops = makeOpsServer(deps, settings, observe);
  closers.add(() => close(ops));
  return listen(ops, settings.opsHost, settings.opsPort);
}

/** Picks the settings that bound the servers. */
function pickBounds(settings: Settings, loop: EventLoop, names: StatementNames) {
  const probing = pick(settings, 'probeIntervalMs', 'probeDeadlineMs');
  const shared = { loop, ...probing, ...pick(settings, 'statementTimeoutMs', 'quietMs', 'queueMax') };
  const computeMac = makeWorkspaceMac(settings.wallKey);
  const connecting = { loop, names, computeMac, ...pick(settings, 'connectTimeoutMs') };
  return {
    connecting: { ...connecting, session: listSessionSettings('replica', settings) },
    ofReplicas: {
      ...shared,
      ...pick(settings, 'lagMaxMs', 'shortConnections', 'shortDepth', 'shortPerWorkspace'),
      ...pick(settings, 'longConnections', 'longPerWorkspace'),
      activeWorkspaces: new ActiveKeys(),
    },
    ofPrimary: {
      ...connecting,
      ...shared,
      session: listSessionSettings('primary', settings),
      ...pick(settings, 'primaryConnections', 'writeWaitMs', 'writeTimeoutMs'),
    },
  };
}

/** Makes the databases without opening a connection. */
function openDatabases(settings: Settings, opening: CheckedStart, loop: EventLoop) {
  const { unchecked, uncheckedPrimaries, observe } = opening;
  const names = new StatementNames(settings.namedStatements);
  const { connecting, ofReplicas, ofPrimary } = pickBounds(settings, loop, names);
  const heartbeat = new Heartbeat(settings.lagMaxMs * 2);
  const servers = openServers(settings, opening, 'replica', unchecked);
  const replicas = servers.map(({ readUrl, ...server }) => {
    return new Replica({ ...server, connect: makeConnect(readUrl, connecting) }, ofReplicas, heartbeat, observe);
  });
  names.onLoss.push(() => {
    observe({ type: 'named_statements_off' });
    for (const replica of replicas) replica.renew();
  });
  const primaries = openServers(settings, opening, 'primary', uncheckedPrimaries);
  const primary = openPrimary(primaries, ofPrimary, heartbeat, observe);
  return {
    replicas,
    heartbeat,
    primary,
    watched: listWatchedServers(servers, replicas, primary),
    /** Resolves when the state of each server is known. */
    start: async () => {
      await primary?.nodes.start();
      await Promise.all(replicas.map((replica) => replica.start()));
      // Again, the primary first: a replica ahead of a later sample follows another history.
      await primary?.nodes.sample();
      await Promise.all(replicas.map((replica) => replica.probe()));
    },
    /** Resolves when a replica can be read, or after ten seconds. */
    readable: async () => {
      for (const endMs = performance.now() + 10_000; performance.now() < endMs; await sleep(50))
        if (replicas.some(({ state }) => state.healthy)) return;
    },
    close: async () => {
      primary?.nodes.close();
      for (const replica of replicas) replica.close();
      primary?.reads.close();
      primary?.writes.close();
    },
  };
}

/** Makes servers; those that the start could not check get a late check. */
function openServers(
  settings: Settings,
  { resources, system, readAgain }: CheckedStart,
  kind: 'replica' | 'primary',
  unchecked: ReadonlyMap<number, CheckResult>,
): ServerNode[] {
  const setting = kind === 'replica' ? 'replicaUrls' : 'primaryUrls';
  return splitList(settings[setting]).map((url, i) => {
    const name = getServerName(url);
    const readUrl = makeUrlReader(url, () => splitList(readAgain()[setting]));
    const uncheckedResult = unchecked.get(i);
    const checkLate = () => checkServerLate(kind, readUrl(), { settings, resources, system });
    return { name, readUrl, check: uncheckedResult === undefined ? null : new LateCheck(uncheckedResult, checkLate) };
  });
}

/** Lists the replicas, and the current primary. */
function listWatchedServers(
  servers: readonly ServerNode[],
  replicas: readonly Replica[],
  primary: ReturnType<typeof openPrimary>,
): WatchedServer[] {
  const ofReplicas = servers.map(({ name, readUrl }, i): WatchedServer => {
    return { kind: 'replica', name, url: () => (replicas[i]?.state.healthy ? readUrl() : null) };
  });
  if (primary === null) return ofReplicas;
  const { nodes } = primary;
  return [...ofReplicas, { kind: 'primary', name: 'primary', url: () => (nodes.isReachable ? nodes.url : null) }];
}

/** Makes the primary, which serves writes, the few reads for which no replica is fresh enough, and positions. Null without PRIMARY_URLS. */
function openPrimary(
  all: readonly ServerNode[],
  bounds: ConnectionOptions & ProbeBounds & PrimaryBounds & Pick<PoolLimits, 'statementTimeoutMs' | 'quietMs'>,
  heartbeat: Heartbeat,
  observe: Observe,
) {
  if (all.length === 0) return null;
  const nodes = new PrimaryNodes(all, bounds, heartbeat, observe);
  const connect = makeConnect(() => nodes.url, bounds);
  const writes = new Primary(connect, bounds, observe, () => void nodes.sample());
  const limits = pick(bounds, 'queueMax', 'statementTimeoutMs', 'quietMs');
  const reads = new ConnectionPool(
    { ...limits, connections: primaryReadConnections, depth: 1, perWorkspace: primaryReadConnections },
    connect,
    new ServerHealth('primary', bounds.loop, observe),
  );
  nodes.users.push(writes, { moveToNewPrimary: () => reads.reset() });
  return { nodes, writes, reads };
}
