import cluster from 'node:cluster';
import type { Server } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { app } from './app.js';
import type { fittingSettings } from './check/fitting-settings.js';
import { checkServerLate } from './check/inspect.js';
import type { Closers } from './closers.js';
import { databases } from './databases.js';
import { primaryTarget } from './db/read-target.js';
import type { Replica } from './db/replica.js';
import { IdempotencyExpiry, TokenUses } from './db/upkeep.js';
import { WritePositions } from './db/write-positions.js';
import { type CompiledResource, compileResource, redactionOf } from './definition/compiled.js';
import type { Resource } from './definition/resource.js';
import type { Observe } from './events.js';
import { gatesOf } from './flow/gates.js';
import { bodyReader } from './http/body.js';
import { descriptions } from './http/descriptions.js';
import { encodingsOf } from './http/encodings.js';
import { close, connectionsOf, drain, listen } from './http/listeners.js';
import { apiVersion } from './http/render.js';
import { apiServer } from './http/server.js';
import { Tokens } from './http/tokens.js';
import type { GaugeSources } from './ops/gauges.js';
import { metricsEvents, type ReadMetrics } from './ops/metrics.js';
import { type Readiness, readinessOf } from './ops/readiness.js';
import { type OpsDeps, opsServer } from './ops/server.js';
import { statusOf } from './ops/status/status.js';
import { readText } from './paths.js';
import { type Peers, standalone } from './peers/peers.js';
import { loadCodecModule } from './projection/codec.js';
import { decryptModeOf } from './projection/codecs.js';
import type { Keyring } from './projection/keyring.js';
import type { ProjectionOptions } from './projection/redact.js';
import { ChunkMemory } from './read/chunk-memory.js';
import { freshnessRouter } from './read/freshness.js';
import { PageMemory } from './read/page-memory.js';
import { RunningCounts } from './read/running-counts.js';
import type { Settings } from './settings.js';
import { LatestTimeline } from './sync/pass.js';
import { RunningWrites } from './write/write.js';

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
export async function openGateway(opening: Opening): Promise<Gateway> {
  const { resources, readAgain, observe, addSink, closers } = opening;
  const compiling = compile(opening); // while PostgreSQL answers
  compiling.catch(() => undefined); // the checks name this fault among all others
  const { settings, unfit, system, ...unchecked } = await opening.checking;
  const compiled = await compiling;
  const { replicas, heartbeat, primary, ...connections } = databases(settings, readAgain, observe, {
    ...unchecked,
    check: (kind, url) => checkServerLate(kind, url, { settings, resources, system }),
  });
  const positions = new WritePositions(() => heartbeat.first);
  const peers = await peersOf(settings, positions, observe);
  closers.add(() => peers.close());
  positions.share(peers);
  const failureLimiter = peers.limiter('address', settings.authFailuresPerMinute);
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
  closers.add(() => connections.close());
  await connections.start();
  const expiry = primary && new IdempotencyExpiry(primary.writes, settings.expiryIntervalMs, observe);
  closers.add(() => expiry?.close());
  const tokenUses = primary && new TokenUses(primary.writes, settings.tokenUsesIntervalMs, observe);
  closers.add(() => tokenUses?.close());
  const { index, openapi, docs } = descriptions(resources, { version: apiVersion, ...settings });
  let stopping = false;
  const { publicUrl, trustedProxyHops, urlBytesMax, pageTimeMaxMs, deprecation, sunset, logClientAddress } = settings;
  const { perPageDefault, perPageMax, timeZone, queueWaitMs, chunkRowsMax, chunkBytes, resumeMs, skipRowsMax } =
    settings;
  const api = apiServer(
    app({
      observe,
      publicUrl,
      trustedProxyHops,
      urlBytesMax,
      pageTimeMaxMs,
      encodings: encodingsOf(settings.compression),
      deprecation,
      sunset,
      logClientAddress,
      underWay,
      tracing: settings.otelExporterOtlpEndpoint !== '',
      listLimits: { perPageDefault, perPageMax, timeZone },
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
        runningCounts: new RunningCounts(),
        lastWrite: (workspace) => positions.of(workspace),
        chunkWaitMs: settings.statementTimeoutMs,
        routeWritten: freshnessRouter({
          replicas,
          positions,
          heartbeat,
          primary: () => (primary?.nodes.reachable ? primaryTarget(primary.reads) : null),
          primaryReadsPerSecond: settings.primaryReadsPerSecond,
          waitMs: settings.freshnessWaitMs,
          observe,
        }),
      },
      latestTimeline: new LatestTimeline(() => heartbeat.newest),
      compiled,
      gates,
      basicAuth: settings.basicAuth,
      index,
      openapi,
      docs: settings.docs === 'public' ? docs(true) : null,
      tokens: new Tokens({
        replicas,
        observe,
        tokenCacheMax: settings.tokenCacheMax,
        tokenCacheMs: settings.tokenCacheMs,
        queueWaitMs,
        gate: gates.unknownTokens,
        noteUse: (tokenId) => tokenUses?.note(tokenId),
        isExhausted: async (address) => !(await failureLimiter.peek(address)).allowed,
      }),
      tokenLimiter: peers.limiter('token', settings.rateLimitPerMinute),
      writeLimiter: settings.writesPerMinute === 0 ? null : peers.limiter('write', settings.writesPerMinute),
      failureLimiter,
      publicLimiter: peers.limiter('public', settings.publicRequestsPerMinute),
      readBody: bodyReader(settings.bodyBytesMax),
      writes: primary && {
        primary: primary.writes,
        positions,
        running: new RunningWrites(settings.idempotencyWaitMs),
        observe,
      },
    }),
    settings,
    observe,
  );
  const readiness = (): Readiness => readinessOf(sources, stopping);
  const opsUrl = cluster.isWorker
    ? ''
    : await listenOps(
        settings,
        {
          alive: () => true,
          metrics: () => metrics.registry.metrics(),
          readiness,
          status: statusOf(metrics.values, { readiness, workers: () => null, lagMaxMs: settings.lagMaxMs }),
          docs: settings.docs === 'ops' ? docs(false) : null,
        },
        closers,
      );
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
