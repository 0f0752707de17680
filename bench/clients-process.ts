import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from './client.js';

/** Clients in a process of their own. */
export interface Clients {
  /** `pages`: each client reads the path again and again. `paced`: requests at a fixed pace, whether or not earlier ones are answered. */
  readonly kind: 'pages' | 'paced';
  readonly origin: string;
  /** `pages` has as many clients as tokens; `paced` uses the first. */
  readonly tokens: readonly string[];
  readonly paths: readonly string[];
  readonly seconds: number;
}

export interface ClientsResult {
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Requests that were not answered 200. */
  readonly failures: number;
}

const perSecond = 100;
const warmUpRequests = 50;

// The clients as JSON in the argument, the result as JSON on stdout.
const { kind, origin, tokens, paths, seconds } = JSON.parse(process.argv[2] as string) as Clients;
let failures = 0;
const times = kind === 'pages' ? await pages() : await paced();
const sorted = times.sort((a, b) => a - b);
const at = (share: number): number => sorted[Math.floor(sorted.length * share)] ?? Number.NaN;
process.stdout.write(JSON.stringify({ p50Ms: at(0.5), p99Ms: at(0.99), failures } satisfies ClientsResult));
process.exit(0);

/** Times of the pages that ended in time. A refused page is asked for again after the time of Retry-After. */
async function pages(): Promise<number[]> {
  const taken: number[] = [];
  const readOn = async (token: string): Promise<void> => {
    const client = await Client.connect({ origin, token });
    for (;;) {
      const { status, ms, head } = await client.get(paths[0] as string);
      if (status === 200) taken.push(ms);
      else {
        failures++;
        await sleep(Number(/\r\nretry-after: (\d+)\r\n/i.exec(head)?.[1] ?? 1) * 1000);
      }
    }
  };
  await Promise.race([sleep(seconds * 1000), ...tokens.map(readOn)]);
  return taken;
}

async function paced(): Promise<number[]> {
  const idle: Client[] = [];
  const ask = async (n: number): Promise<number> => {
    const sentMs = performance.now();
    const client = idle.pop() ?? (await Client.connect({ origin, token: tokens[0] as string }));
    const { status } = await client.get(paths[n % paths.length] as string);
    idle.push(client);
    if (status !== 200) failures++;
    return performance.now() - sentMs;
  };
  for (let n = 0; n < warmUpRequests; n++) await ask(n);
  failures = 0;
  const running: Promise<number>[] = [];
  const startMs = performance.now();
  while (running.length < perSecond * seconds) {
    const due = Math.floor(((performance.now() - startMs) * perSecond) / 1000);
    while (running.length < due) running.push(ask(running.length));
    await sleep(1);
  }
  return Promise.all(running);
}
