import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { faultCluster } from '../support/fault-cluster.js';
import { asInProduction, serveProcess } from '../support/serve-process.js';
import type { Figures } from './figures.js';

const victimRequests = 600;
const floodTokens = 20;

/** Measures one workspace alone and while another floods the gateway: under the usual limit, and with it lifted. */
export async function soakFlood(): Promise<Figures> {
  const setUp = await faultCluster({ replicas: 2 });
  const figures: Record<string, number | string> = {};
  let ok = true;
  try {
    for (const [limit, quota] of [
      ['60 requests a minute', 60],
      ['no limit', 1_000_000],
    ] as const) {
      const serving = await serveProcess(
        { ...setUp.settings(), rateLimitPerMinute: quota, logLevel: 'error' },
        asInProduction,
      );
      const base = `${serving.url}/api/v1`;
      const tokens = (count: number, workspace: number): Promise<string[]> =>
        Promise.all(Array.from({ length: count }, () => setUp.token({ workspace })));
      const victim = async (): Promise<number> => {
        const own = await tokens(Math.ceil(victimRequests / Math.min(quota, victimRequests)), 1);
        return p99(await clientProcess(['victim', `${base}/klanten?perPage=20`, ...own]));
      };
      await victim();
      for (const [what, path] of [
        ['pages of 100', '/werkbonnen?perPage=100'],
        ['pages of 3,000', '/werkbonnen?perPage=3000'],
      ] as const) {
        const [first, flooding] = [await victim(), await tokens(floodTokens, 0)];
        const flood = clientProcess(['flood', base + path, ...flooding]);
        await new Promise((resolve) => setTimeout(resolve, 2000));
        const beside = await victim();
        await flood;
        const alone = (first + (await victim())) / 2;
        figures[`${limit}: p99 before and after ${what} (ms)`] = alone.toFixed(2);
        figures[`${limit}: p99 beside 200 parallel ${what} (ms)`] = beside.toFixed(2);
        ok &&= beside <= alone * 1.2;
      }
      serving.child.kill('SIGTERM');
      await serving.exited;
    }
    return { ok, figures };
  } finally {
    await setUp.stop();
  }
}

function p99(durations: readonly number[]): number {
  return [...durations].sort((a, b) => a - b)[Math.floor(durations.length * 0.99)] as number;
}

/** Clients are processes of their own, so that they do not wait for each other. */
function clientProcess(args: readonly string[]): Promise<number[]> {
  const child = fork(fileURLToPath(new URL('./flood-client.js', import.meta.url)), args);
  return new Promise((resolve, reject) => {
    child.on('message', (durations) => resolve(durations as number[]));
    child.on('exit', (code) => reject(new Error(`a client ended with ${code}`)));
  });
}
