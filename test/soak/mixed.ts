import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { faultCluster } from '../support/fault-cluster.js';
import { asInProduction, serveProcess } from '../support/serve-process.js';
import type { Figures } from './figures.js';

const minutes = 18;
const pauseMs = 50;
const scopes = ['read:klanten', 'read:installaties', 'read:werkbonnen', 'read:logboeken', 'write:installaties'];

/** Eighteen minutes of every kind of request over two healthy replicas: none gets a 503. The first ten refusals go to stderr. */
export async function soakMixed(): Promise<Figures> {
  const setUp = await faultCluster();
  try {
    const serving = await serveProcess(setUp.settings({ logLevel: 'warn' }), asInProduction);
    const token = await setUp.token({ scopes });
    const created: string[] = [];
    const statuses = new Map<string, number>();
    const endMs = performance.now() + minutes * 60_000;

    const send = async (kind: string, path: string, init: RequestInit = {}): Promise<Response> => {
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...init.headers };
      const response = await fetch(`${serving.url}/api/v1${path}`, { ...init, headers });
      const body = await response.text();
      const key = `${kind}: ${response.status}`;
      statuses.set(key, (statuses.get(key) ?? 0) + 1);
      if (response.status >= 500 && refusals() <= 10) console.error(new Date().toISOString(), kind, path, body);
      return new Response(response.status === 204 ? null : body, response);
    };
    const refusals = (): number =>
      [...statuses].reduce((sum, [key, count]) => sum + (/: 5\d\d$/.test(key) ? count : 0), 0);
    const loads: Readonly<Record<string, () => Promise<unknown>>> = {
      detail: () =>
        send('detail', created.length > 0 ? `/installaties/${created.at(-1)}` : `/klanten/${setUp.customerId}`),
      list: () => send('list', '/werkbonnen?perPage=100'),
      customers: () => send('customers', '/klanten?perPage=1000'),
      large: () => send('large', '/werkbonnen?perPage=10000'),
      log: () => send('log', '/logboeken?perPage=500&page=3&order=desc'),
      count: () => send('count', '/logboeken?perPage=1&total=true'),
      create: async () => {
        const body = JSON.stringify({ customerId: setUp.customerId, naam: 'mixed' });
        const headers = { 'idempotency-key': randomUUID() };
        const response = await send('create', '/installaties', { method: 'POST', body, headers });
        if (response.status === 201) created.push(((await response.json()) as { id: string }).id);
        await sleep(200);
      },
    };
    const run = async (load: () => Promise<unknown>): Promise<void> => {
      while (performance.now() < endMs) {
        await load();
        await sleep(pauseMs);
      }
    };
    await Promise.all(Object.values(loads).map(run));
    serving.child.kill('SIGTERM');
    await serving.exited;
    if (refusals() > 0) console.error(serving.log().split('\n').slice(0, 100).join('\n'));
    return {
      ok: refusals() === 0,
      figures: { ...Object.fromEntries([...statuses].sort()), 'Answers of 500 and more': refusals() },
    };
  } finally {
    await setUp.stop();
  }
}
