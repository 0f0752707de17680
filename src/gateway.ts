import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { DestinationStream } from 'pino';
import { app } from './app.js';
import { compileResource } from './compile/compiled.js';
import { openapi } from './compile/openapi.js';
import { Connection } from './db/connection.js';
import { Lane } from './db/lane.js';
import { Heartbeat } from './db/position.js';
import { Primary } from './db/primary.js';
import { PrimaryProbe } from './db/primary-probe.js';
import { Replica } from './db/replica.js';
import { primarySource } from './db/source.js';
import { WritePositions } from './db/write-positions.js';
import { Tokens } from './http/auth.js';
import { memoryLimiter } from './http/limits.js';
import { apiVersion } from './http/render.js';
import { apiServer } from './http/server.js';
import { docsPage } from './ops/docs-page.js';
import type { Observe } from './ops/events.js';
import { logEvents } from './ops/log.js';
import { metricsEvents } from './ops/metrics.js';
import { opsServer } from './ops/server.js';
import { parseKeyring } from './projection/keyring.js';
import { freshnessRouter } from './read/freshness.js';
import { PageMemory } from './read/page-memory.js';
import { resources } from './resources/all.js';
import type { Settings } from './settings.js';
import { bodyReader } from './write/body.js';
import { IdempotencyExpiry } from './write/expiry.js';

/** A running gateway. */
export interface Gateway {
  /** Origins of the two listeners, such as http://127.0.0.1:8080. */
  readonly url: string;
  readonly opsUrl: string;
  readonly replicas: readonly Replica[];
  /** Not ready → drain → closed. Resolves when everything has ended, after drainMs at the latest. */
  stop(): Promise<void>;
}

/** Why the gateway does not start; every reason is listed. */
export class StartRefused extends Error {}

/** Compiles the definitions, checks the databases, opens the listeners. Throws StartRefused. */
export async function startGateway(settings: Settings, log?: DestinationStream): Promise<Gateway> {
  const sinks: Observe[] = [logEvents(settings.logLevel, log)];
  const observe: Observe = (event) => {
    for (const sink of sinks) sink(event);
  };
  const keyring = parseKeyring(settings.dataKeys || '{}');
  const compiled = resources.map((resource) =>
    compileResource(resource, { keyring, legacy: settings.decodeLegacy }, observe),
  );
  const heartbeat = new Heartbeat(settings.lagMaxMs * 2);
  const primaryProbe = settings.primaryUrl ? new PrimaryProbe(settings, heartbeat, observe) : null;
  const replicas = replicaUrls(settings).map(
    (url, i) => new Replica(`replica${i + 1}`, url, heartbeat, settings, observe),
  );
  const metrics = metricsEvents(() => replicas);
  sinks.push(metrics.observe);
  await primaryProbe?.start();
  await Promise.all(replicas.map((replica) => replica.start()));

  const primary = settings.primaryUrl ? new Primary(settings, observe) : null;
  const primaryReads = settings.primaryUrl ? primaryReadLane(settings) : null;
  const positions = new WritePositions();
  const document = openapi(resources, { version: apiVersion, ...settings });
  let stopping = false;
  const api = apiServer(
    app({
      settings,
      observe,
      replicas,
      compiled,
      pageMemory: new PageMemory(settings.pageMemoryMax, settings.pageMemoryMs),
      openapi: JSON.stringify(document),
      tokens: new Tokens(replicas, settings, observe),
      tokenLimiter: memoryLimiter('token', settings.rateLimitPerMinute),
      failureLimiter: memoryLimiter('address', settings.authFailuresPerMinute),
      routeWritten: freshnessRouter({
        replicas,
        positions,
        primary: primaryReads && primarySource(primaryReads),
        primaryReadsPerSecond: settings.primaryReadsPerSecond,
        waitMs: settings.freshnessWaitMs,
        observe,
      }),
      readBody: bodyReader(settings.bodyBytesMax),
      writes: primary && {
        primary,
        positions,
        running: new Map(),
        expiry: new IdempotencyExpiry(primary),
        idempotencyWaitMs: settings.idempotencyWaitMs,
        observe,
      },
    }),
    settings,
  );
  const ops = opsServer({
    registry: metrics.registry,
    replicas,
    stopping: () => stopping,
    docsHtml: docsPage(document),
  });
  const url = await listen(api, settings.host, settings.port);
  const opsUrl = await listen(ops, settings.opsHost, settings.opsPort);
  observe({ type: 'started', url, opsUrl });

  const stop = async (): Promise<void> => {
    stopping = true;
    observe({ type: 'stopping' });
    await new Promise((resolve) => setTimeout(resolve, settings.notReadyMs));
    await drain(api, settings.drainMs);
    ops.close();
    ops.closeAllConnections();
    primaryProbe?.close();
    primaryReads?.close();
    await primary?.close();
    for (const replica of replicas) replica.close();
  };
  return { url, opsUrl, replicas, stop };
}

/** Connections for the capped reads on the primary. */
function primaryReadLane(settings: Settings): Lane {
  const { primaryUrl: url, connectTimeoutMs, namedStatements, statementTimeoutMs, queueMax } = settings;
  const connections = settings.primaryReadConnections;
  const limits = { connections, depth: 1, perWorkspace: connections, queueMax, statementTimeoutMs };
  return new Lane(limits, () => Connection.open({ url, applicationName: 'workspace-data-gateway', connectTimeoutMs, namedStatements }));
}

function replicaUrls({ replicaUrls }: Settings): string[] {
  const urls = replicaUrls.split(/[\s,]+/).filter((url) => url !== '');
  if (urls.length === 0) throw new StartRefused('REPLICA_URLS names no replica.');
  return urls;
}

async function listen(server: Server, host: string, port: number): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      reject(new StartRefused(`Cannot listen on ${host}:${port}: ${error.code}.`)),
    );
    server.listen(port, host, resolve);
  });
  const address = server.address() as AddressInfo;
  const name = address.family === 'IPv6' ? `[${address.address}]` : address.address;
  return `http://${name}:${address.port}`;
}

/** Takes no new connections, lets running responses end, breaks what is left at the deadline. */
async function drain(server: Server, drainMs: number): Promise<void> {
  const deadline = setTimeout(() => server.closeAllConnections(), drainMs);
  const idle = setInterval(() => server.closeIdleConnections(), 50);
  await new Promise((resolve) => server.close(resolve));
  clearTimeout(deadline);
  clearInterval(idle);
}
