import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { stripControls } from './api.js';
import { type ExportFormat, exportFormats } from './destination.js';

export const usage = `Usage: workspace-data-pull --base URL --token-file FILE --to DEST [options]
       workspace-data-pull --status --to DEST [--schema NAME] [--max-age T]

Keeps a copy of the records of a workspace. Each run ends with a comparison of all ids and versions with the gateway.
Reads the API alone.

  --base URL          Address of the gateway, such as https://data.example.com
  --token-file FILE   File with an access token that has read:RESOURCE of each resource
  --to DEST           postgres://… (15 or later), or a DuckDB file such as copy.duckdb
  --schema NAME       Schema of the tables in PostgreSQL (default: workspace_data)
  --workspace-column  Give each table a column workspace_id
  --resources LIST    Separated by commas; default: all that the token may read
  --export DIR        Write each table to DIR/TABLE.FORMAT after each run, each file replaced in one step
  --format F          parquet (default), csv, excel-csv or ndjson
  --changes DIR       Write what each transaction changed, in numbered files of JSON lines
  --dbt FILE          Write the tables as sources of dbt, such as models/sources.yml
  --every T           Repeat, with a run every 90s, 15m, 1.5h or 1d, until SIGTERM
  --verify            Recompute the hash of all that is stored, compare, and repair
  --allow-deletions   Delete even if more than half of a table is gone
  --replace           Start over: read all again, also over a copy of another workspace or gateway
  --status            Print how fresh the copy is and what failed, as JSON; with --max-age 1h exit with 1 if it is older
  --help              Print this text

Kill it at any moment: records and progress are committed together, and the next run continues. It waits while the gateway is
unreachable or throttles it (Retry-After), and says so on stderr. A resource that fails is named; the others go on.

Exit codes:
  0    Done
  1    Error: the token, the disk, another process on the same DEST, …
  2    Usage error
  130  Stopped by SIGINT
  143  Stopped by SIGTERM
`;

export class UsageError extends Error {}

export interface Target {
  readonly to: string;
  readonly schema: string;
}

export interface Options extends Target {
  readonly base: string;
  /** Reads the token again, because its file can have another one by now. Throws UsageError. */
  readonly readToken: () => string;
  readonly hasWorkspace: boolean;
  readonly resources: readonly string[] | null;
  readonly exportTo: string | null;
  readonly format: ExportFormat;
  readonly changesTo: string | null;
  readonly dbtTo: string | null;
  readonly everyMs: number | null;
  readonly verify: boolean;
  readonly allowDeletions: boolean;
  readonly isReplaced: boolean;
}

export type Command =
  | { readonly does: 'help' }
  | (Target & { readonly does: 'status'; readonly maxAgeMs: number | null })
  | { readonly does: 'run'; readonly options: Options };

const text = { type: 'string' } as const;
const flag = { type: 'boolean' } as const;
const optionForms = {
  base: text,
  'token-file': text,
  to: text,
  schema: text,
  'workspace-column': flag,
  resources: text,
  export: text,
  format: text,
  changes: text,
  dbt: text,
  every: text,
  verify: flag,
  'allow-deletions': flag,
  replace: flag,
  status: flag,
  'max-age': text,
  help: flag,
} as const;

function parseValues(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: optionForms }).values;
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}
type Values = ReturnType<typeof parseValues>;

/** Throws UsageError. */
export function parseCommand(args: readonly string[]): Command {
  const values = parseValues(args);
  if (values.help) return { does: 'help' };
  if (values.status) return parseStatus(values);
  if (values['max-age'] !== undefined) throw new UsageError('--max-age goes with --status.');
  const { base, 'token-file': tokenFile, format = 'parquet' } = values;
  if (base === undefined || tokenFile === undefined || values.to === undefined)
    throw new UsageError('Give --base, --token-file and --to.');
  if (!isFormat(format))
    throw new UsageError(`--format is ${joinWords(exportFormats)}, not "${stripControls(format)}".`);
  if (values.format !== undefined && values.export === undefined) throw new UsageError('--format goes with --export.');
  const named = values.resources?.split(',').map((name) => name.trim());
  const resources = named === undefined ? null : [...new Set(named)];
  if (resources?.includes('')) throw new UsageError('Give --resources the names of resources, separated by commas.');
  readToken(tokenFile);
  for (const name of ['export', 'changes', 'dbt'] as const)
    if (values[name] === '') throw new UsageError(`Give --${name} a path.`);
  const options: Options = {
    ...parseTarget(values),
    base: parseBase(base),
    readToken: () => readToken(tokenFile),
    hasWorkspace: values['workspace-column'] ?? false,
    resources,
    exportTo: values.export ?? null,
    format,
    changesTo: values.changes ?? null,
    dbtTo: values.dbt ?? null,
    everyMs: values.every === undefined ? null : parseDurationMs('--every', values.every, timerMsMax),
    verify: values.verify ?? false,
    allowDeletions: values['allow-deletions'] ?? false,
    isReplaced: values.replace ?? false,
  };
  return { does: 'run', options };
}

