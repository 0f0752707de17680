import { rmSync } from 'node:fs';
import { readProject } from '../src/base/paths.js';
import { type Command, Failure, printError, printErrorText, printText } from '../src/cli/command.js';
import { runProgram, type Usage } from '../src/cli/program.js';
import { listScopes } from '../src/cli/tokens.js';
import { runAsAdmin } from '../src/postgres/admin.js';
import type { WorkspaceId } from '../src/postgres/statement.js';
import { makeWorkspaceMac } from '../src/postgres/workspace-mac.js';
import { loadResources } from '../src/resource/definition/load.js';
import { fill } from '../src/serve/openapi/texts.js';
import { type Cluster, startCluster } from './cluster/cluster.js';
import {
  appRole,
  bringUpToDate,
  type DemoState,
  type DemoWorkspace,
  databaseName,
  demoState,
  exampleIds,
  keepState,
  makeDatabase,
  writeWhole,
} from './database.js';
import { type GatewayProcess, startGatewayProcess } from './gateway-process.js';
import { checkPorts, type DemoOptions, demoEnvironment, parseOptions } from './options.js';
import { type AppName, apps } from './seed/apps.js';
import { type Owner, ownersSql, startSettingsPage } from './settings-page.js';

/** Runs everything on one machine. */
const demo: Command = async (args) => {
  const options = parseOptions(args);
  await checkPorts(options.settings);
  if (options.readyFile !== undefined) rmSync(options.readyFile, { force: true });
  const running: RunningParts = {};
  const interrupted = waitForSignal(running);
  try {
    return await Promise.race([runDemo(options, running), interrupted]);
  } finally {
    if (options.readyFile !== undefined) rmSync(options.readyFile, { force: true });
    await running.gateway?.stop(options.settings.drainMs);
    await running.settingsPage?.close();
    await running.cluster?.stop();
    // The reaper stops a cluster that was still starting, as soon as this process ends.
  }
};

/** The parts started so far, which have to be stopped. */
interface RunningParts {
  cluster?: Cluster;
  gateway?: GatewayProcess;
  settingsPage?: { close(): Promise<void> };
  serving?: boolean;
}

/** Starts cluster and gateway; resolves to the exit code when the gateway ends by itself. */
async function runDemo(options: DemoOptions, running: RunningParts): Promise<number> {
  const { dir, replicas } = options;
  const kept = demoState(options);
  printError(`Starting a primary and ${replicas === 1 ? 'a streaming replica' : `${replicas} streaming replicas`} …`);
  const cluster = await startCluster({ ...(dir === undefined ? {} : { dir }), replicas }).catch(failWith);
  running.cluster = cluster;
  const state = await fillDatabase(cluster, kept, options.dir);
  await cluster.caughtUp().catch(failWith);
  const gateway = startGatewayProcess(options.args, makeEnvironment(cluster, state));
  running.gateway = gateway;
  const ready = await gateway.ready;
  if (ready !== undefined) {
    const page = await openSettingsPage(cluster, state);
    running.settingsPage = page;
    await announce(cluster, state, { ...ready, settingsUrl: page.url }, options, gateway.pid);
    running.serving = true;
  }
  const code = await gateway.exited;
  printError(`The gateway ended with code ${code}.`);
  return code;
}

async function fillDatabase(cluster: Cluster, state: DemoState, dir: string | undefined): Promise<DemoState> {
  const app = apps[state.app];
  if (state.workspaces !== undefined) {
    await bringUpToDate(cluster, app, state.wallKey);
    return state;
  }
  if (dir !== undefined) keepState(dir, state);
  const whole = { ...state, workspaces: await makeDatabase(cluster, app, state, makeProgress(process.stderr)) };
  if (dir !== undefined) keepState(dir, whole);
  return whole;
}

async function openSettingsPage(cluster: Cluster, { app }: DemoState) {
  const { rows: owners } = await runAsAdmin(cluster.primary.url(databaseName), (client) =>
    client.query<Owner>(ownersSql),
  );
  const scopes = listScopes(loadResources(apps[app].resourcesDir));
  return startSettingsPage(cluster.primary.url(databaseName, appRole), owners, scopes);
}

async function announce(
  cluster: Cluster,
  { app, wallKey, workspaces = [] }: DemoState,
  { url, opsUrl, settingsUrl }: Record<'url' | 'opsUrl' | 'settingsUrl', string>,
  { readyFile, settings }: DemoOptions,
  gatewayPid: number,
): Promise<void> {
  const primaryUrl = cluster.primary.url(databaseName);
  const replicaUrls = cluster.replicas.map((replica) => replica.url(databaseName));
  if (!(await fetch(`${url}/api/v1/openapi.json`)).ok) throw new Failure(`${url} does not answer.`);
  const examples = await exampleIds(primaryUrl, makeWorkspaceMac(wallKey)((workspaces[0]?.id ?? '') as WorkspaceId));
  const docs =
    settings.docs === 'off'
      ? 'none: DOCS is off'
      : `${settings.docs === 'ops' ? opsUrl : settings.publicUrl || url}/docs`;
  printText(
    composeDemoText({
      url,
      opsUrl,
      settingsUrl,
      docs,
      primaryUrl,
      replicaUrls,
      workspaces,
      entity: getAuditEntity(app),
      ...examples,
    }),
  );
  if (readyFile === undefined) return;
  const pids = { primary: cluster.primary.pid, replicas: cluster.replicas.map(({ pid }) => pid), gateway: gatewayPid };
  writeWhole(readyFile, { baseUrl: url, opsUrl, primaryUrl, replicaUrls, pids, workspaces, wallKey });
}

