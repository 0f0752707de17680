import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { urlAs } from '../demo/cluster/passwords.js';
import type { WorkspaceId } from '../src/postgres/statement.js';
import { makeWorkspaceMac } from '../src/postgres/workspace-mac.js';
import { type Child, startChild } from './processes.js';

/** The servers that all cases measure: `demo` with the large data set, its gateway a process of its own. */
export interface Stage {
  /** Origin of the gateway. */
  readonly origin: string;
  /** Origin of its ops listener. */
  readonly opsOrigin: string;
  readonly gatewayPid: number;
  /** Postmasters of the primary and the replica. */
  readonly primaryPid: number;
  readonly replicaPid: number;
  /** Connections as the gateway's own role, and as the superuser. */
  readonly readerUrl: string;
  readonly replicaUrl: string;
  readonly primaryUrl: string;
  /** The workspace with the 200,000 work orders, and a token with every scope. */
  readonly workspace: string;
  /** The workspace as the tenant wall accepts it, and the key of the wall. */
  readonly mac: string;
  readonly wallKey: string;
  readonly token: string;
  /** Another, small workspace, with a token that reads all of it. */
  readonly other: { readonly workspace: string; readonly token: string };
  readonly postgresVersion: string;
  /** Parts that a case starts beside it: the last is stopped first. */
  onStop(close: () => Promise<void>): void;
  stop(): Promise<void>;
}

interface Ready {
  readonly baseUrl: string;
  readonly opsUrl: string;
  readonly primaryUrl: string;
  readonly replicaUrls: readonly [string];
  readonly pids: { readonly gateway: number; readonly primary: number; readonly replicas: readonly [number] };
  readonly workspaces: readonly [ReadyWorkspace, ReadyWorkspace];
  readonly wallKey: string;
}

interface ReadyWorkspace {
  readonly id: WorkspaceId;
  readonly tokens: { readonly all: string };
}

const main = new URL('../demo/main.js', import.meta.url);
const readyMsMax = 900_000;

/** Starts the demo, which shows its own progress. Its limits are lifted: 60 requests a minute cannot be measured. */
export async function startStage(dir: string | undefined): Promise<Stage> {
  const folder = mkdtempSync(join(tmpdir(), 'gateway-bench-'));
  const readyFile = join(folder, 'ready.json');
  const kept = dir === undefined ? [] : ['--dir', dir];
  const demo = startChild(
    main,
    ['--rows', 'large', '--port', '0', '--ops-port', '0', '--ready-file', readyFile, ...kept],
    {
      NODE_ENV: 'production',
      LOG_LEVEL: 'warn',
      RATE_LIMIT_PER_MINUTE: '100000000',
      WRITES_PER_MINUTE: '100000000',
      PER_PAGE_MAX: '200000',
    },
  );
  const closers = [
    async () => {
      await demo.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  ];
  const stop = async (): Promise<void> => {
    for (let close = closers.pop(); close !== undefined; close = closers.pop()) await close();
  };
  try {
    const ready = await readyOf(demo, readyFile);
    const [{ id, tokens }, other] = ready.workspaces;
    const [replicaUrl] = ready.replicaUrls;
    return {
      origin: ready.baseUrl,
      opsOrigin: ready.opsUrl,
      gatewayPid: ready.pids.gateway,
      primaryPid: ready.pids.primary,
      replicaPid: ready.pids.replicas[0],
      readerUrl: urlAs(replicaUrl, 'gateway_reader'),
      replicaUrl,
      primaryUrl: ready.primaryUrl,
      workspace: id,
      mac: makeWorkspaceMac(ready.wallKey)(id),
      wallKey: ready.wallKey,
      token: tokens.all,
      other: { workspace: other.id, token: other.tokens.all },
      postgresVersion: (await rowsOf(replicaUrl, 'show server_version'))[0]?.[0] ?? 'unknown',
      onStop: (close) => void closers.push(close),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function readyOf(demo: Child, file: string): Promise<Ready> {
  for (const deadline = Date.now() + readyMsMax; Date.now() < deadline; await sleep(200)) {
    if (!demo.running) throw new Error('The demo ended before it served.');
    try {
      return JSON.parse(readFileSync(file, 'utf8')) as Ready;
    } catch {
      // not yet
    }
  }
  throw new Error('The demo is not ready in time.');
}

/**
 * The delay of the gateway's event loop since the last call, its 99th percentile in milliseconds: the gateway's measurement begins again
 * with each reading of its metrics. Node measures by a timer of 10 ms, and counts them in.
 */
export async function eventLoopDelayMs({ opsOrigin }: Stage): Promise<number> {
  const metrics = await (await fetch(`${opsOrigin}/metrics`)).text();
  const [, seconds] = /^nodejs_eventloop_lag_p99_seconds (\S+)$/m.exec(metrics) ?? [];
  return Math.max(0, Number(seconds) * 1000 - 10);
}

/** Rows of one statement as arrays of text, on a connection of its own. */
export async function rowsOf(url: string, text: string, values: readonly string[] = []): Promise<string[][]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const asText = { getTypeParser: () => (value: string) => value };
    const query = { text, values: [...values], rowMode: 'array' as const, types: asText };
    return (await client.query<string[]>(query as pg.QueryArrayConfig)).rows;
  } finally {
    await client.end();
  }
}
