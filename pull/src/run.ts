import { existsSync, mkdirSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { totalmem } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Api, getMember, makeApi, RefusedRequest, stripControls } from './api.js';
import { type ChangeFiles, openChangeFiles, skipChangeFiles } from './changes.js';
import { type Destination, OutOfMemory, type ResourceNotes, UnusableDestination } from './destination.js';
import type { Display } from './display.js';
import {
  getTimeZone,
  listResources,
  type OpenApiDocument,
  type Resource,
  refuseTwins,
  UnfitDocument,
} from './document.js';
import { canPass, describeError, isOfOneResource, ResourcesFailed } from './errors.js';
import { isDatabase, type Options, UsageError } from './options.js';
import { runPass } from './pass.js';
import { nameFile, replaceFile } from './sql/exports.js';

/** Passes over resources whose references lead nowhere, in one run. */
const danglingPassesMax = 3;
/** Share of the machine's memory that DuckDB may get when a copy does not fit into less. */
const memoryShareMax = 0.5;

/** Runs once, or with `--every` again: after each run the destination is closed, so that others can open it. */
export async function keepCopy(
  options: Options,
  screen: Display,
  signal: AbortSignal,
  firstPauseMs?: number,
): Promise<void> {
  const { everyMs } = options;
  for (let isReplaced = options.isReplaced, wasOpen = false, pauseMs = 1000; ; ) {
    try {
      // A client for each run: the token can be another one.
      const client = makeApi(`${options.base}/api/v1`, options.readToken, signal, screen.reportWait, firstPauseMs);
      await runOnce(client, { ...options, isReplaced }, screen, signal, () => {
        [wasOpen, isReplaced, pauseMs] = [true, false, 1000];
      });
      if (everyMs === null) return;
      await sleep(everyMs, undefined, { signal });
    } catch (error) {
      if (everyMs === null || signal.aborted) throw error;
      const isLater = error instanceof ResourcesFailed || (error instanceof RefusedRequest && error.status === 500);
      if (isLater) {
        screen.note((error as Error).message);
        await sleep(everyMs, undefined, { signal });
        continue;
      }
      if (!wasOpen || !canPass(error)) throw error;
      screen.reportWait(
        (error as Error).message.replace(/\.$/, ''),
        pauseMs,
        error instanceof UsageError ? 'token' : 'destination',
      );
      await sleep(pauseMs, undefined, { signal });
      pauseMs = Math.min(pauseMs * 2, 30_000);
    }
  }
}

/** Runs once, with more memory if DuckDB needs it. Opens the destination only after the gateway's answer: others can use it until then. */
async function runOnce(
  client: Api,
  options: Options,
  screen: Display,
  signal: AbortSignal,
  onClaimed: () => void,
): Promise<void> {
  // In each run, because a restarted gateway may have more members.
  const document = (await client.getJson('/openapi.json')) as OpenApiDocument;
  const token = (await client.getJson('/token')) as TokenInfo;
  const resources = chooseResources(document, token, options, screen);
  const tokenExpiresAt = typeof token.expiresAt === 'string' ? token.expiresAt : null;
  warnOfExpiry(tokenExpiresAt, screen);
  let { isReplaced } = options;
  const claim = async (destination: Destination): Promise<void> => {
    const timeZone = getTimeZone(document);
    await destination.claim(
      { workspaceId: token.workspaceId, base: options.base, tokenExpiresAt, timeZone },
      isReplaced,
    );
    isReplaced = false;
    onClaimed();
  };
  for (let memoryMb = memoryMbUsual; ; memoryMb *= 2) {
    const destination = await openDestination(options, memoryMb);
    try {
      await claim(destination);
      return await new Run(client, destination, resources, options, screen, signal).run();
    } catch (error) {
      if (!(error instanceof OutOfMemory)) throw error;
      if (memoryMb * 2 > (totalmem() / 2 ** 20) * memoryShareMax)
        throw new UnusableDestination(
          `The records do not fit into the memory of the destination: ${error.message.split('\n')[0]}`,
        );
      screen.note(`DuckDB gets ${memoryMb * 2} MB: the records do not fit into ${memoryMb} MB.`);
    } finally {
      await destination.close().catch(() => undefined);
    }
  }
}

