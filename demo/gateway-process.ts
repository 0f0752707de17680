import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { nodeEnvironment, nodeFlags } from '../bundle/node-flags.js';
import { projectRoot } from '../src/base/paths.js';

/** Time to stop, beyond the time for running responses. */
const stopMsMax = 5000;

/** A gateway in its own process, run by `serve`. */
export interface GatewayProcess {
  readonly pid: number;
  /** URLs of its listeners; undefined when it ended before it served. */
  readonly ready: Promise<{ url: string; opsUrl: string } | undefined>;
  /** Its exit code; 1 when a signal ended it. */
  readonly exited: Promise<number>;
  /** Lets it finish running responses, for `drainMs` at most. */
  stop(drainMs: number): Promise<void>;
  kill(): void;
}

/** The program as in the image, if `npm run bundle` has made it, as before a benchmark; otherwise the compiled one. */
function programPath(): string {
  const bundle = join(projectRoot, 'dist/bundle');
  return existsSync(join(bundle, 'program.js')) ? join(bundle, 'gateway.cjs') : join(projectRoot, 'dist/src/main.js');
}

/** Starts `serve`, which inherits stdout and stderr. */
export function startGatewayProcess(args: readonly string[], env: NodeJS.ProcessEnv): GatewayProcess {
  const child = spawn(process.execPath, [...nodeFlags, programPath(), 'serve', ...args], {
    env: { ...nodeEnvironment, ...env },
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const exited = new Promise<number>((resolve) => {
    child.once('exit', (code) => resolve(code ?? 1));
    child.once('error', () => resolve(1));
  });
  const ready = new Promise<{ url: string; opsUrl: string } | undefined>((resolve) => {
    child.on('message', (message: { type?: string; url: string; opsUrl: string }) => {
      if (message.type === 'ready') resolve({ url: message.url, opsUrl: message.opsUrl });
    });
    exited.then(() => resolve(undefined));
  });
  return {
    pid: child.pid ?? 0,
    ready,
    exited,
    async stop(drainMs) {
      // Instead of a signal: after Ctrl-C a second signal would end the gateway at once.
      if (child.connected) child.disconnect();
      const timer = setTimeout(() => child.kill('SIGKILL'), drainMs + stopMsMax);
      await exited;
      clearTimeout(timer);
    },
    kill: () => void child.kill('SIGKILL'),
  };
}
