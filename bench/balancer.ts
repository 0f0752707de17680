import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../demo/cluster/ports.js';
import { startChild } from './child.js';

/** A program beside the gateways. */
export interface Companion {
  /** Where it listens. */
  readonly url: string;
  stop(): Promise<void>;
}

/** Whether the machine has a program of this name. */
export function hasProgram(name: string): boolean {
  return spawnSync(name, ['-v']).error === undefined;
}

/** nginx before the gateways, as deploy/nginx has it but without TLS: least_conn, connections kept open. */
export async function startNginx(origins: readonly string[]): Promise<Companion> {
  const folder = mkdtempSync(join(tmpdir(), 'gateway-bench-nginx-'));
  const port = await freePort();
  const file = join(folder, 'nginx.conf');
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${folder};`);
  const servers = origins.map((origin) => `server ${new URL(origin).host};`);
  writeFileSync(
    file,
    `daemon off; worker_processes 1; pid ${folder}/pid; error_log stderr crit;
events { worker_connections 512; }
http {
  access_log off; ${paths.join(' ')}
  upstream gateways { least_conn; ${servers.join(' ')} keepalive 64; }
  server {
    listen 127.0.0.1:${port};
    location / { proxy_pass http://gateways; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; }
  }
}
`,
  );
  const child = startChild('nginx', ['-e', 'stderr', '-c', file], {});
  const stop = async (): Promise<void> => {
    await child.stop();
    rmSync(folder, { recursive: true, force: true });
  };
  return { url: `http://127.0.0.1:${port}`, stop };
}

/** A Redis that keeps nothing on disk. */
export async function startRedis(): Promise<Companion> {
  const port = await freePort();
  const args = ['--bind', '127.0.0.1', '--port', String(port), '--save', '', '--appendonly', 'no', '--dir', tmpdir()];
  const child = startChild('redis-server', args, {});
  return { url: `redis://127.0.0.1:${port}`, stop: () => child.stop() };
}