/** An operator needs some days to get a new token. */
const expiryDaysMin = 7;

function warnOfExpiry(expiresAt: string | null, screen: Display): void {
  const leftMs = Date.parse(expiresAt ?? '') - Date.now();
  if (leftMs < expiryDaysMin * 86_400_000)
    screen.note(`The access token ends at ${stripControls(expiresAt ?? '')}: ask for a new one.`);
}

/** Memory of DuckDB's buffers; other needs come on top. */
const memoryMbUsual = 128;

async function openDestination({ to, schema, hasWorkspace }: Options, memoryMb: number): Promise<Destination> {
  if (isDatabase(to))
    return (await import('./sql/postgres.js')).openPostgresDestination(to, schema, hasWorkspace, memoryMb);
  return (await import('./sql/duckdb.js')).openDuckdbDestination(to, hasWorkspace, memoryMb);
}

/** The steps of a run: a pass of each resource → records that refer to deleted ones again → the files. Each resource can fail alone. */
class Run {
  readonly #failed = new Set<Resource>();

  constructor(
    private readonly client: Api,
    private readonly destination: Destination,
    private readonly resources: readonly Resource[],
    private readonly options: Options,
    private readonly screen: Display,
    private readonly signal: AbortSignal,
  ) {}

  /** Throws ResourcesFailed once everything else is done. */
  async run(): Promise<void> {
    const { changesTo, exportTo, dbtTo } = this.options;
    const known = await this.destination.readNotes();
    await this.#noteGaps(known);
    // Finds a table that is not its own before it reads.
    for (const resource of this.resources)
      await this.#runApart(resource, known.size > 0, () => this.#noteGone(resource));
    const opened = this.resources.filter((resource) => !this.#failed.has(resource));
    const changes =
      changesTo === null
        ? skipChangeFiles(this.destination.changeFiles)
        : await openChangeFiles(changesTo, this.destination.changeFiles);
    await this.#runPasses(opened, changes);
    await this.#settleReferences(opened, changes, known);
    if (exportTo !== null) await this.#export(opened, exportTo, known);
    if (dbtTo !== null) await this.#exportDbt(opened, dbtTo);
    if (this.#failed.size > 0)
      throw new ResourcesFailed(`Not brought up to date: ${[...this.#failed].map(({ name }) => name).join(', ')}.`);
  }

  /** Does something for a resource. If only that fails, it is noted, and the others go on. */
  async #runApart(resource: Resource, isApart: boolean, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (!isApart || this.signal.aborted || !isOfOneResource(error)) throw error;
      const reason = describeError(error);
      this.#failed.add(resource);
      this.screen.note(`${resource.name}: ${reason}`);
      await this.destination.noteFailure(resource.name, reason);
    }
  }

