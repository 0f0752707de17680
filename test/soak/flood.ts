import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { faultCluster } from '../support/fault-cluster.js';
import { serveProcess } from '../support/serve-process.js';
import type { Figures } from './run.js';

/** How one workspace fares alone and while another floods the gateway. */
export async function soakFlood(): Promise<Figures> {
  const setUp = await faultCluster({ replicas: 2 });
  const serving = await serveProcess({ ...setUp.settings(), logLevel: 'warn' });
  try {
    const base = `${serving.url}/api/v1`;
    const token = await setUp.token({ workspace: 1 });
    const flooding = await Promise.all(Array.from({ length: 20 }, () => setUp.token()));
    const victim = (): Promise<number[]> => clientProcess(['victim', `${base}/klanten?perPage=20`, token]);
    await victim();
    const figures: Record<string, number | string> = {};
    let ok = true;
    for (const [what, path] of [
      ['pages of 100', '/werkbonnen?perPage=100'],
      ['pages of 3,000', '/werkbonnen?perPage=3000'],
    ] as const) {
      const alone = p99(await victim());
      const flood = clientProcess(['flood', base + path, ...flooding]);
      await new Promise((resolve) => setTimeout(resolve, 2000));
      const beside = p99(await victim());
      await flood;
      figures[`p99 alone (ms), before ${what}`] = alone.toFixed(2);
      figures[`p99 beside 200 parallel ${what} (ms)`] = beside.toFixed(2);
      ok &&= beside <= alone * 1.2;
    }
    return { ok, figures };
  } finally {
    serving.child.kill('SIGTERM');
    await serving.exited;
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
