import cluster from 'node:cluster';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DestinationStream } from 'pino';
import { app } from './app.js';
import { fittingSettings } from './check/fitting-settings.js';
import { refusalOf } from './check/inspect.js';
import { databases } from './databases.js';
import { primaryTarget } from './db/read-target.js';
import type { Replica } from './db/replica.js';
import { assertWireShape } from './db/wire/wire.js';
import { WritePositions } from './db/write-positions.js';
import { compileResource } from './definition/compiled.js';
import { loadResources } from './definition/load.js';
import { redactionOf } from './definition/redaction-rules.js';
import { StartRefused } from './errors.js';
import type { Observe } from './events.js';
import { bodyReader } from './http/body.js';
import { descriptions } from './http/descriptions.js';
import { encodingsOf } from './http/encodings.js';
import { LargePages } from './http/large-pages.js';
import { close, connectionsOf, drain, listen } from './http/listeners.js';
import { apiVersion } from './http/render.js';
import { apiServer } from './http/server.js';
import { TokenUses } from './http/token-uses.js';
import { Tokens } from './http/tokens.js';
import type { GaugeSources } from './ops/gauges.js';
import { logEvents } from './ops/log.js';
import { metricsEvents, type ReadMetrics } from './ops/metrics.js';
import { type Readiness, readinessOf } from './ops/readiness.js';
import { type OpsDeps, opsServer } from './ops/server.js';
import { statusOf } from './ops/status/status.js';
import { startTraces } from './ops/traces.js';
import { type Peers, standalone } from './peers/peers.js';
import { workerPeers } from './peers/workers.js';
import { verifyKeys } from './projection/aes-gcm/verify-keys.js';
import { loadCodecModule } from './projection/codec-module.js';
import { decryptModeOf } from './projection/codecs.js';
import { type Keyring, parseKeyring } from './projection/keyring.js';
import type { ProjectionOptions } from './projection/options.js';
import { ChunkMemory } from './read/chunk-memory.js';
import { freshnessRouter } from './read/freshness.js';
import { PageMemory } from './read/page-memory.js';
import { RunningCounts } from './read/running-counts.js';
import type { Settings } from './settings.js';
import { IdempotencyExpiry } from './write/idempotency-expiry.js';
import { RunningWrites } from './write/running-writes.js';

/** A running gateway. */
export interface Gateway {
  /** Origins of the two listeners, such as http://127.0.0.1:8080. */
  readonly url: string;
  readonly opsUrl: string;
  readonly replicas: readonly Replica[];
  readonly readiness: () => Readiness;
  readonly metrics: ReadMetrics;
  /** Reports events of the process, such as an uncaught error, to the gateway's log and metrics. */
  readonly observe: Observe;
  /** Not ready → drain → closed. Resolves when everything has ended, after drainMs at the latest. */
  stop(): Promise<void>;
}

/**
 * Compiles the definitions, checks the databases, opens the listeners. `readAgain` reads the settings again when PostgreSQL
 * refuses a login. Throws StartRefused after closing all that it opened.
 */
export async function startGateway(
  settings: Settings,
  logTo?: DestinationStream,
  readAgain: () => Settings = () => settings,
): Promise<Gateway> {
  const closers: Closer[] = [];
  try {
    return await start(settings, readAgain, logTo, closers);
  } catch (error) {
    await closeAll(closers);
    throw error;
  }
}

/** Closes one resource, such as a pool; resources are closed in the reverse order of their opening. */
type Closer = () => unknown;

async function closeAll(closers: Closer[]): Promise<void> {
  for (const close of closers.splice(0).reverse()) await close();
}

