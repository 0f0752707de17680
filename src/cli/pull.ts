import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { client, Refused } from '../pull/client.js';
import { syncedResources } from '../pull/columns.js';
import { type Destination, DestinationUnusable } from '../pull/destination.js';
import { compare, pass } from '../pull/pass.js';
import { postgresDestination } from '../pull/postgres.js';
import { type Command, Failure, print, UsageError } from './command.js';

/** `pull`: keeps a copy of the workspace in a PostgreSQL database. */
export const pullCommand: Command = async (args) => {
  const { values } = parseArgs({
    args: [...args],
    options: {
      base: { type: 'string' },
      'token-file': { type: 'string' },
      to: { type: 'string' },
      resources: { type: 'string' },
      every: { type: 'string' },
      verify: { type: 'boolean', default: false },
    },
  });
  const { base, 'token-file': tokenFile, to, every, verify } = values;
  if (base === undefined || tokenFile === undefined || to === undefined)
    throw new UsageError('Give --base, --token-file and --to.');
  if (!/^https?:/.test(base) || !URL.canParse(base))
    throw new UsageError('--base is the address of a gateway, such as https://data.example.com.');
  if (!/^postgres(ql)?:/.test(to)) throw new UsageError('--to is a connection URL, postgres://…');
  const everyMs = every === undefined ? null : durationMs(every);
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort());
  try {
    const api = client(`${base.replace(/\/+$/, '')}/api/v1`, tokenOf(tokenFile), stop.signal);
    const destination = await postgresDestination(to);
    try {
      await keepCopy(api, destination, { chosen: values.resources?.split(','), everyMs, verify, signal: stop.signal });
    } finally {
      await destination.close();
    }
    return 0;
  } catch (error) {
    if (stop.signal.aborted) return 0;
    if (error instanceof Refused || error instanceof DestinationUnusable) throw new Failure(error.message);
    throw error;
  }
};

async function keepCopy(
  api: ReturnType<typeof client>,
  to: Destination,
  options: {
    readonly chosen: readonly string[] | undefined;
    readonly everyMs: number | null;
    readonly verify: boolean;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  const known = syncedResources(JSON.parse(await api.get('/openapi.json')));
  const unknown = options.chosen?.filter((name) => !known.has(name)) ?? [];
  if (unknown.length > 0)
    throw new UsageError(`There is no sync of ${unknown.join(', ')}; there is of ${[...known.keys()].join(', ')}.`);
  for (;;) {
    for (const resource of options.chosen ?? known.keys()) {
      const state = await to.prepare(resource, known.get(resource) ?? []);
      if (!options.verify) print(JSON.stringify(await pass(api, to, resource, state)));
      else if (state.since === null) throw new Failure(`There is no whole copy of ${resource} to compare.`);
      else print(JSON.stringify({ resource, ...(await compare(api, to, resource, state.since)) }));
    }
    if (options.everyMs === null) return;
    await sleep(options.everyMs, undefined, { signal: options.signal });
  }
}

function tokenOf(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw new Failure(`The token file ${file} cannot be read: ${(error as NodeJS.ErrnoException).code}.`);
  }
}

const units: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000 };

/** "15m" → 900,000. */
function durationMs(text: string): number {
  const [, number, unit] = /^([1-9]\d{0,4})([smh])$/.exec(text) ?? [];
  if (number === undefined || unit === undefined)
    throw new UsageError('--every is a number with s, m or h, such as 15m.');
  return Number(number) * (units[unit] as number);
}
