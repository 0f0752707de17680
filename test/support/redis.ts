import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { freePort } from '../../demo/cluster/ports.js';
import type { Certificates } from './certificates.js';
import { until } from './patience.js';

export const redisBinary: string | null =
  ['redis-server', 'valkey-server'].find((name) => spawnSync(name, ['--version']).status === 0) ?? null;

export interface RedisServer {
  readonly url: string;
  readonly port: number;
  readonly process: ChildProcess;
  stop(): Promise<void>;
  start(): Promise<void>;
}

/** With `certificates` it takes TLS only; `more` are further arguments of redis-server. */
export async function startRedis(certificates?: Certificates, more: readonly string[] = []): Promise<RedisServer> {
  const port = await freePort();
  const url = `${certificates ? 'rediss' : 'redis'}://127.0.0.1:${port}`;
  const { certificateFile = '', keyFile = '', ca } = certificates ?? {};
  const tlsOnly = ['--port', '0', '--tls-port', String(port), '--tls-auth-clients', 'no'];
  const listening = certificates
    ? [...tlsOnly, '--tls-cert-file', certificateFile, '--tls-key-file', keyFile]
    : ['--port', String(port)];
  const server = {
    url,
    port,
    process: undefined as unknown as ChildProcess,
    async start() {
      // A replica of it writes the copy that it gets to a file in `dir`.
      const rest = ['--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', tmpdir()];
      server.process = spawn(redisBinary as string, [...listening, ...rest, ...more]);
      await answers(url, ca);
    },
    stop: () => end(server.process),
  };
  await server.start();
  return server;
}

/** Starts a Sentinel that fails over from `redis` to a replica of it half a second after it does not answer. */
export async function startSentinel(redis: RedisServer): Promise<{ address: string; stop(): Promise<void> }> {
  const folder = mkdtempSync(join(tmpdir(), 'sentinel-'));
  const port = await freePort();
  const file = join(folder, 'sentinel.conf');
  const lines = [
    `port ${port}`,
    'bind 127.0.0.1',
    `dir ${folder}`,
    `sentinel monitor mymaster 127.0.0.1 ${redis.port} 1`,
    'sentinel down-after-milliseconds mymaster 500',
    'sentinel failover-timeout mymaster 2000',
  ];
  writeFileSync(file, `${lines.join('\n')}\n`);
  const child = spawn(redisBinary as string, [file, '--sentinel']);
  await knowsReplica(`redis://127.0.0.1:${port}`);
  const stop = async (): Promise<void> => {
    await end(child);
    rmSync(folder, { recursive: true });
  };
  return { address: `127.0.0.1:${port}`, stop };
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGCONT');
  child.kill('SIGKILL');
  await once(child, 'exit');
}

async function answers(url: string, ca?: string): Promise<void> {
  const client = new Redis(url, { retryStrategy: () => 50, ...(ca && { tls: { ca } }) });
  client.on('error', () => {});
  try {
    await client.ping();
  } finally {
    client.disconnect();
  }
}

async function knowsReplica(url: string): Promise<void> {
  const client = new Redis(url, { retryStrategy: () => 50 });
  client.on('error', () => {});
  const knows = async (): Promise<boolean> => {
    const replicas = (await client.call('SENTINEL', 'replicas', 'mymaster')) as string[][];
    return replicas.some((fields) => fields[fields.indexOf('master-link-status') + 1] === 'ok');
  };
  try {
    if (!(await until(knows, 30_000, 50))) throw new Error('the Sentinel does not know the replica');
  } finally {
    client.disconnect();
  }
}