async function start(
  given: Settings,
  readAgain: () => Settings,
  logTo: DestinationStream | undefined,
  closers: Closer[],
): Promise<Gateway> {
  const sinks: Observe[] = [];
  const observe: Observe = (event) => {
    for (const sink of sinks) sink(event);
  };
  const log = logEvents(given.logLevel, observe, logTo);
  sinks.push(log.add);
  closers.push(() => log.close());
  const tracing = given.otelExporterOtlpEndpoint !== '';
  if (tracing) closers.push(await startTraces(given.otelExporterOtlpEndpoint));
  assertWireShape();
  const keyring = keyringOf(given);
  const resources = loadResources(given.resourcesDir);
  const { settings, unchecked, system } = await fittingSettings(given, resources, observe);
  const redaction = redactionOf(resources);
  const projection: ProjectionOptions = {
    keyring,
    legacy: settings.decodeLegacy,
    decrypt: decryptModeOf(settings.decrypt),
    reportMismatch: (cell) => observe({ type: 'decrypt_mismatch', ...cell }),
    redaction,
    decode: await loadCodecModule(settings.codecModule),
  };
  const compiled = resources.map((resource) => compileResource(resource, projection, observe));
  const { replicas, heartbeat, primary, ...connections } = databases(settings, readAgain, observe, {
    unchecked,
    refusalOf: (url) => refusalOf(url, settings, resources, system),
  });
  const positions = new WritePositions(() => heartbeat.first);
  const peers = await peersOf(settings, positions, observe);
  closers.push(() => peers.close());
  positions.share(peers);
  const failureLimiter = peers.limiter('address', settings.authFailuresPerMinute);
  const largePages = new LargePages(settings, observe);
  const underWay = { requests: 0 };
  const sources: GaugeSources = {
    replicas,
    primaryUp: () => primary?.nodes.reachable ?? null,
    redis: () => peers.redis(),
    requestsInFlight: () => underWay.requests,
    largePages: () => largePages.underWay,
    clientConnections: () => connectionsOf(api),
  };
  const metrics = metricsEvents(sources, resources);
  sinks.push(metrics.observe);
  closers.push(() => connections.close());
  await connections.start();
  const expiry = primary && new IdempotencyExpiry(primary.writes, settings.expiryIntervalMs, observe);
  closers.push(() => expiry?.close());
  const tokenUses = primary && new TokenUses(primary.writes, settings.tokenUsesIntervalMs, observe);
  closers.push(() => tokenUses?.close());
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
      tracing,
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
      primaryHistory: () => heartbeat.newest,
      compiled,
      largePages,
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
        noteUse: (tokenId) => tokenUses?.note(tokenId),
        isExhausted: async (address) => !(await failureLimiter.peek(address)).allowed,
      }),
      tokenLimiter: peers.limiter('token', settings.rateLimitPerMinute),
      writeLimiter: peers.limiter('write', settings.writesPerMinute),
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
    await closeAll(closers);
  };
  return { url, opsUrl, replicas, readiness, metrics: metrics.values, observe, stop };
}

/** Limits and write positions are shared through Redis, else with the other workers of a parent, else not at all. */
async function peersOf(settings: Settings, positions: WritePositions, observe: Observe): Promise<Peers> {
  if (settings.redisUrl !== '') {
    const { redisPeers } = await import('./peers/redis.js'); // only here, because ioredis takes memory and time to load
    return redisPeers(settings, settings.instances * settings.webConcurrency, observe);
  }
  if (cluster.isWorker)
    return workerPeers(settings.webConcurrency, (workspace, position) => positions.learn(workspace, position));
  return standalone;
}

async function listenOps(settings: Settings, deps: OpsDeps, closers: Closer[]): Promise<string> {
  await deps.status.start();
  closers.push(() => deps.status.close());
  const ops = opsServer(deps, settings);
  closers.push(() => close(ops));
  return listen(ops, settings.opsHost, settings.opsPort);
}

function keyringOf({ dataKeys, decrypt }: Settings): Keyring {
  try {
    const keyring = parseKeyring(dataKeys || '{}');
    if (decryptModeOf(decrypt) === 'batched') verifyKeys(keyring);
    return keyring;
  } catch (error) {
    throw new StartRefused(`DATA_KEYS: ${(error as Error).message}`);
  }
}
