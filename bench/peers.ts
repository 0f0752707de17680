import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { freePort } from '../demo/cluster/ports.js';
import { projectRoot } from '../src/base/paths.js';
import { type Child, outputOf, startChild } from './processes.js';
import type { Stage } from './stage.js';

/** A running process that answers the same requests over HTTP. */
export interface Contender {
  readonly name: string;
  readonly pid: number;
  readonly origin: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Path of one installation, and of the first 100. */
  readonly detail: (id: string) => string;
  readonly list: string;
}

const answersMsMax = 60_000;
/** The newest version that runs on Node.js 20. Its packages are installed when a case first needs them, outside the project's own. */
const platformatic = '@platformatic/db@2.61.0';

export function gatewayOf({ gatewayPid, origin, token }: Stage): Contender {
  return {
    name: 'gateway',
    pid: gatewayPid,
    origin,
    headers: { authorization: `Bearer ${token}` },
    detail: (id) => `/api/v1/installaties/${id}`,
    list: '/api/v1/installaties?perPage=100',
  };
}

/** The reference: the gateway's own statements in node:http and nothing around them. */
export async function startBare(stage: Stage): Promise<Contender> {
  return start(stage, {
    name: 'bare node:http + pg',
    headers: {},
    detail: (id) => `/installaties/${id}`,
    list: '/installaties',
    program: new URL('./bare.js', import.meta.url),
    env: { DATABASE_URL: stage.readerUrl, WORKSPACE_MAC: stage.mac },
  });
}

/** Serves the table itself, as it makes its routes of tables; without authentication. 100 rows are the most it gives by default. */
export async function startPlatformatic(stage: Stage): Promise<Contender> {
  const home = join(projectRoot, 'node_modules/.cache/bench-platformatic');
  const program = join(home, 'node_modules/@platformatic/db/db.mjs');
  if (!existsSync(program)) {
    process.stderr.write(`  installing ${platformatic}, which may take minutes …\n`);
    mkdirSync(home, { recursive: true });
    await outputOf('npm', ['install', '--prefix', home, '--no-audit', '--no-fund', platformatic]);
  }
  const folder = mkdtempSync(join(tmpdir(), 'gateway-bench-peer-'));
  stage.onStop(async () => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'platformatic.json');
  const port = await freePort();
  const config = {
    $schema: 'https://schemas.platformatic.dev/@platformatic/db/2.61.0.json',
    server: { hostname: '127.0.0.1', port, logger: { level: 'error' } },
    db: { connectionString: stage.replicaUrl, schema: ['app'], openapi: true, graphql: false, poolSize: 8 },
    watch: false,
  };
  writeFileSync(file, JSON.stringify(config));
  return start(stage, {
    name: 'Platformatic DB',
    headers: {},
    detail: (id) => `/appInstallaties/${id}`,
    list: `/appInstallaties/?limit=100&where.workspaceId.eq=${stage.workspace}&orderby.createdAt=asc&orderby.id=asc`,
    program: pathToFileURL(program),
    args: ['start', '-c', file],
    port,
  });
}

type Peer = Omit<Contender, 'pid' | 'origin'> & {
  readonly program: URL;
  readonly args?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  readonly port?: number;
};

/** Resolves when the server gives the list in full; the stage stops it. */
async function start(stage: Stage, { program, args = [], env = {}, port, ...peer }: Peer): Promise<Contender> {
  const at = port ?? (await freePort());
  const child = startChild(program, args, { NODE_ENV: 'production', PORT: String(at), ...env });
  stage.onStop(() => child.stop());
  const contender = { ...peer, pid: child.pid, origin: `http://127.0.0.1:${at}` };
  await answers(contender, child);
  return contender;
}

async function answers({ name, origin, list, headers }: Contender, child: Child): Promise<void> {
  let last = 'it does not listen';
  for (const deadline = Date.now() + answersMsMax; Date.now() < deadline; await sleep(200)) {
    if (!child.running) throw new Error(`${name} ended before it served`);
    try {
      const response = await fetch(origin + list, { headers });
      if (response.ok) return void (await response.arrayBuffer());
      last = `it answers ${response.status}: ${(await response.text()).slice(0, 200)}`;
    } catch {
      // not yet
    }
  }
  throw new Error(`${name}: ${last}`);
}
