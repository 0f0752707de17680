import { rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { type Command, Failure, print, program, say, UsageError, wholeNumber } from '../cli/command.js';
import { ports } from '../cli/serve.js';
import { projectRoot } from '../paths.js';
import { loadSettings, type Settings } from '../settings.js';
import { type Cluster, startCluster } from './cluster/cluster.js';
import { bringUpToDate, caughtUp, databaseName, exampleIds, makeDatabase } from './database.js';
import { type GatewayProcess, startGatewayProcess } from './gateway-process.js';
import { portsFree } from './ports.js';
import { progressTo } from './progress.js';
import { type DemoState, demoState, keepState, writeWhole } from './state.js';
import { demoText } from './text.js';

const help = `Usage: ${program} demo [options]

Starts a PostgreSQL primary with streaming replicas from the binaries that npm installed (or those in PG_BIN), fills
it with two installers' workspaces, and runs the gateway in front. Ctrl-C or SIGTERM stops everything it started.

Options:
  --port N           Port of the API; 0 picks a free one; default PORT, else 8080
  --ops-port N       Port of /livez, /readyz, /metrics and /docs; 0 picks a free one; default OPS_PORT, else 9090
  --replicas N       Replicas, 1 to 8; default 1
  --rows SIZE        small (default, some 20,000 rows in all), large (200,000 work orders), or a number of work orders
  --dir DIR          Keep data, keys and tokens in DIR between runs; default a temporary folder
  --ready-file FILE  When serving, write addresses, tokens and process ids to FILE as JSON
  --help             This text

Every setting works from the environment as in \`serve\`, but for the databases and keys, which are the demo's own.`;

interface DemoOptions {
  readonly dir: string | undefined;
  readonly rows: string | undefined;
  readonly replicas: number;
  readonly readyFile: string | undefined;
  readonly settings: Settings;
  /** For `serve`. */
  readonly args: readonly string[];
}

/** `demo`: everything on one machine. */
export const demo: Command = {
  summary: 'Run the gateway over a PostgreSQL primary and replica of its own, filled with an example',
  help,
  async run(args) {
    const options = parse(args);
    await portsFree(options.settings);
    if (options.readyFile !== undefined) rmSync(options.readyFile, { force: true });
    const running: Running = {};
    const interrupted = interruption(running);
    try {
      return await Promise.race([runDemo(options, running), interrupted]);
    } finally {
      if (options.readyFile !== undefined) rmSync(options.readyFile, { force: true });
      await running.gateway?.stop(options.settings.drainMs);
      await running.cluster?.stop();
      // A cluster that was still being started is stopped by its reaper as soon as we are gone.
    }
  },
};

/** What has to be stopped by now. */
interface Running {
  cluster?: Cluster;
  gateway?: GatewayProcess;
  serving?: boolean;
}

/** The whole of it; resolves when the gateway ends by itself. */
async function runDemo(options: DemoOptions, running: Running): Promise<number> {
  const { dir, replicas } = options;
  const kept = demoState(dir, options.rows);
  say(`Starting a primary and ${replicas === 1 ? 'a streaming replica' : `${replicas} streaming replicas`} …`);
  const cluster = await startCluster({ ...(dir === undefined ? {} : { dir }), replicas }).catch(failed);
  running.cluster = cluster;
  const state = await fill(cluster, kept, options.dir);
  await caughtUp(cluster);
  const gateway = startGatewayProcess(options.args, environment(cluster, state));
  running.gateway = gateway;
  const ready = await gateway.ready;
  if (ready !== undefined) {
    await announce(cluster, state, ready, options.readyFile, gateway.pid);
    running.serving = true;
  }
  const code = await gateway.exited;
  say(`The gateway ended with code ${code}.`);
  return code;
}

async function fill(cluster: Cluster, state: DemoState, dir: string | undefined): Promise<DemoState> {
  if (state.workspaces !== undefined) {
    await bringUpToDate(cluster);
    return state;
  }
  if (dir !== undefined) keepState(dir, state);
  const whole = { ...state, workspaces: await makeDatabase(cluster, state, progressTo(process.stderr)) };
  if (dir !== undefined) keepState(dir, whole);
  return whole;
}

async function announce(
  cluster: Cluster,
  { workspaces = [] }: DemoState,
  { url, opsUrl }: { url: string; opsUrl: string },
  readyFile: string | undefined,
  gatewayPid: number,
): Promise<void> {
  const primaryUrl = cluster.primary.url(databaseName);
  const replicaUrls = cluster.replicas.map((replica) => replica.url(databaseName));
  if (!(await fetch(`${url}/api/v1/openapi.json`)).ok) throw new Failure(`${url} does not answer.`);
  const examples = await exampleIds(primaryUrl, workspaces[0]?.id ?? '');
  print(demoText({ url, opsUrl, primaryUrl, replicaUrls, workspaces, ...examples }));
  if (readyFile === undefined) return;
  const pids = { primary: cluster.primary.pid, replicas: cluster.replicas.map(({ pid }) => pid), gateway: gatewayPid };
  const listed = workspaces.map(({ id, name, tokens }) => ({ id, name, tokens }));
  writeWhole(
    readyFile,
    `${JSON.stringify({ baseUrl: url, opsUrl, primaryUrl, replicaUrls, pids, workspaces: listed }, null, 2)}\n`,
  );
}

function parse(args: readonly string[]): DemoOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      port: { type: 'string' },
      'ops-port': { type: 'string' },
      replicas: { type: 'string', default: '1' },
      rows: { type: 'string' },
      dir: { type: 'string' },
      'ready-file': { type: 'string' },
    },
  });
  const { rows, dir, 'ready-file': readyFile } = values;
  if (rows !== undefined && rows !== 'small' && rows !== 'large' && !/^[1-9]\d{0,6}$/.test(rows)) {
    throw new UsageError(`--rows must be small, large or a number from 1 to 9999999, not "${rows}".`);
  }
  const given = ports(values);
  const chosen = Object.entries({ '--port': given.port, '--ops-port': given.opsPort });
  return {
    dir: dir === undefined ? undefined : resolve(dir),
    rows,
    replicas: wholeNumber('--replicas', values.replicas, 1, 8),
    readyFile: readyFile === undefined ? undefined : resolve(readyFile),
    settings: loadSettings(demoEnvironment(), given),
    args: chosen.flatMap(([option, value]) => (value === undefined ? [] : [option, String(value)])),
  };
}

