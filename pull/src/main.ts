import { mkdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { type Api, api, plain, Refused } from './api.js';
import { changeFiles, noChangeFiles } from './changes.js';
import { type Destination, type ExportFormat, Unusable } from './destination.js';
import { type Display, display } from './display.js';
import { type OpenApiDocument, type Resource, resourcesOf, UnfitDocument } from './document.js';
import { pass } from './pass.js';

const usage = `Usage: workspace-data-pull --base URL --token-file FILE --to DEST [options]

Keeps a copy of the records of a workspace, and proves it: each run ends with a comparison of all ids and versions with the
gateway. Reads the API alone.

  --base URL        Address of the gateway, such as https://data.example.com
  --token-file FILE File with an access token that has read:RESOURCE of each resource
  --to DEST         postgres://… (14 or later; tables in the schema workspace_data), or a DuckDB file such as copy.duckdb
  --resources LIST  Separated by commas; default: all that the token may read
  --export DIR      Write each table to DIR/TABLE.FORMAT after each run, each file replaced in one step
  --format F        parquet (default), csv or ndjson
  --changes DIR     Write what each transaction changed, in numbered files of JSON lines
  --every T         Go on, with a run every 90s, 15m or 6h, until SIGTERM
  --verify          Recompute the hash of all that is stored, compare, and repair
  --help            This text

Kill it at any moment: records and progress are committed together, and the next run goes on there. It waits as long as the gateway is
away or refuses for its limits (Retry-After), and says so on stderr.

Exit codes:
  0  Done, or stopped by SIGTERM or SIGINT
  1  Error: the token, the disk, another process on the same DEST, …
  2  Usage error
`;

class UsageError extends Error {}

interface Options {
  readonly base: string;
  readonly token: string;
  readonly to: string;
  readonly resources: readonly string[] | null;
  readonly exportTo: string | null;
  readonly format: ExportFormat;
  readonly changesTo: string | null;
  readonly everyMs: number | null;
  readonly verify: boolean;
}

process.umask(0o077); // copies hold personal data
const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort());

async function main(args: readonly string[]): Promise<number> {
  const screen = display();
  try {
    const options = parse(args);
    if (options === null) {
      process.stdout.write(usage);
      return 0;
    }
    if (isClear(options.base))
      screen.note('The token and the data travel in clear text: use https for a host that is not this one.');
    await run(options, screen);
    return 0;
  } catch (error) {
    if (stop.signal.aborted && (error === stop.signal.reason || (error as Error).name === 'AbortError')) return 0;
    screen.note(inWords(error));
    return error instanceof UsageError ? 2 : 1;
  }
}

/** Opens the destination, brings the copy up to date, and goes on; a database that was started again is opened again. */
async function run(options: Options, screen: Display): Promise<void> {
  const client = api(`${options.base}/api/v1`, options.token, stop.signal, screen.waiting);
  for (let pauseMs = 1000, isOpened = false; ; pauseMs = Math.min(pauseMs * 2, 30_000)) {
    try {
      const destination = await openDestination(options.to);
      isOpened = true;
      pauseMs = 1000;
      try {
        return await keepCopy(client, destination, options, screen);
      } finally {
        await destination.close().catch(() => undefined);
      }
    } catch (error) {
      const canPass = error instanceof Unusable ? isOpened : isLostConnection(error);
      if (options.everyMs === null || !isOpened || !canPass) throw error;
      screen.waiting((error as Error).message, pauseMs, 'destination');
      await sleep(pauseMs, undefined, { signal: stop.signal });
    }
  }
}

