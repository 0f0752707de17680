import { setTimeout as sleep } from 'node:timers/promises';
import type { Cluster } from '../../../demo/cluster/cluster.js';
import type { PgNode } from '../../../demo/cluster/node.js';
import { type FaultCluster, faultCluster } from '../fault-cluster.js';
import { templateName } from '../template.js';
import { SyncCopy } from './copy.js';
import { syncWriters } from './writers.js';

interface StormBounds {
  /** There are more rounds, up to ten times as many, until so many passes and changes are done. */
  readonly rounds: number;
  readonly passesMin: number;
  readonly changesMin: number;
  readonly roundMs: number;
  readonly restMs?: number;
  readonly longMs: number;
  readonly largeMs?: number;
  readonly onRound?: (report: StormReport) => void;
}

export interface StormReport {
  readonly passes: number;
  readonly changes: number;
  readonly startedOver: number;
  readonly wrong: readonly string[];
}

const resources = ['klanten', 'installaties', 'werkbonnen', 'logboeken'];

/**
 * Copies through two gateways under writers, and replicas that lag, pause, die and are exchanged; compared with the lists after every
 * round.
 */
export async function syncStorm(bounds: StormBounds): Promise<StormReport> {
  const setUp = await faultCluster({ settings: { max_prepared_transactions: '20' } });
  try {
    return await storm(setUp, bounds);
  } finally {
    await setUp.stop();
  }
}

async function storm(setUp: FaultCluster, bounds: StormBounds): Promise<StormReport> {
  const { rounds, passesMin, changesMin, roundMs, restMs = 0, longMs, largeMs, onRound } = bounds;
  const workspace = setUp.workspaces[1]?.id as string;
  const token = await setUp.token({ workspace: 1 });
  const settings = { probeIntervalMs: 100, largePagesPerToken: 50, largePagesPerWorkspace: 50 };
  const gateways = [await setUp.gateway(settings), await setUp.gateway(settings)];
  const origins = gateways.map(({ gateway }) => gateway.url);
  const copies = resources.map((resource) => new SyncCopy(resource, token, origins));
  const writers = await syncWriters(setUp.cluster.primary.url(templateName), workspace, longMs, largeMs);
  const wrong: string[] = [];
  const sum = (of: (copy: SyncCopy) => number): number => copies.reduce((total, copy) => total + of(copy), 0);
  const report = (): StormReport => ({
    passes: sum((copy) => copy.passes),
    changes: writers.changes(),
    startedOver: sum((copy) => copy.startedOver),
    wrong,
  });
  const isShort = (): boolean => report().passes < passesMin || report().changes < changesMin;
  const disturb = disturbances(setUp.cluster);
  for (let round = 0; round < rounds || (round < rounds * 10 && isShort()); round++) {
    let isOver = false;
    writers.resume();
    const disturbing = (async () => {
      while (!isOver) await disturb();
    })();
    const reading = copies.map(async (copy) => {
      while (!isOver) {
        await copy.pass();
        await sleep(restMs);
      }
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
    onRound?.(report());
  }
  return report();
}

function disturbances(cluster: Cluster): () => Promise<void> {
  const pause = async (replica: PgNode): Promise<void> => {
    await replica.query('select pg_wal_replay_pause()');
    await sleep(Math.random() * 800);
    await replica.query('select pg_wal_replay_resume()');
  };
  const kill = async (replica: PgNode): Promise<void> => {
    await replica.kill9();
    await replica.start();
  };
  const exchange = (replica: PgNode): Promise<void> => cluster.rebuildReplica(cluster.replicas.indexOf(replica));
  const kinds = [pause, pause, kill, pause, pause, exchange, pause];
  let turn = 0;
  return async () => {
    const [kind, replica] = [kinds[turn % kinds.length], cluster.replicas[turn % cluster.replicas.length]];
    turn++;
    await kind?.(replica as PgNode);
    await sleep(100 + Math.random() * 400);
  };
}
