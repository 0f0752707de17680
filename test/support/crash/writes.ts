import type { OpenApiDocument } from '../../../src/serve/openapi/document.js';
import { apiClient } from '../client.js';
import { contractValidator } from '../contract.js';
import { faultCluster } from '../fault-cluster.js';
import { type Encounters, writeUntilDone } from './clients.js';
import { commitProxy } from './commit-proxy.js';
import { disagreements } from './verdict.js';

export interface CrashRun {
  readonly writes: number;
  readonly clients: number;
  readonly upMs: readonly [number, number];
  readonly killsMax: number;
  readonly shareLost: number;
}

export interface CrashReport extends Encounters {
  readonly creates: number;
  readonly updates: number;
  readonly refused: number;
  readonly kills: number;
  readonly commitsLost: number;
  readonly seconds: number;
  readonly disagreements: readonly string[];
}

const prefix = 'crash ';

/** Kills the durable primary with -9 under clients that repeat requests, while a proxy loses answers to COMMIT. */
export async function crashWrites({ writes, clients, upMs, killsMax, shareLost }: CrashRun): Promise<CrashReport> {
  const setUp = await faultCluster({ replicas: 1, settings: { fsync: 'on', full_page_writes: 'on' } });
  const { primary } = setUp.cluster;
  const proxy = await commitProxy(setUp.settings().primaryUrls);
  try {
    const { gateway } = await setUp.gateway({ primaryUrls: proxy.url, logLevel: 'silent' });
    const token = await setUp.token({ scopes: ['read:installaties', 'write:installaties'] });
    const document = (await (await fetch(`${gateway.url}/api/v1/openapi.json`)).json()) as OpenApiDocument;
    const client = apiClient(`${gateway.url}/api/v1`, { token, validate: contractValidator(document) });
    const met: Encounters = { requests: 0, retries: 0, replays: 0, longestMs: 0 };
    const shared: string[] = [];
    let marks = 0;
    const next = (): string | undefined => (marks < writes ? `${prefix}${++marks}` : undefined);
    const startedMs = performance.now();
    let running = true;
    let kills = 0;
    const killing = (async () => {
      while (running && kills < killsMax) {
        await new Promise((resolve) => setTimeout(resolve, upMs[0] + Math.random() * (upMs[1] - upMs[0])));
        if (!running) return;
        await primary.kill9();
        kills++;
        await primary.start();
      }
    })();
    proxy.lose(shareLost);
    const working = Array.from({ length: clients }, () => writeUntilDone(client, setUp.customerId, shared, met, next));
    const written = (
      await Promise.all(working).finally(() => {
        running = false;
      })
    ).flat();
    const seconds = (performance.now() - startedMs) / 1000;
    await killing;
    client.close();
    return {
      ...met,
      creates: written.filter(({ kind }) => kind === 'create').length,
      updates: written.filter(({ kind, done }) => kind === 'update' && done).length,
      refused: written.filter(({ done }) => !done).length,
      kills,
      commitsLost: proxy.lost(),
      seconds,
      disagreements: await disagreements(setUp, prefix, written),
    };
  } finally {
    await setUp.stop();
    await proxy.close();
  }
}