/** The path of a run: the document → the resources → a pass of each → what refers to deleted records again → the export. */
async function keepCopy(client: Api, destination: Destination, options: Options, screen: Display): Promise<void> {
  const { everyMs, verify, exportTo, changesTo } = options;
  const changes =
    changesTo === null ? noChangeFiles(destination.changeFiles) : await changeFiles(changesTo, destination.changeFiles);
  const deps = { api: client, changes, ...(screen.onPage && { onPage: screen.onPage }) };
  for (;;) {
    // Asked in each run: a gateway that was started again may have further members.
    const resources = await chosenOf(client, options, screen);
    for (const resource of resources) await destination.open(resource); // names a table that is not its own before it reads
    const passOver = async (some: readonly Resource[]): Promise<void> => {
      for (const resource of some) {
        const copy = await destination.open(resource);
        if (verify && copy.progress.since === null)
          screen.note(`There is no whole copy of ${resource.name} yet: it is read.`);
        screen.passed(await pass(deps, copy, resource, { verify }));
      }
    };
    await passOver(resources);
    // A record that was deleted between two passes can be missing to one that was read before.
    for (let again = 0; again < danglingRunsMax && (await destination.dangling(resources)) > 0; again++)
      await passOver(resources.filter(({ references }) => references.length > 0));
    if (exportTo !== null) {
      mkdirSync(exportTo, { recursive: true, mode: 0o700 });
      for (const resource of resources) {
        await destination.open(resource);
        await destination.export(resource, exportTo, options.format);
      }
    }
    if (everyMs === null) return;
    await sleep(everyMs, undefined, { signal: stop.signal });
  }
}

const danglingRunsMax = 3;

/** The resources to copy. Without `--resources`: those that the token may read; the others are named. */
async function chosenOf(client: Api, { resources }: Options, screen: Display): Promise<Resource[]> {
  const all = resourcesOf((await client.json('/openapi.json')) as OpenApiDocument);
  if (all.length === 0)
    throw new UnfitDocument(
      'The server at --base describes no resource that can be copied: give the address of a workspace data gateway.',
    );
  const unknown = resources?.filter((name) => !all.some((each) => each.name === name)) ?? [];
  if (unknown.length > 0)
    throw new UsageError(
      `There is no sync of ${unknown.join(', ')}; there is of ${all.map(({ name }) => name).join(', ')}.`,
    );
  if (resources !== null) return all.filter(({ name }) => resources.includes(name));
  const { scopes } = (await client.json('/token')) as { scopes: readonly string[] };
  const [readable, others] = [all.filter(mayRead(scopes)), all.filter((each) => !mayRead(scopes)(each))];
  if (readable.length === 0) throw new Refused(403, 'The token may read no resource: it needs read:RESOURCE.');
  if (others.length > 0)
    screen.note(`Not copied, as the token lacks the scope: ${others.map(({ name }) => name).join(', ')}.`);
  return readable;
}

const mayRead =
  (scopes: readonly string[]) =>
  ({ name }: Resource): boolean =>
    scopes.includes(`read:${name}`);

async function openDestination(to: string): Promise<Destination> {
  if (isDatabase(to)) return (await import('./postgres.js')).postgresDestination(to);
  return (await import('./duckdb.js')).duckdbDestination(to);
}

const isDatabase = (to: string): boolean => /^postgres(ql)?:\/\//.test(to);

/** A lost connection, a conflict, no free connection, a stop or a start (PostgreSQL, Appendix A); not a full disk. */
function isLostConnection(error: unknown): boolean {
  const { code, message } = error as { code?: string; message?: string };
  if (code !== undefined && /^[0-9A-Z]{5}$/.test(code) && !code.startsWith('E'))
    return /^(08|40|53300|57P0[123])/.test(code);
  return code !== undefined || /Connection terminated|connection error/.test(message ?? '');
}

/** The error in words that an operator can act on. */
function inWords(error: unknown): string {
  const { code, message } = error as { code?: string; message: string };
  const own = [Refused, Unusable, UsageError, UnfitDocument].some((kind) => error instanceof kind);
  if (own) return message;
  if (code === 'ENOSPC' || code === '53100' || /No space left|not enough disk/i.test(message))
    return `The disk is full: ${message.split('\n')[0]}`;
  if (code === 'EEXIST' || code === 'ENOTDIR') return `A file is in the way of a folder: ${message}`;
  if (['EACCES', 'EPERM', 'EROFS', '42501'].includes(code ?? ''))
    return `The destination cannot be written: ${message}`;
  if (isLostConnection(error)) return `The connection to the destination was lost: ${message}`;
  return `${message.split('\n')[0]}`;
}

