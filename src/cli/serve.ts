import cluster from 'node:cluster';
import { isatty } from 'node:tty';
import { StartRefused } from '../base/errors.js';
import type { Gateway } from '../serve/gateway.js';
import { startGateway } from '../serve/gateway.js';
import { sendToParent } from '../serve/peers/channel.js';
import { type FromWorker, readStart, serveParent } from '../serve/workers/messages.js';
import type { Workers } from '../serve/workers/workers.js';
import { hideSecrets, listMisspeltNames, loadSettings, type Settings } from '../settings.js';
import { makeCommand, makeOptions, parseWholeNumber, printError, printText } from './command.js';
import { readSettingsOfApp } from './required-settings.js';

export const serveCommand = makeCommand(
  { ...makeOptions('string', 'port', 'ops-port'), 'print-config': { type: 'boolean' } },
  async ({ 'print-config': isPrinted, ...portOptions }) => {
    if (!cluster.isWorker) for (const sentence of listMisspeltNames(process.env)) printError(`Warning: ${sentence}`);
    const readAgain = (): Settings => readSettingsOfApp(parsePorts(portOptions));
    if (!isPrinted) return serveUntilStopped(readAgain(), readAgain);
    printText(JSON.stringify(hideSecrets(loadSettings(process.env, parsePorts(portOptions))), null, 2));
    return 0;
  },
);

export function parsePorts(options: { port?: string | undefined; 'ops-port'?: string | undefined }): Partial<Settings> {
  const { port, 'ops-port': opsPort } = options;
  return {
    ...(port !== undefined && { port: parseWholeNumber('--port', port, 0, 65535) }),
    ...(opsPort !== undefined && { opsPort: parseWholeNumber('--ops-port', opsPort, 0, 65535) }),
  };
}

async function serveUntilStopped(settings: Settings, readAgain: () => Settings): Promise<number> {
  const isParent = settings.webConcurrency > 1 && cluster.isPrimary;
  const starting: Promise<Gateway | Workers> = isParent
    ? import('../serve/workers/workers.js').then(({ startWorkers }) => startWorkers(settings, readAgain))
    : startGateway(settings, undefined, readAgain, cluster.isWorker ? readStart(process.env) : {});
  if (cluster.isWorker)
    starting.catch((error) => sendToParent<FromWorker>({ type: 'refused', reason: describeStartFailure(error) }));
  const stopping = waitForStop(() => void starting.then(reload, () => undefined));
  const crash = waitForCrash();
  const serving = await Promise.race([starting, stopping, crash]);
  if (serving === undefined) return 0; // a signal came before the start was complete
  if (serving instanceof Error) throw serving;
  if (cluster.isWorker) serveParent(serving as Gateway);
  else sendToParent<FromWorker>({ type: 'ready', url: serving.url, opsUrl: serving.opsUrl, readiness: null });
  const error = await Promise.race([stopping, crash]);
  if (error !== undefined) serving.observe({ type: 'crashed', error });
  await serving.stop();
  return error === undefined ? 0 : 1;
}

function reload(serving: Gateway | Workers): void {
  const reason = 'Only workers are replaced: set WEB_CONCURRENCY to 2 or more, or restart the gateway.';
  if ('reload' in serving) serving.reload();
  else serving.observe({ type: 'reload_refused', reason });
}

/** Gives a foreign error by its name only, because the log holds no values. */
function describeStartFailure(error: Error): string {
  return error instanceof StartRefused ? error.message : error.name;
}

/** Resolves with an uncaught error. The state is undefined after it: responses in progress may end, then the process exits with 1. */
function waitForCrash(): Promise<Error> {
  return new Promise((resolve) => process.on('uncaughtException', resolve));
}

/** Resolves with a first signal; a second one exits at once, except in a worker, which Ctrl-C reaches twice. SIGHUP is for its parent. */
function waitForStop(onHangUp: () => void): Promise<undefined> {
  return new Promise((resolve) => {
    let isStopping = false;
    const hadTerminal = isatty(0);
    const onSignal = (): void => {
      if (isStopping && !cluster.isWorker) process.exit(1);
      isStopping = true;
      resolve(undefined);
    };
    process.on('SIGTERM', onSignal);
    process.on('SIGINT', onSignal);
    process.on('SIGHUP', () => {
      if (cluster.isWorker) return;
      if (hadTerminal && !isatty(0)) onSignal();
      else onHangUp();
    });
    if (process.send)
      process.on('disconnect', () => {
        if (isStopping && cluster.isWorker) process.exit(1);
        resolve(undefined);
      });
  });
}