/** Ours, without what the demo decides: a secret may be set by itself or by the name of its file, not both. */
function demoEnvironment(): NodeJS.ProcessEnv {
  const env: NodeJS.ProcessEnv = {
    ...process.env,
    CONFIG_FILE: process.env.CONFIG_FILE ?? join(projectRoot, 'config/demo.json'),
  };
  for (const name of ['REPLICA_URLS', 'PRIMARY_URL', 'ADMIN_URL', 'DATA_KEYS']) {
    delete env[name];
    delete env[`${name}_FILE`];
  }
  return env;
}

function environment(cluster: Cluster, { keys }: DemoState): NodeJS.ProcessEnv {
  return {
    ...demoEnvironment(),
    REPLICA_URLS: cluster.replicas.map((replica) => replica.url(databaseName, 'gateway_reader')).join(' '),
    PRIMARY_URL: cluster.primary.url(databaseName, 'gateway_writer'),
    DATA_KEYS: JSON.stringify(keys),
  };
}

/** Resolves to the exit code at the first SIGINT or SIGTERM; at a second one running responses are not waited for. */
function interruption(running: Running): Promise<number> {
  return new Promise((resolve) => {
    let signals = 0;
    const onSignal = (): void => {
      signals += 1;
      if (signals > 1) running.gateway?.kill();
      else say('\nStopping …');
      resolve(running.serving ? 0 : 1);
    };
    process.on('SIGINT', onSignal);
    process.on('SIGTERM', onSignal);
    process.on('SIGHUP', onSignal); // its terminal is gone
    if (process.env.npm_lifecycle_event !== undefined) whenOrphaned(onSignal);
  });
}

/** `npm run` hands a SIGTERM to its shell, which ends without passing it on: what is left to see is another parent. */
function whenOrphaned(then: () => void): void {
  const { ppid } = process;
  const watch = setInterval(() => {
    if (process.ppid === ppid) return;
    clearInterval(watch);
    then();
  }, 250);
  watch.unref();
}

/** What goes wrong with the cluster is said in a sentence, such as a folder of another PostgreSQL version. */
function failed(error: unknown): never {
  throw new Failure((error as Error).message);
}