/** Options that `--status` takes beside itself. */
const statusOptions: ReadonlySet<string> = new Set(['status', 'to', 'schema', 'max-age']);

function parseStatus(values: Values): Command {
  const others = Object.keys(values).filter((name) => !statusOptions.has(name));
  if (others.length > 0) throw new UsageError(`--status does not go with --${others.join(', --')}.`);
  const maxAge = values['max-age'];
  return {
    does: 'status',
    ...parseTarget(values),
    maxAgeMs: maxAge === undefined ? null : parseDurationMs('--max-age', maxAge),
  };
}

export const isDatabase = (to: string): boolean => /^postgres(ql)?:\/\//.test(to);

function parseTarget({ to, schema }: Values): Target {
  if (to === undefined) throw new UsageError('Give --to.');
  if (to === '' || (!isDatabase(to) && (/^[a-z][a-z0-9+.-]*:\/\//i.test(to) || to.endsWith('/'))))
    throw new UsageError('--to is postgres://… or a DuckDB file, such as copy.duckdb.');
  if (!isDatabase(to) && resolve(to).includes('?'))
    throw new UsageError(
      '--to has a ? in its path, where DuckDB would put its log beside the folder: give another path.',
    );
  if (isDatabase(to) && (!URL.canParse(to) || new URL(to).hash !== ''))
    throw new UsageError('--to is no URL: percent-encode special characters of the password.');
  if (schema !== undefined && !isDatabase(to))
    throw new UsageError('--schema goes with postgres://…: a DuckDB file has one workspace.');
  if (schema !== undefined && !/^(?!pg_)[a-z_][a-z0-9_]{0,62}$/.test(schema))
    throw new UsageError(
      '--schema is a name of small letters, digits and _, such as workspace_north, that does not begin with pg_.',
    );
  return { to, schema: schema ?? 'workspace_data' };
}

const isFormat = (format: string): format is ExportFormat => (exportFormats as readonly string[]).includes(format);
const joinWords = (words: readonly string[]): string => `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;

/** Returns origin and path of the gateway, with or without /api/v1. fetch quotes the password of an address that it refuses. */
function parseBase(base: string): string {
  const address = /^https?:/.test(base) && URL.canParse(base) ? new URL(base) : null;
  if (address === null || address.search + address.hash !== '')
    throw new UsageError('--base is the address of a gateway, such as https://data.example.com.');
  if (address.username + address.password !== '')
    throw new UsageError('--base takes no user and no password: the token in --token-file is the login.');
  return (address.origin + address.pathname).replace(/\/+$/, '').replace(/\/api\/v1$/, '');
}

/** Tells whether others can read the traffic to the address. */
export function isUnencrypted(base: string): boolean {
  const { protocol, hostname } = new URL(base);
  return protocol === 'http:' && !/^(localhost|127(\.\d+){3}|0\.0\.0\.0|\[::1?\])$/.test(hostname);
}

/** Reads the token. Throws for a text that no header can hold, because the error of fetch would quote it. */
function readToken(file: string): string {
  let token: string;
  try {
    token = readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw new UsageError(`The token file ${stripControls(file)} cannot be read: ${(error as { code?: string }).code}.`);
  }
  if (/^[\x21-\x7e]{16,512}$/.test(token)) return token;
  throw new UsageError(`The token file ${stripControls(file)} must hold one token and nothing else.`);
}

const unitMs: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
/** Longest timer of Node.js: 2 ** 31 - 1 ms. */
const timerMsMax = 24 * 86_400_000;

function parseDurationMs(option: string, duration: string, msMax = Number.POSITIVE_INFINITY): number {
  const [, number = '', unit = ''] = /^(\d{1,6}(?:\.\d{1,3})?)([smhd])$/.exec(duration) ?? [];
  const ms = Math.round(Number(number) * (unitMs[unit] ?? 0));
  if (ms >= 1000 && ms <= msMax) return ms;
  const bound = msMax === timerMsMax ? ', and at most 24d' : '';
  throw new UsageError(`${option} is a number with s, m, h or d, such as 15m or 1.5h${bound}.`);
}
