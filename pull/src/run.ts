import { mkdirSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { totalmem } from 'node:os';
import { basename, dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Api, api, memberOf, Refused } from './api.js';
import { changeFiles, noChangeFiles } from './changes.js';
import { type Destination, OutOfMemory, Unusable } from './destination.js';
import type { Display } from './display.js';
import { type OpenApiDocument, type Resource, refuseTwins, resourcesOf, UnfitDocument } from './document.js';
import { isDatabase, type Options, UsageError } from './options.js';
import { pass } from './pass.js';

/** Passes over resources whose references lead nowhere, in one run. */
const danglingPassesMax = 3;
/** Share of the memory of the machine that DuckDB may get when a copy does not fit into less. */
const memoryShareMax = 0.5;

/** Runs, and with `--every` again: after each the destination is closed, so that others can open it. */
export async function keepCopy(options: Options, screen: Display, signal: AbortSignal): Promise<void> {
  const client = api(`${options.base}/api/v1`, options.token, signal, screen.waiting);
  const { everyMs } = options;
  for (let isReplaced = options.isReplaced, wasOpen = false, pauseMs = 1000; ; ) {
    try {
      await runOnce(client, { ...options, isReplaced }, screen, signal, () => {
        [wasOpen, isReplaced, pauseMs] = [true, false, 1000];
      });
      if (everyMs === null) return;
      await sleep(everyMs, undefined, { signal });
    } catch (error) {
      const canPass = error instanceof Unusable ? error.canPass : isLostConnection(error);
      if (everyMs === null || !wasOpen || !canPass) throw error;
      screen.waiting((error as Error).message, pauseMs, 'destination');
      await sleep(pauseMs, undefined, { signal });
      pauseMs = Math.min(pauseMs * 2, 30_000);
    }
  }
}

/**
 * A run, with more memory where DuckDB cannot do with less. The destination is opened once the gateway has answered: until then others can use it.
 */
async function runOnce(
  client: Api,
  options: Options,
  screen: Display,
  signal: AbortSignal,
  onClaimed: () => void,
): Promise<void> {
  // Asked in each run: a gateway that was started again may have further members.
  const document = (await client.json('/openapi.json')) as OpenApiDocument;
  const token = (await client.json('/token')) as TokenInfo;
  const resources = chosenOf(document, token, options, screen);
  let { isReplaced } = options;
  const claim = async (destination: Destination): Promise<void> => {
    await destination.claim({ workspaceId: token.workspaceId, base: options.base }, isReplaced);
    isReplaced = false;
    onClaimed();
  };
  for (let memoryMb = memoryMbUsual; ; memoryMb *= 2) {
    const destination = await openDestination(options, memoryMb);
    try {
      await claim(destination);
      return await run(client, destination, resources, options, screen, signal);
    } catch (error) {
      if (!(error instanceof OutOfMemory)) throw error;
      if (memoryMb * 2 > (totalmem() / 2 ** 20) * memoryShareMax)
        throw new Unusable(
          `The records do not fit into the memory of the destination: ${error.message.split('\n')[0]}`,
        );
      screen.note(`DuckDB gets ${memoryMb * 2} MB: the records do not fit into ${memoryMb} MB.`);
    } finally {
      await destination.close().catch(() => undefined);
    }
  }
}

/** Megabytes that DuckDB gives its buffers; what it needs beside them comes on top. */
const memoryMbUsual = 128;

async function openDestination({ to, schema, hasWorkspace }: Options, memoryMb: number): Promise<Destination> {
  if (isDatabase(to))
    return (await import('./sql/postgres.js')).postgresDestination(to, schema, hasWorkspace, memoryMb);
  return (await import('./sql/duckdb.js')).duckdbDestination(to, hasWorkspace, memoryMb);
}

/** The path of a run: a pass of each resource → what refers to deleted records again → the files. */
async function run(
  client: Api,
  destination: Destination,
  resources: readonly Resource[],
  options: Options,
  screen: Display,
  signal: AbortSignal,
): Promise<void> {
  const { verify, allowDeletions, exportTo, changesTo, dbtTo } = options;
  await nameGaps(destination, resources, options, screen);
  for (const resource of resources) await destination.open(resource); // names a table that is not its own before it reads
  const changes =
    changesTo === null ? noChangeFiles(destination.changeFiles) : await changeFiles(changesTo, destination.changeFiles);
  const deps = { api: client, changes, note: screen.note, ...(screen.onPage && { onPage: screen.onPage }) };
  const passOver = async (some: readonly Resource[]): Promise<void> => {
    for (const resource of some) {
      const copy = await destination.open(resource);
      if (verify && copy.progress.since === null)
        screen.note(`There is no whole copy of ${resource.name} yet: it is read.`);
      screen.passed(await pass(deps, copy, resource, { verify, allowDeletions }));
    }
  };
  await passOver(resources);
  await settleReferences(destination, resources, passOver, screen);
  if (exportTo !== null) {
    mkdirSync(exportTo, { recursive: true, mode: 0o700 });
    for (const resource of resources) {
      signal.throwIfAborted();
      await destination.export(resource, exportTo, options.format);
    }
  }
  if (dbtTo !== null) {
    const { dbtSources } = await import('./sql/dbt.js');
    const { replaceFile } = await import('./sql/exports.js');
    const text = dbtSources(resources, isDatabase(options.to) ? options.schema : 'main', options.hasWorkspace);
    await mkdir(dirname(dbtTo), { recursive: true });
    await replaceFile(dirname(dbtTo), basename(dbtTo), (part) => writeFile(part, text));
  }
}

/** Says what a run leaves out that an earlier one had. */
async function nameGaps(
  destination: Destination,
  chosen: readonly Resource[],
  { resources, changesTo }: Options,
  screen: Display,
): Promise<void> {
  const copied = [...(await destination.knownDangling()).keys()];
  const old = copied.filter((copy) => !chosen.some(({ name }) => name === copy));
  if (resources === null && old.length > 0)
    screen.note(`No longer brought up to date, as the gateway does not give it to this token: ${old.join(', ')}.`);
  if (changesTo === null && destination.changeFiles > 0)
    screen.note('The changes of this run are in no file: an earlier run had --changes.');
}

/**
 * A record that was deleted between two passes can be missing to one that was read before: what refers to it is read again. References that
 * lead nowhere after that, as they did after the run before, lead to records that the gateway hides.
 */
async function settleReferences(
  destination: Destination,
  resources: readonly Resource[],
  passOver: (some: readonly Resource[]) => Promise<void>,
  screen: Display,
): Promise<void> {
  let known = await destination.knownDangling();
  let found = await destination.dangling(resources);
  for (let again = 0; again < danglingPassesMax; again++) {
    const fresh = resources.filter(({ name }) => {
      const { count = 0, digest = '' } = found.get(name) ?? {};
      return count > 0 && digest !== known.get(name);
    });
    if (fresh.length === 0) break;
    await passOver(fresh);
    known = new Map([...found].map(([name, { digest }]) => [name, digest]));
    found = await destination.dangling(resources);
  }
  await destination.noteDangling(found);
  for (const [name, { count }] of found)
    if (count > 0) screen.note(`${name}: ${count} references lead to records that the gateway does not show.`);
}

interface TokenInfo {
  readonly workspaceId: string;
  readonly scopes: readonly string[];
}

/** The resources to copy. Without `--resources`: those that the token may read; the others are named. */
function chosenOf(
  document: OpenApiDocument,
  token: TokenInfo,
  { resources, hasWorkspace }: Options,
  screen: Display,
): Resource[] {
  const all = resourcesOf(document, { hasWorkspace });
  if (all.length === 0)
    throw new UnfitDocument(
      'The server at --base describes no resource that can be copied: give the address of a workspace data gateway.',
    );
  const scopes = memberOf<string[]>(token, 'scopes');
  const unknown = resources?.filter((name) => !all.some((each) => each.name === name)) ?? [];
  if (unknown.length > 0)
    throw new UsageError(
      `There is no sync of ${unknown.join(', ')}; there is of ${all.map(({ name }) => name).join(', ')}.`,
    );
  const isChosen = ({ name }: Resource): boolean =>
    resources === null ? scopes.includes(`read:${name}`) : resources.includes(name);
  const [chosen, others] = [all.filter(isChosen), all.filter((each) => !isChosen(each))];
  if (chosen.length === 0) throw new Refused(403, 'The token may read no resource: it needs read:RESOURCE.');
  if (resources === null && others.length > 0)
    screen.note(`Not copied, as the token lacks the scope: ${others.map(({ name }) => name).join(', ')}.`);
  refuseTwins(chosen);
  return chosen;
}

/** A lost connection, a conflict, no free connection, a stop or a start (PostgreSQL, Appendix A); not a full disk. */
export function isLostConnection(error: unknown): boolean {
  const { code, message } = error as { code?: string; message?: string };
  if (code !== undefined && /^[0-9A-Z]{5}$/.test(code) && !code.startsWith('E'))
    return /^(08|40|53300|57P0[123])/.test(code);
  return (
    /^(ECONN|EPIPE|ETIMEDOUT|EHOST|ENET|ENOTFOUND|EAI_)/.test(String(code)) ||
    /Connection terminated|connection error/.test(message ?? '')
  );
}
