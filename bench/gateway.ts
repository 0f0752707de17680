import { randomBytes } from 'node:crypto';
import type { PgNode } from '../demo/cluster/node.js';
import { startGatewayProcess } from '../demo/gateway-process.js';

/** A gateway of a case's own, in a process of its own. */
export interface BenchGateway {
  readonly origin: string;
  readonly opsUrl: string;
  readonly pid: number;
  stop(): Promise<void>;
}

export interface GatewayOrder {
  readonly database: string;
  readonly primary: PgNode;
  readonly replicas: readonly PgNode[];
  /** Settings beyond those of every gateway measured here. */
  readonly env?: NodeJS.ProcessEnv;
}

/** Starts `serve` with its limits lifted: 60 requests a minute cannot be measured. */
export async function startGateway({ database, primary, replicas, env = {} }: GatewayOrder): Promise<BenchGateway> {
  const gateway = startGatewayProcess(['--port', '0', '--ops-port', '0'], {
    ...process.env,
    NODE_ENV: 'production',
    HOST: '127.0.0.1',
    LOG_LEVEL: 'error',
    QUEUE_WAIT_MS: '250',
    RATE_LIMIT_PER_MINUTE: '100000000',
    WRITES_PER_MINUTE: '100000000',
    REPLICA_URLS: replicas.map((replica) => replica.url(database, 'gateway_reader')).join(' '),
    PRIMARY_URLS: primary.url(database, 'gateway_writer'),
    DATA_KEYS: JSON.stringify({ k1: randomBytes(32).toString('base64') }),
    ...env,
  });
  const ready = await gateway.ready;
  if (ready === undefined) throw new Error('A gateway ended before it served.');
  return { origin: ready.url, opsUrl: ready.opsUrl, pid: gateway.pid, stop: () => gateway.stop(1000) };
}