/** The name of installations in the log of the app. */
function getAuditEntity(app: AppName): string {
  const resources = loadResources(apps[app].resourcesDir);
  return resources.find(({ name }) => name === 'installaties')?.auditEntity ?? '';
}

function makeEnvironment(cluster: Cluster, { app, keys, wallKey }: DemoState): NodeJS.ProcessEnv {
  return {
    ...demoEnvironment(),
    REPLICA_URLS: cluster.replicas.map((replica) => replica.url(databaseName, 'gateway_reader')).join(' '),
    PRIMARY_URLS: cluster.primary.url(databaseName, 'gateway_writer'),
    DATA_KEYS: JSON.stringify(keys),
    WALL_KEY: wallKey,
    RESOURCES_DIR: apps[app].resourcesDir,
  };
}

/** Resolves to the exit code at the first SIGINT or SIGTERM; at a second one running responses are not waited for. */
function waitForSignal(running: RunningParts): Promise<number> {
  return new Promise((resolve) => {
    let signals = 0;
    const onSignal = (): void => {
      signals += 1;
      if (signals > 1) running.gateway?.kill();
      else printErrorText('\nStopping …');
      resolve(running.serving ? 0 : 1);
    };
    process.on('SIGINT', onSignal);
    process.on('SIGTERM', onSignal);
    process.on('SIGHUP', onSignal); // its terminal is gone
    if (process.env.npm_lifecycle_event !== undefined) watchParent(onSignal);
  });
}

/** `npm run` hands a SIGTERM to its shell, which ends without passing it on: only the parent process id changes. */
function watchParent(then: () => void): void {
  const { ppid } = process;
  const watch = setInterval(() => {
    if (process.ppid === ppid) return;
    clearInterval(watch);
    then();
  }, 250);
  watch.unref();
}

/** Errors of the cluster are sentences for the operator, such as about a folder of another PostgreSQL version. */
function failWith(error: unknown): never {
  throw new Failure((error as Error).message);
}

const barWidth = 30;

/** The parts of a running demo that its text shows. */
interface DemoTextParts {
  readonly url: string;
  readonly opsUrl: string;
  readonly settingsUrl: string;
  /** The address of the documentation page. */
  readonly docs: string;
  readonly primaryUrl: string;
  readonly replicaUrls: readonly string[];
  readonly workspaces: readonly DemoWorkspace[];
  /** An installation and a customer of the first workspace. */
  readonly installationId: string;
  readonly customerId: string;
  /** The name of installations in the app's audit log. */
  readonly entity: string;
}

/** Addresses, tokens, and ready-to-run curl commands: demo/demo.txt, filled. */
export function composeDemoText({ replicaUrls, workspaces, ...shown }: DemoTextParts): string {
  const template = readProject('demo/demo.txt').trimEnd();
  const replicas = replicaUrls.map((url) => `Replica    ${url}`).join('\n');
  const tokens = workspaces.map(composeTokens).join('');
  return fill(template, { ...shown, replicas, tokens, token: workspaces[0]?.tokens.all });
}

function composeTokens({ name, tokens }: DemoWorkspace): string {
  const lines = Object.entries(tokens).map(([purpose, token]) => `  ${purpose.padEnd(11)}${token}`);
  return `\nTokens of ${name}\n${lines.join('\n')}\n`;
}

/** Shows the progress of the seed: a bar on a terminal, else a line for each step and each tenth. */
export function makeProgress(stream: NodeJS.WriteStream): (done: number, what: string) => void {
  let shown = '';
  return (done, what) => {
    const percent = Math.floor(done * 100);
    const state = stream.isTTY ? `${percent} ${what}` : `${Math.floor(percent / 10)} ${what}`;
    if (state === shown) return;
    shown = state;
    if (!stream.isTTY) {
      stream.write(`Seeding ${String(percent).padStart(3)} % ${what}\n`);
      return;
    }
    const filled = Math.round(done * barWidth);
    const bar = '█'.repeat(filled) + '░'.repeat(barWidth - filled);
    stream.write(`\r\x1b[KSeeding ${bar} ${String(percent).padStart(3)} % ${what}${done >= 1 ? '\n' : ''}`);
  };
}

const args = process.argv.slice(2);
const usage: Usage = { called: 'npm run demo --', help: 'demo/help.txt' };
void runProgram(usage, args, demo);
