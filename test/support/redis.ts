import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { Redis } from 'ioredis';

/** Whether a redis-server or valkey-server can be started here; its name if so. */
export const redisBinary: string | null =
  ['redis-server', 'valkey-server'].find((name) => spawnSync(name, ['--version']).status === 0) ?? null;

/** A real Redis of a test's own, on a free loopback port, keeping nothing on disk. */
export interface RedisServer {
  readonly url: string;
  readonly process: ChildProcess;
  stop(): Promise<void>;
  /** Starts it again on the same port after stop(). */
  start(): Promise<void>;
}

export async function startRedis(): Promise<RedisServer> {
  const port = await freePort();
  const url = `redis://127.0.0.1:${port}`;
  const server = {
    url,
    process: undefined as unknown as ChildProcess,
    async start() {
      server.process = spawn(redisBinary as string, [
        '--port',
        String(port),
        '--bind',
        '127.0.0.1',
        '--save',
        '',
        '--appendonly',
        'no',
      ]);
      await answers(url);
    },
    async stop() {
      if (server.process.exitCode !== null || server.process.signalCode !== null) return;
      server.process.kill('SIGCONT');
      server.process.kill('SIGKILL');
      await once(server.process, 'exit');
    },
  };
  await server.start();
  return server;
}

async function answers(url: string): Promise<void> {
  const client = new Redis(url, { retryStrategy: () => 50 });
  client.on('error', () => {});
  try {
    await client.ping();
  } finally {
    client.disconnect();
  }
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as { port: number };
  probe.close();
  await once(probe, 'close');
  return port;
}
