import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { type Command, durationMs, Failure, namesIn, UsageError } from '../src/cli/command.js';
import { connectionUrlFault } from '../src/db/connection-url.js';
import { databaseErrorKind, sqlStateOf } from '../src/errors.js';
import { wellFormed } from '../src/http/token-format.js';
import { readFault, readText } from '../src/paths.js';
import { changeFormats, type FormatName } from './change-formats.js';
import { type Client, client, Refused } from './client.js';
import { type OpenApiDocument, syncedResources } from './columns.js';
import { type Destination, DestinationUnusable } from './destination.js';
import { directoryDestination } from './directory.js';
import { type PullDisplay, pullDisplay } from './display.js';
import { compare, pass } from './pass.js';
import { postgresDestination } from './postgres.js';

/** `pull`: keeps a copy of the workspace in a PostgreSQL database or in a folder. */
export const pullCommand: Command = async (args) => {
  const { values } = parseArgs({
    args: [...args],
    options: {
      base: { type: 'string' },
      'token-file': { type: 'string' },
      to: { type: 'string' },
      resources: { type: 'string' },
      format: { type: 'string' },
      every: { type: 'string' },
      verify: { type: 'boolean', default: false },
    },
  });
  const { base, 'token-file': tokenFile, to, every, verify } = values;
  if (base === undefined || tokenFile === undefined || to === undefined)
    throw new UsageError('Give --base, --token-file and --to.');
  refuseOtherAddresses(base);
  const openDestination = destinationOf(to, values.format);
  const everyMs = every === undefined ? null : parseEvery(every);
  const chosen = values.resources === undefined ? undefined : namesIn(values.resources);
  if (chosen?.length === 0) throw new UsageError('Give --resources the names of resources, with commas between them.');
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort());
  try {
    const display = pullDisplay();
    const address = `${base.replace(/\/+$/, '')}/api/v1`;
    const api = client(address, tokenOf(tokenFile), stop.signal, display.waiting);
    const options = { chosen, everyMs, verify, signal: stop.signal };
    let reason = '';
    for (
      let destination = await openDestination();
      ;
      destination = await openAgain(openDestination, reason, display, stop.signal)
    )
      try {
        await keepCopy(api, destination, display, options);
        return 0;
      } catch (error) {
        if (everyMs === null || !isDatabase(to) || !isLostConnection(error)) throw error;
        reason = (error as Error).message;
      } finally {
        await destination.close();
      }
  } catch (error) {
    if (isStop(error, stop.signal)) return 0;
    if (error instanceof Refused || error instanceof DestinationUnusable) throw new Failure(error.message);
    throw error;
  }
};

/** The path of a reverse proxy may stand in it. fetch quotes the password of an address that it refuses, and a query would swallow the path of the API. */
function refuseOtherAddresses(base: string): void {
  const address = /^https?:/.test(base) && URL.canParse(base) ? new URL(base) : null;
  if (address === null || address.search + address.hash !== '')
    throw new UsageError('--base is the address of a gateway, such as https://data.example.com.');
  if (address.username + address.password !== '')
    throw new UsageError('--base takes no user and no password: the token in --token-file is the login.');
}

/** Whether the error is the end of the work that a signal asked for. */
function isStop(error: unknown, signal: AbortSignal): boolean {
  return signal.aborted && (error === signal.reason || (error as Error).name === 'AbortError');
}

