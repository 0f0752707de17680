import { type KeyObject, sign } from 'node:crypto';
import { mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { type FieldError, SettingsError } from '../../base/errors.js';
import type { Observe } from '../../base/events.js';
import { pick, splitList } from '../../base/members.js';
import { suggest } from '../../base/nearest-name.js';
import { getServerName } from '../../postgres/connection-url.js';
import { getDatabaseErrorKind, getReason } from '../../postgres/database-errors.js';
import { runWithSnapshot, type Snapshot, type SnapshotOrigin } from '../../postgres/snapshot.js';
import type { WorkspaceId } from '../../postgres/statement.js';
import { listSessionSettings } from '../../postgres/wire/session.js';
import { makeWorkspaceMac } from '../../postgres/workspace-mac.js';
import { type CompiledResource, compileResources } from '../../resource/compiled.js';
import { loadResources } from '../../resource/definition/load.js';
import { parseKeyring } from '../../resource/projection/keyring.js';
import { parseFilters } from '../../serve/read/parse.js';
import type { Settings } from '../../settings.js';
import { type ExportedFile, exportRecords, type PeriodFilter, readBatches } from './records.js';

export class ExportFailed extends Error {
  override readonly name = 'ExportFailed';
}

export interface ExportOptions {
  readonly workspace: string;
  readonly out: string;
  /** An empty list means all resources. */
  readonly resources: readonly string[];
  readonly server: 'replica' | 'primary';
  readonly days: Days;
  readonly gzip: boolean;
  /** The key is an Ed25519 key; `previous` is SHA-256 of the manifest before, and null for the first. */
  readonly signing: { readonly key: KeyObject; readonly previous: string | null } | null;
  readonly onProgress: (resource: string, records: number) => void;
}

/** Both days are inclusive, as the filters from and to of a list are. */
export interface Days {
  readonly from?: string;
  readonly to?: string;
}

export const manifestName = 'manifest.json';

export interface Manifest {
  readonly workspace: string;
  readonly days?: Days & { readonly timeZone: string };
  readonly snapshot: SnapshotOrigin & { readonly server: string };
  readonly files: readonly ExportedFile[];
  /** SHA-256 of the manifest before, in a signed manifest. */
  readonly previous?: string | null;
}

/** Writes files of JSON lines, all of one snapshot. They appear together at the end; ExportFailed leaves nothing behind. */
export async function exportWorkspace(settings: Settings, options: ExportOptions): Promise<Manifest> {
  const compiled = await chooseResources(settings, options.resources);
  const { workspace, days, signing } = options;
  const { timeZone } = settings;
  const sources = compiled.map((each) => ({ compiled: each, ...parsePeriod(each, { ...days, timeZone }) }));
  const out = resolve(options.out);
  await requireEmpty(out);
  const folder = await mkdtemp(join(dirname(out), `.${basename(out)}-`)); // the mode is 0700
  const stopWatching = removeOnSignals(folder);
  try {
    const manifest = await runInSnapshot(settings, options, async (snapshot, server): Promise<Manifest> => {
      const files = await exportAll(snapshot, sources, options, folder);
      return {
        workspace,
        ...(Object.keys(days).length > 0 && { days: { ...days, timeZone } }),
        snapshot: { server, ...snapshot.origin },
        files,
        ...(signing && { previous: signing.previous }),
      };
    });
    const text = Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`);
    await writeFile(join(folder, manifestName), text, { mode: 0o600 });
    if (signing) await writeFile(join(folder, `${manifestName}.sig`), sign(null, text, signing.key), { mode: 0o600 });
    await rename(folder, out); // replaces an empty folder
    return manifest;
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw explainError(error, options);
  } finally {
    stopWatching();
  }
}

export async function chooseResources(settings: Settings, names: readonly string[]): Promise<CompiledResource[]> {
  const ignore: Observe = () => undefined; // the records themselves name undecodable values
  const resources = loadResources(settings.resourcesDir);
  const knownNames = resources.map(({ name }) => name);
  const unknown = names.filter((name) => !knownNames.includes(name));
  const faults = unknown.map((name) => `There is no resource "${name}"${suggest(name, knownNames)}`);
  if (faults.length > 0) throw new ExportFailed(faults.join('\n'));
  const compiled = await compileResources(settings, resources, parseKeyring(settings.dataKeys || '{}'), ignore);
  return compiled.filter(({ resource }) => names.length === 0 || names.includes(resource.name));
}

/** Throws ExportFailed when the resource has no such filters, or a day is not valid. */
export function parsePeriod(
  compiled: CompiledResource,
  { timeZone, ...days }: Days & { timeZone: string },
): PeriodFilter {
  const dayTexts = new Map<string, string>(Object.entries(days));
  const rangeNames = compiled.filterRanges.flatMap(({ lower, upper }) => [lower, upper]);
  const missing = [...dayTexts.keys()].filter((name) => !rangeNames.includes(name));
  const faults: FieldError[] = [];
  const { filters, values } = parseFilters(compiled, { single: dayTexts, lists: new Map(), faults }, timeZone);
  if (missing.length > 0)
    throw new ExportFailed(
      `${compiled.resource.name} has no dates for --${missing.join(' and --')}. Name others by --resources.`,
    );
  if (faults.length > 0) throw new ExportFailed(faults.map(({ detail }) => `--${detail}`).join('\n'));
  return { filters: Object.keys(filters), values };
}

async function requireEmpty(out: string): Promise<void> {
  const entries = await readdir(out).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  if (entries.length > 0) throw new ExportFailed(`${out} is not empty. Give --out a folder that does not exist yet.`);
}

function removeOnSignals(folder: string): () => void {
  const end = (_: string, signal: number): void =>
    void rm(folder, { recursive: true, force: true }).finally(() => process.exit(128 + signal));
  process.once('SIGINT', end).once('SIGTERM', end);
  return () => void process.off('SIGINT', end).off('SIGTERM', end);
}

/** Goes on to the next server when one cannot be read for now. After the first statement of `work` it does not. */
export async function runInSnapshot<T>(
  settings: Settings,
  { workspace, server }: Pick<ExportOptions, 'workspace' | 'server'>,
  work: (snapshot: Snapshot, server: string) => Promise<T>,
): Promise<T> {
  const computeMac = makeWorkspaceMac(settings.wallKey);
  const login = { connectTimeoutMs: settings.connectTimeoutMs, session: listSessionSettings('replica', settings) };
  const setting = server === 'primary' ? 'PRIMARY_URLS' : 'REPLICA_URLS';
  const urls = listUrls(settings, server);
  if (urls.length === 0) throw new SettingsError(`${setting} is not set: the server from which to export.`);
  const failures: string[] = [];
  for (const url of urls) {
    let hasBegun = false;
    const begin = (snapshot: Snapshot): Promise<T> => {
      hasBegun = true;
      return work(snapshot, getServerName(url));
    };
    try {
      return await runWithSnapshot(url, () => computeMac(workspace as WorkspaceId), login, begin);
    } catch (error) {
      if (hasBegun || getDatabaseErrorKind(error) !== 'retry') throw error;
      failures.push(`${getServerName(url)}: ${getReason(error as Error)}`);
    }
  }
  throw new ExportFailed(`No server of ${setting} can be reached.\n  ${failures.join('\n  ')}`);
}

/** Replaces the login for writes, which sees less, by the login for replicas, which the primary also knows. */
function listUrls({ replicaUrls, primaryUrls }: Settings, server: ExportOptions['server']): readonly string[] {
  const replicas = splitList(replicaUrls);
  if (server === 'replica') return replicas;
  const reader = replicas[0] === undefined ? {} : pick(new URL(replicas[0]), 'username', 'password');
  return splitList(primaryUrls).map((url) => Object.assign(new URL(url), reader).href);
}

type ExportSource = PeriodFilter & { readonly compiled: CompiledResource };

async function exportAll(
  snapshot: Snapshot,
  sources: readonly ExportSource[],
  { workspace, gzip, onProgress }: ExportOptions,
  folder: string,
): Promise<ExportedFile[]> {
  const files: ExportedFile[] = [];
  for (const { compiled, ...period } of sources) {
    const onRecords = (records: number): void => onProgress(compiled.resource.name, records);
    files.push(await exportRecords(snapshot, compiled, { workspace, gzip, folder, onRecords, ...period }));
  }
  if (files.some(({ records }) => records > 0)) return files;
  for (const { compiled } of sources)
    for await (const _ of readBatches(snapshot, compiled, workspace, { filters: [], values: {} })) return files; // only days are empty
  const names = sources.map(({ compiled }) => compiled.resource.name).join(', ');
  throw new ExportFailed(
    `Workspace ${workspace} has no record of ${names}. Look at the id: \`tokens list\` shows those in use.`,
  );
}

const sentences: Readonly<Record<string, string>> = {
  '40001':
    'The replica cancelled the export, because it had to apply changes that the export still held back (conflict with recovery). Set hot_standby_feedback = on there, raise max_standby_streaming_delay, or give --server primary.',
  '22P02': 'The workspace is not an id of the form that the app uses. Give --workspace the id, not the name.',
  ENOSPC: 'The disk is full. Give --out a folder with more room, or add --gzip.',
};

function explainError(error: unknown, { out }: ExportOptions): Error {
  const { code = '', message } = error as { code?: string; message: string };
  const isLost = /^(57P|08)|^E(CONNRESET|PIPE)$/.test(code) || /^Connection terminated/.test(message);
  const sentence =
    sentences[code] ?? (isLost ? `The server ended the connection during the export (${message}).` : null);
  return sentence === null ? (error as Error) : new ExportFailed(`${sentence} Nothing was written to ${out}.`);
}
