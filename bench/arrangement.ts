import { setTimeout as sleep } from 'node:timers/promises';
import type { Cluster } from '../demo/cluster/cluster.js';
import { type DemoWorkspace, databaseName } from '../demo/database.js';
import { type Companion, startNginx, startRedis } from './balancer.js';
import { type BenchGateway, startGateway } from './gateway.js';
import type { Arrangement } from './scaling-loads.js';

/** A number of gateways, each with workers, before a number of replicas. */
export interface Plan {
  readonly gateways: number;
  readonly workers: number;
  readonly replicas: number;
}

/** Everything that is started once for the case. */
export interface Setting {
  readonly cluster: Cluster;
  readonly keys: Readonly<Record<string, string>>;
  readonly workspace: DemoWorkspace;
}

/** A plan in words. */
export function nameOf({ gateways, workers, replicas }: Plan): string {
  const processes = gateways > 1 ? `${gateways} gateways` : workers > 1 ? `${workers} workers` : '1 process';
  return `${processes}, ${replicas} replica${replicas === 1 ? '' : 's'}`;
}

/** Starts the gateways of a plan, with Redis and nginx if there are several; stops all of it after `work`. */
export async function arranged(
  { cluster, keys }: Setting,
  plan: Plan,
  work: (arrangement: Arrangement) => Promise<void>,
): Promise<void> {
  const started: { stop(): Promise<void> }[] = [];
  const kept = async <T extends { stop(): Promise<void> }>(starting: Promise<T>): Promise<T> => {
    const part = await starting;
    started.push(part);
    return part;
  };
  try {
    const { primary } = cluster;
    const replicas = cluster.replicas.slice(0, plan.replicas);
    const redis: Companion | null = plan.gateways > 1 ? await kept(startRedis()) : null;
    const env = {
      DATA_KEYS: JSON.stringify(keys),
      WEB_CONCURRENCY: String(plan.workers),
      ...(redis && { REDIS_URL: redis.url, INSTANCES: String(plan.gateways) }),
    };
    const gateways: BenchGateway[] = [];
    for (let i = 0; i < plan.gateways; i++)
      gateways.push(await kept(startGateway({ database: databaseName, primary, replicas, env })));
    const origins = gateways.map(({ origin }) => origin);
    const origin = origins.length > 1 ? (await kept(startNginx(origins))).url : (origins[0] as string);
    await answers(origin);
    const replicaPids = replicas.map(({ pid }) => pid);
    await work({ name: nameOf(plan), origin, gatewayPids: gateways.map(({ pid }) => pid), replicaPids });
  } finally {
    for (const part of started.reverse()) await part.stop();
  }
}

async function answers(origin: string): Promise<void> {
  for (let attempt = 0; attempt < 200; attempt++) {
    const answer = await fetch(`${origin}/api/v1`).catch(() => null);
    if (answer?.ok) return;
    await sleep(50);
  }
  throw new Error(`${origin} does not answer`);
}