/** Checks the place of a copy, and returns the way to open it. */
function destinationOf(to: string, format: string | undefined): () => Promise<Destination> {
  if (isDatabase(to)) {
    const fault = connectionUrlFault(to);
    if (fault !== null) throw new UsageError(`--to ${fault}`);
    if (format !== undefined) throw new UsageError('--format is for a folder; a database has tables.');
    return () => postgresDestination(to);
  }
  if (to === '' || /^[a-z][a-z0-9+.-]*:\/\//i.test(to))
    throw new UsageError('--to is a connection URL, postgres://…, or a folder.');
  const known = Object.keys(changeFormats) as FormatName[];
  const chosen = known.find((name) => name === (format ?? 'ndjson'));
  if (chosen === undefined) throw new UsageError(`--format is ${known.join(' or ')}, not "${format}".`);
  return () => directoryDestination(to, { format: chosen });
}

const isDatabase = (to: string): boolean => /^postgres(ql)?:/.test(to);

/** Whether a database of copies broke the connection, as it does when it is started again; the pass goes on where it was. */
function isLostConnection(error: unknown): boolean {
  const isOwn = [Refused, DestinationUnusable, Failure, UsageError].some((kind) => error instanceof kind);
  const state = sqlStateOf(error);
  if (state !== undefined) return passingStates.test(state);
  return !isOwn && databaseErrorKind(error, 'write') === 'retry';
}

/** A lost connection, a conflict with another transaction, no free connection, a stop or a start (PostgreSQL, Appendix A); not a full disk. */
const passingStates = /^(08|40|53300|57P0[123])/;

const openPauseMsMin = 1000;
const openPauseMsMax = 30_000;

/** Opens a destination that was open before, for as long as it takes; a session that died can still hold its lock for a moment. */
async function openAgain(
  open: () => Promise<Destination>,
  reason: string,
  display: PullDisplay,
  signal: AbortSignal,
): Promise<Destination> {
  for (let [pauseMs, why] = [openPauseMsMin, reason]; ; pauseMs = Math.min(pauseMs * 2, openPauseMsMax)) {
    display.waiting(why, pauseMs, 'destination');
    await sleep(pauseMs, undefined, { signal });
    try {
      return await open();
    } catch (error) {
      if (!(error instanceof DestinationUnusable) && !isLostConnection(error)) throw error;
      why = (error as Error).message;
    }
  }
}

async function keepCopy(
  api: Client,
  to: Destination,
  display: PullDisplay,
  options: {
    readonly chosen: readonly string[] | undefined;
    readonly everyMs: number | null;
    readonly verify: boolean;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  for (;;) {
    // Asked in each round: a gateway that was started again may have further members, which a pass over everything then brings.
    const known = syncedResources((await api.get('/openapi.json')).value as OpenApiDocument);
    if (known.size === 0)
      throw new Failure(
        'The server at --base describes no resource that can be copied: give the address of a gateway, and "sync" in a definition there.',
      );
    const unknown = options.chosen?.filter((name) => !known.has(name)) ?? [];
    if (unknown.length > 0)
      throw new UsageError(`There is no sync of ${unknown.join(', ')}; there is of ${[...known.keys()].join(', ')}.`);
    for (const resource of options.chosen ?? known.keys()) {
      const copy = await to.open(resource, known.get(resource) ?? []);
      const { since } = copy.state;
      if (!options.verify) display.passed(await pass(api, copy, resource, display.page));
      else if (since === null) throw new Failure(`There is no whole copy of ${resource} to compare.`);
      else display.passed({ resource, ...(await compare(api, copy, resource, since)) });
    }
    if (options.everyMs === null) return;
    await sleep(options.everyMs, undefined, { signal: options.signal });
  }
}

/** The token in the file. Other texts are not sent: fetch would quote one that is no header in its error. */
function tokenOf(file: string): string {
  let text: string;
  try {
    text = readText(file).trim();
  } catch (error) {
    throw new Failure(`The token file ${file} cannot be read: ${readFault(error)}.`);
  }
  if (wellFormed(text)) return text;
  throw new Failure(`The token file ${file} must hold one whole token, wdg_…, and nothing else.`);
}

/** The longest time for which a timer of Node.js waits. */
const everyMsMax = 2 ** 31 - 1;

function parseEvery(text: string): number {
  const ms = durationMs(text, 'smh');
  if (ms === null || ms > everyMsMax)
    throw new UsageError('--every is a number with s, m or h, such as 15m, and at most 596h.');
  return ms;
}
