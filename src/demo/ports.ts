import { createServer } from 'node:net';
import { Failure } from '../cli/command.js';
import type { Settings } from '../settings.js';

/** Fails before minutes of seeding, not after: the gateway's ports must be free. */
export async function portsFree({ host, port, opsHost, opsPort }: Settings): Promise<void> {
  await portFree(host, port, 'PORT', '--port');
  await portFree(opsHost, opsPort, 'OPS_PORT', '--ops-port');
}

async function portFree(host: string, port: number, setting: string, option: string): Promise<void> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once('error', ({ code }: NodeJS.ErrnoException) => {
      const advice = `name another with ${option} or ${setting}; ${option} 0 picks a free one`;
      reject(
        new Failure(
          code === 'EADDRINUSE'
            ? `Port ${port} is in use: ${advice}.`
            : `Cannot listen on ${host}:${port} (${code}): ${advice}.`,
        ),
      );
    });
    server.listen(port, host, resolve);
  });
  await new Promise((resolve) => server.close(resolve));
}