  async #runPasses(resources: readonly Resource[], changes: ChangeFiles): Promise<void> {
    const { verify, allowDeletions, isReplaced } = this.options;
    const { note, onPage, reportPass } = this.screen;
    const deps = { api: this.client, changes, note, ...(onPage && { onPage }) };
    for (const resource of resources)
      await this.#runApart(resource, true, async () => {
        const copy = await this.destination.open(resource);
        if (verify && copy.progress.since === null) note(`There is no whole copy of ${resource.name} yet: it is read.`);
        reportPass(await runPass(deps, copy, resource, { verify, allowDeletions: allowDeletions || isReplaced }));
      });
  }

  /** Notes what this run leaves out and an earlier one had. */
  async #noteGaps(known: ReadonlyMap<string, ResourceNotes>): Promise<void> {
    const { resources, changesTo } = this.options;
    const old = [...known.keys()].filter((copy) => !this.resources.some(({ name }) => name === copy));
    if (resources === null && old.length > 0) {
      this.screen.note(
        `No longer brought up to date, as the gateway does not give it to this token: ${old.join(', ')}.`,
      );
      for (const name of old) await this.destination.noteFailure(name, 'The gateway does not give it to this token.');
    }
    if (changesTo === null && this.destination.changeFiles > 0)
      this.screen.note('The changes of this run are in no file: an earlier run had --changes.');
  }

  async #noteGone(resource: Resource): Promise<void> {
    const { gone } = await this.destination.open(resource);
    if (gone.length > 0)
      this.screen.note(
        `The API no longer has ${gone.join(', ')}: what the copy has of it is no longer brought up to date.`,
      );
  }

  /**
   * Reads records again whose references lead nowhere, because a record can be deleted between two passes. References that lead nowhere
   * after that, and did so after the run before, lead to records that the gateway hides.
   */
  async #settleReferences(
    resources: readonly Resource[],
    changes: ChangeFiles,
    known: ReadonlyMap<string, ResourceNotes>,
  ): Promise<void> {
    let before = new Map([...known].map(([name, { dangling }]) => [name, dangling]));
    let dangling = await this.destination.findDangling(resources);
    for (let again = 0; again < danglingPassesMax; again++) {
      const fresh = resources.filter((resource) => {
        const { count = 0, digest = '' } = dangling.get(resource.name) ?? {};
        return count > 0 && digest !== before.get(resource.name) && !this.#failed.has(resource);
      });
      if (fresh.length === 0) break;
      await this.#runPasses(fresh, changes);
      before = new Map([...dangling].map(([name, { digest }]) => [name, digest]));
      dangling = await this.destination.findDangling(resources);
    }
    await this.destination.noteDangling(dangling);
    for (const [name, { count }] of dangling)
      if (count > 0) this.screen.note(`${name}: ${count} references lead to records that the gateway does not show.`);
  }

  async #export(
    resources: readonly Resource[],
    folder: string,
    known: ReadonlyMap<string, ResourceNotes>,
  ): Promise<void> {
    const { format } = this.options;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const written = new Set<string>();
    for (const resource of resources.filter((each) => !this.#failed.has(each)))
      await this.#runApart(resource, true, async () => {
        this.signal.throwIfAborted();
        await this.destination.export(resource, folder, format);
        for (const { name } of [resource.table, ...resource.parts]) written.add(name);
      });
    const old = [...known.values()].flatMap(({ tables }) => tables).filter((table) => !written.has(table));
    const files = old.map((table) => join(folder, nameFile(table, format))).filter((file) => existsSync(file));
    if (files.length > 0) this.screen.note(`Of an earlier run, and not written by this one: ${files.join(', ')}.`);
  }

  async #exportDbt(resources: readonly Resource[], file: string): Promise<void> {
    const { to, schema, hasWorkspace } = this.options;
    const { composeDbtSources: dbtSources } = await import('./sql/dbt.js');
    const text = dbtSources(resources, isDatabase(to) ? schema : 'main', hasWorkspace);
    await mkdir(dirname(file), { recursive: true });
    await replaceFile(dirname(file), basename(file), (part) => writeFile(part, text));
  }
}

interface TokenInfo {
  readonly workspaceId: string;
  readonly scopes: readonly string[];
  readonly expiresAt?: unknown;
}

/** Takes the resources that the token may read if `--resources` is absent, and names the others. */
function chooseResources(
  document: OpenApiDocument,
  token: TokenInfo,
  { resources, hasWorkspace }: Options,
  screen: Display,
): Resource[] {
  const all = listResources(document, { hasWorkspace });
  if (all.length === 0)
    throw new UnfitDocument(
      'The server at --base describes no resource that can be copied: give the address of a workspace data gateway.',
    );
  const scopes = getMember<string[]>(token, 'scopes');
  const unknown = resources?.filter((name) => !all.some((each) => each.name === name)) ?? [];
  if (unknown.length > 0)
    throw new UsageError(
      `There is no sync of ${unknown.join(', ')}; there is of ${all.map(({ name }) => name).join(', ')}.`,
    );
  const isChosen = ({ name }: Resource): boolean =>
    resources === null ? scopes.includes(`read:${name}`) : resources.includes(name);
  const [chosen, others] = [all.filter(isChosen), all.filter((each) => !isChosen(each))];
  if (chosen.length === 0) throw new RefusedRequest(403, 'The token may read no resource: it needs read:RESOURCE.');
  if (resources === null && others.length > 0)
    screen.note(`Not copied, as the token lacks the scope: ${others.map(({ name }) => name).join(', ')}.`);
  refuseTwins(chosen);
  return chosen;
}
