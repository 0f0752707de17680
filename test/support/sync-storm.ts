import { setTimeout as sleep } from 'node:timers/promises';
import type { PgNode } from '../../src/demo/cluster/node.js';
import { type FaultCluster, faultCluster } from './fault-cluster.js';
import { SyncCopy } from './sync-copy.js';
import { syncWriters } from './sync-writers.js';
import { templateName } from './template.js';

/** The length of a storm. */
interface StormBounds {
  /** There are more rounds, up to ten times as many, until so many passes are done. */
  readonly rounds: number;
  readonly passesMin: number;
  readonly roundMs: number;
  /** Longest pause inside a transaction. */
  readonly longMs: number;
}

/** The outcome of a storm: all of `wrong` is a fault of sync. */
interface StormReport {
  readonly passes: number;
  readonly changes: number;
  readonly startedOver: number;
  readonly wrong: readonly string[];
}

const resources = ['werkbonnen', 'logboeken'];

/**
 * Keeps copies through two gateways while writers write and replicas lag, pause and are killed, and compares each copy with the
 * list, record by record, after every round.
 */
export async function syncStorm(bounds: StormBounds): Promise<StormReport> {
  const setUp = await faultCluster({ settings: { max_prepared_transactions: '20' } });
  try {
    return await storm(setUp, bounds);
  } finally {
    await setUp.stop();
  }
}

async function storm(setUp: FaultCluster, { rounds, passesMin, roundMs, longMs }: StormBounds): Promise<StormReport> {
  const workspace = setUp.workspaces[1]?.id as string;
  const token = await setUp.token({ workspace: 1 });
  const settings = { probeIntervalMs: 100, largePagesPerToken: 50, largePagesPerWorkspace: 50 };
  const gateways = [await setUp.gateway(settings), await setUp.gateway(settings)];
  const origins = gateways.map(({ gateway }) => gateway.url);
  const copies = resources.map((resource) => new SyncCopy(resource, token, origins));
  const writers = await syncWriters(setUp.cluster.primary.url(templateName), workspace, longMs);
  const wrong: string[] = [];
  const sum = (of: (copy: SyncCopy) => number): number => copies.reduce((total, copy) => total + of(copy), 0);
  const passes = (): number => sum((copy) => copy.passes);
  for (let round = 0; round < rounds || (round < rounds * 10 && passes() < passesMin); round++) {
    let isOver = false;
    writers.resume();
    const disturbing = disturb(setUp.cluster.replicas, () => isOver);
    const reading = copies.map(async (copy) => {
      while (!isOver) await copy.pass();
    });
    await sleep(roundMs);
    await writers.pause();
    isOver = true;
    await Promise.all([...reading, disturbing]);
    await setUp.caughtUp();
    for (const [i, copy] of copies.entries()) {
      await copy.pass();
      const count = `select count(*)::int as n from app.${resources[i]} where workspace_id = $1`;
      const [stored] = await setUp.sql<{ n: number }>(count, [workspace]);
      wrong.push(...copy.faults.splice(0), ...(await copy.differences(stored?.n ?? -1)));
    }
  }
  return {
    passes: passes(),
    changes: writers.changes(),
    startedOver: sum((copy) => copy.startedOver),
    wrong,
  };
}

/** Pauses the replay of a replica, or kills a replica, one at a time. */
async function disturb(replicas: readonly PgNode[], isOver: () => boolean): Promise<void> {
  for (let i = 0; !isOver(); i++) {
    const replica = replicas[i % replicas.length] as PgNode;
    if (i % 6 === 5) {
      await replica.kill9();
      await replica.start();
    } else {
      await replica.query('select pg_wal_replay_pause()');
      await sleep(Math.random() * 800);
      await replica.query('select pg_wal_replay_resume()');
    }
    await sleep(100 + Math.random() * 400);
  }
}
