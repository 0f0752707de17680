import { type ChildProcess, fork } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { nodeEnvironment, nodeFlags } from '../../bundle/node-flags.js';
import type { Settings } from '../../src/settings.js';
import { environmentOf, tuningFlags } from './environment.js';

/** The real thing: `serve` as a process of its own. */
export interface ServeProcess {
  readonly child: ChildProcess;
  readonly url: string;
  readonly opsUrl: string;
  /** Its exit code, or the signal that ended it. */
  readonly exited: Promise<number | string>;
  /** Its log so far. */
  log(): string;
}

/** Starts `serve` with these settings and Node's flags for it, and more flags of a test; resolves when it serves. */
export async function serveProcess(settings: Partial<Settings>, moreFlags: string[] = []): Promise<ServeProcess> {
  const main = join(fileURLToPath(import.meta.url), '../../../src/main.js');
  const child = fork(main, ['serve'], {
    env: { ...nodeEnvironment, PATH: process.env.PATH, ...environmentOf(settings) },
    execArgv: [...nodeFlags, ...tuningFlags(settings), ...moreFlags],
    silent: true,
  });
  const output: string[] = [];
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (bytes) => output.push(String(bytes)));
  const exited = new Promise<number | string>((resolve) => {
    child.once('exit', (code, signal) => resolve(code ?? signal ?? 'nothing'));
  });
  const ready = new Promise<{ url: string; opsUrl: string }>((resolve, reject) => {
    child.on('message', (message: { type: string; url: string; opsUrl: string }) => {
      if (message.type === 'ready') resolve(message);
    });
    exited.then((end) => reject(new Error(`serve ended with ${end}: ${output.join('')}`)));
  });
  const { url, opsUrl } = await ready;
  return { child, url, opsUrl, exited, log: () => output.join('') };
}

/** Whether the gateway uses all of its replicas, by its metrics. */
export async function allHealthy({ opsUrl }: ServeProcess): Promise<boolean> {
  const metrics = await (await fetch(`${opsUrl}/metrics`)).text();
  return !/^gateway_replica_healthy\{.*\} 0$/m.test(metrics);
}