function parse(args: readonly string[]): Options | null {
  const { values } = parsed(args);
  if (values.help) return null;
  const { base, 'token-file': tokenFile, to, every, format = 'parquet' } = values;
  if (base === undefined || tokenFile === undefined || to === undefined)
    throw new UsageError('Give --base, --token-file and --to.');
  if (!isFormat(format)) throw new UsageError(`--format is parquet, csv or ndjson, not "${format}".`);
  if (values.format !== undefined && values.export === undefined) throw new UsageError('--format goes with --export.');
  if (to === '' || (!isDatabase(to) && (/^[a-z][a-z0-9+.-]*:\/\//i.test(to) || to.endsWith('/'))))
    throw new UsageError('--to is postgres://… or a DuckDB file, such as copy.duckdb.');
  if (isDatabase(to) && (!URL.canParse(to) || new URL(to).hash !== ''))
    throw new UsageError('--to is no URL: percent-encode special characters of the password.');
  const resources = values.resources?.split(',').map((name) => name.trim()) ?? null;
  if (resources?.includes('')) throw new UsageError('Give --resources the names of resources, separated by commas.');
  return {
    base: baseOf(base),
    token: tokenOf(tokenFile),
    to,
    resources,
    exportTo: values.export ?? null,
    format,
    changesTo: values.changes ?? null,
    everyMs: every === undefined ? null : everyMsOf(every),
    verify: values.verify ?? false,
  };
}

function parsed(args: readonly string[]) {
  const text = { type: 'string' } as const;
  try {
    return parseArgs({
      args: [...args],
      options: {
        base: text,
        'token-file': text,
        to: text,
        resources: text,
        export: text,
        format: text,
        changes: text,
        every: text,
        verify: { type: 'boolean' },
        help: { type: 'boolean' },
      },
    });
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

const isFormat = (text: string): text is ExportFormat => ['parquet', 'csv', 'ndjson'].includes(text);

/** Origin and path of the gateway, with or without /api/v1. fetch quotes the password of an address that it refuses. */
function baseOf(base: string): string {
  const address = /^https?:/.test(base) && URL.canParse(base) ? new URL(base) : null;
  if (address === null || address.search + address.hash !== '')
    throw new UsageError('--base is the address of a gateway, such as https://data.example.com.');
  if (address.username + address.password !== '')
    throw new UsageError('--base takes no user and no password: the token in --token-file is the login.');
  return (address.origin + address.pathname).replace(/\/+$/, '').replace(/\/api\/v1$/, '');
}

function isClear(base: string): boolean {
  const { protocol, hostname } = new URL(base);
  return protocol === 'http:' && !/^(localhost|127(\.\d+){3}|0\.0\.0\.0|\[::1?\])$/.test(hostname);
}

/** The token in the file. Other texts are not sent: fetch would quote one that is no header in its error. */
function tokenOf(file: string): string {
  let text: string;
  try {
    text = readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw new UsageError(`The token file ${plain(file)} cannot be read: ${(error as { code?: string }).code}.`);
  }
  if (/^[\x21-\x7e]{16,512}$/.test(text)) return text;
  throw new UsageError(`The token file ${plain(file)} must hold one token and nothing else.`);
}

const unitMs: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000 };
/** The longest time for which a timer of Node.js waits. */
const everyMsMax = 2 ** 31 - 1;

function everyMsOf(text: string): number {
  const [, number = '', unit = ''] = /^(\d{1,6})([smh])$/.exec(text) ?? [];
  const ms = Number(number) * (unitMs[unit] ?? 0);
  if (ms === 0 || ms > everyMsMax)
    throw new UsageError('--every is a number with s, m or h, such as 15m, and at most 596h.');
  return ms;
}

process.exit(await main(process.argv.slice(2)));
