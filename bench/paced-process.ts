import { Agent, get } from 'node:http';

/** Requests at a fixed pace, whether or not those before them are answered. */
export interface Paced {
  readonly origin: string;
  readonly token: string;
  readonly paths: readonly string[];
  readonly perSecond: number;
  readonly seconds: number;
}

/** Result of paced requests. */
export interface PacedResult {
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Requests that were not answered 200. */
  readonly failures: number;
}

const warmUpRequests = 50;

// Process of the client: the requests as JSON in its argument, the result as JSON on its stdout.
const { origin, token, paths, perSecond, seconds } = JSON.parse(process.argv[2] as string) as Paced;
const agent = new Agent({ keepAlive: true });
const headers = { authorization: `Bearer ${token}` };
let failures = 0;
for (let n = 0; n < warmUpRequests; n++) await ask(n);
failures = 0;
const running: Promise<number>[] = [];
const startMs = performance.now();
await new Promise<void>((resolve) => {
  const due = (): number => Math.floor(((performance.now() - startMs) * perSecond) / 1000);
  const timer = setInterval(() => {
    while (running.length < due()) running.push(ask(running.length));
    if (running.length < perSecond * seconds) return;
    clearInterval(timer);
    resolve();
  }, 1);
});
const times = (await Promise.all(running)).sort((a, b) => a - b);
const at = (share: number): number => times[Math.floor(times.length * share)] ?? Number.NaN;
process.stdout.write(JSON.stringify({ p50Ms: at(0.5), p99Ms: at(0.99), failures } satisfies PacedResult));
process.exit(0);

/** Time of a request, in milliseconds. */
function ask(n: number): Promise<number> {
  const sentMs = performance.now();
  return new Promise((resolve, reject) => {
    get(origin + (paths[n % paths.length] as string), { agent, headers }, (response) => {
      if (response.statusCode !== 200) failures++;
      response.resume();
      response.on('end', () => resolve(performance.now() - sentMs));
    }).on('error', reject);
  });
}
