import { type Api, getMember, Refused } from './api.js';
import type { ChangeFile, ChangeFiles } from './changes.js';
import { type Copy, type Groups, OutOfMemory, type Progress, Widened } from './destination.js';
import type { Resource } from './document.js';
import { PageText } from './json-text.js';

export interface PassReport {
  readonly resource: string;
  /** True if the pass read everything. */
  readonly whole: boolean;
  readonly pages: number;
  readonly records: number;
  /** Records that the gateway no longer has. */
  readonly deleted: number;
  /** Records that the digest showed as missing or in another version, and that were read again. */
  readonly repaired: number;
  readonly seconds: number;
}

/** The progress of a pass, after each page. `recordsLeft` is null in a pass over changes, for which the gateway cannot say it. */
export interface PassProgress {
  readonly resource: string;
  readonly records: number;
  readonly recordsLeft: number | null;
}

export interface PassDeps {
  readonly api: Api;
  readonly changes: ChangeFiles;
  readonly onPage?: (progress: PassProgress) => void;
  readonly note: (sentence: string) => void;
}

export interface PassOptions {
  /** Compares the content of all records first. */
  readonly verify: boolean;
  /** Deletes all records that the gateway no longer has, however many. */
  readonly allowDeletions: boolean;
}

interface Pagination {
  readonly nextCursor: string | null;
  readonly since: string | null;
}

/** Bounds of a request to the gateway: a hundred prefixes and 100,000 ids. */
const prefixesPerRequest = 100;
const idsPerRequest = 50_000;
const groupDigits = 3;
/** If a larger share of the groups differs, a pass over everything is cheaper. */
const differingShareMax = 0.25;
/** A run that would delete more than half of at least this many records stops. */
const guardedRecordsMin = 100;
/** Statuses of a lost cursor or token: of another timeline (410), or damaged (400). */
const lost: ReadonlySet<number> = new Set([400, 410]);

/** Losses of a token or cursor in one run, at most: a failover causes one. */
const lossesMax = 3;

const beginning: Progress = { since: null, cursor: null };

/** Brings the copy of a resource up to date, from its progress on, and compares it. With `verify` it compares before it reads. */
export async function runPass(
  deps: PassDeps,
  copy: Copy,
  resource: Resource,
  options: PassOptions = { verify: false, allowDeletions: false },
): Promise<PassReport> {
  const startedMs = performance.now();
  const reader = new Reader(deps, copy, resource, options);
  await reader.begin();
  if (options.verify) await copy.recheck();
  let progress = copy.progress;
  let isRead = options.verify && progress.since !== null;
  let whole = progress.since === null;
  for (;;) {
    const since = isRead ? progress.since : await reader.pages(progress);
    isRead = false;
    if (since !== null) await copy.noteUpdated();
    const compared = since === null ? null : await reader.orNull(reader.compare(since, whole));
    if (compared === null || compared === 'differs') {
      [progress, whole] = [beginning, true];
      continue;
    }
    await copy.finish({ dataAsOf: compared.dataAsOf, isVerified: options.verify || whole });
    const seconds = Math.round(performance.now() - startedMs) / 1000;
    const { deleted, repaired } = compared;
    return { resource: resource.name, whole, ...reader.counts, deleted, repaired, seconds };
  }
}

interface Comparison {
  readonly deleted: number;
  readonly repaired: number;
  readonly dataAsOf: string | null;
}

class Reader {
  readonly #deps: PassDeps;
  readonly #copy: Copy;
  readonly #resource: Resource;
  readonly #path: string;
  readonly #allowDeletions: boolean;
  #perPage: number;
  #recordsBefore = 0;
  #counts = { pages: 0, records: 0 };
  #losses = 0;

  constructor(deps: PassDeps, copy: Copy, resource: Resource, { allowDeletions }: PassOptions) {
    [this.#deps, this.#copy, this.#resource, this.#allowDeletions] = [deps, copy, resource, allowDeletions];
    this.#path = `/sync/${resource.name}`;
    this.#perPage = resource.perPageMax;
  }

  get counts(): { readonly pages: number; readonly records: number } {
    return this.#counts;
  }

  async begin(): Promise<void> {
    this.#recordsBefore = countIn(await this.#copy.digest(0));
  }

  /** Resolves with null if the gateway no longer knows the history of a token, as after a failover, or the token is damaged. */
  orNull<T>(asked: Promise<T>): Promise<T | null> {
    return asked.catch((error: unknown) => {
      if (error instanceof Refused && lost.has(error.status) && ++this.#losses <= lossesMax) return null;
      throw error;
    });
  }

  /** Reads the pages of a pass from `from` on. Returns its token for changes, or null if the cursor is lost. */
  async pages(from: Progress): Promise<string | null> {
    let left: number | null = null;
    if (from.since === null && this.#deps.onPage) left = await this.#recordsLeft(from.cursor);
    const begin = from.since === null ? '' : `&since=${encodeURIComponent(from.since)}`;
    let query = from.cursor === null ? begin : `&cursor=${encodeURIComponent(from.cursor)}`;
    for (;;) {
      const page = await this.orNull(
        this.#page(query, ({ nextCursor, since }) => ({ since: since ?? from.since, cursor: nextCursor })),
      ).catch((error: unknown) => {
        if (!(error instanceof Widened)) throw error;
        this.#deps.note(`${this.#resource.name} is read again: ${error.message}.`);
        return null;
      });
      if (page === null) return null;
      this.#counts.pages++;
      this.#counts.records += page.stored;
      if (left !== null) left = Math.max(0, left - page.stored);
      this.#deps.onPage?.({ resource: this.#resource.name, records: this.#counts.records, recordsLeft: left });
      if (page.nextCursor === null) return page.since;
      query = `&cursor=${encodeURIComponent(page.nextCursor)}`;
    }
  }

  /**
   * Compares ids and versions with the gateway's by group: deletes missing records, and reads new and changed ones. Only asks replicas at
   * least as current as the token: on an older one, new records would look deleted.
   */
  async compare(since: string, isWhole: boolean): Promise<Comparison | 'differs'> {
    const { groups: all, dataAsOf } = await this.#theirs(0, since);
    if (isSame(all, await this.#copy.digest(0))) return { deleted: 0, repaired: 0, dataAsOf };
    const { groups: theirs } = await this.#theirs(groupDigits, since);
    const ours = await this.#copy.digest(groupDigits);
    const prefixes = [...new Set([...theirs.keys(), ...ours.keys()])].filter(
      (each) => theirs.get(each) !== ours.get(each),
    );
    const countMax = [...theirs.values()].reduce((max, digest) => Math.max(max, Number.parseInt(digest, 10)), 1);
    const perRequest = Math.max(1, Math.min(prefixesPerRequest, Math.floor(idsPerRequest / countMax)));
    const queries: (readonly string[])[] = [];
    for (let i = 0; i < prefixes.length; i += perRequest) queries.push(prefixes.slice(i, i + perRequest));
    const inQuestion = prefixes.reduce((sum, prefix) => sum + Number.parseInt(ours.get(prefix) ?? '0', 10), 0);
    await this.#guard(queries, since, inQuestion);
    if (!isWhole && countMax > 10 && prefixes.length > differingShareMax * theirs.size) return 'differs';
    let [deleted, repaired] = [0, 0];
    for (const some of queries) {
      const { gone, stale } = await this.#difference(some, since);
      if (gone.length > 0) await this.#delete(gone, since);
      if (stale > 0) await this.#groups(some, since);
      [deleted, repaired] = [deleted + gone.length, repaired + stale];
    }
    return { deleted, repaired, dataAsOf };
  }

  /** Throws Refused if more than half of the records would be deleted, because the fault is then rather at the gateway. */
  async #guard(queries: readonly (readonly string[])[], since: string, inQuestion: number): Promise<void> {
    const before = this.#recordsBefore;
    if (this.#allowDeletions || before <= guardedRecordsMin || inQuestion <= before / 2) return;
    let gone = 0;
    for (const prefixes of queries) gone += (await this.#difference(prefixes, since)).gone.length;
    if (gone > before / 2)
      throw new Refused(
        0,
        `The gateway no longer has ${gone} of the ${before} records of ${this.#resource.name}. None was deleted here: ` +
          'see whether they are really gone, then run with --allow-deletions.',
      );
  }

  /** Returns the ids of some groups that the gateway no longer has, and the number of those that it has in another version. */
  async #difference(prefixes: readonly string[], since: string): Promise<{ gone: string[]; stale: number }> {
    const answer = await this.#deps.api.json(`${this.#path}/ids?${composeQuery(prefixes, since)}`);
    const data = getMember<{ id: string; syncVersion: string }[]>(answer, 'data');
    const here = await this.#copy.versions(prefixes);
    const present = new Set(data.map(({ id }) => id));
    return {
      gone: [...here.keys()].filter((id) => !present.has(id)),
      stale: data.filter(({ id, syncVersion }) => here.get(id) !== syncVersion).length,
    };
  }

  /** Reads every record of some groups. */
  async #groups(prefixes: readonly string[], since: string): Promise<void> {
    for (let from = composeQuery(prefixes, since); ; ) {
      const { nextCursor } = await this.#page(`&${from}`, () => ({ since, cursor: null }));
      if (nextCursor === null) return;
      from = `prefix=${prefixes.join(',')}&cursor=${encodeURIComponent(nextCursor)}`;
    }
  }

  /** Stores a page as it comes: once more from its beginning when it breaks off, and half of it when it does not fit into memory. */
  async #page(
    query: string,
    progress: (pagination: Pagination) => Progress,
  ): Promise<Pagination & { readonly stored: number }> {
    for (;;) {
      const read = { records: 0 };
      try {
        return await this.#deps.api.stream(`${this.#path}?perPage=${this.#perPage}${query}`, async (chunks) => {
          const page = new PageText(chunks, this.#perPage);
          const pagination = (): Pagination => getMember(page.membersAfterRecords(), 'pagination');
          const stored = await this.#inFile((file) =>
            this.#copy.store(noteRecord(page.slices(), file, read), async () => ({
              ...progress(pagination()),
              changeFiles: await file.seal(),
            })),
          );
          return { ...pagination(), stored };
        });
      } catch (error) {
        if (!(error instanceof OutOfMemory) || error.isBroken || this.#perPage === 1) throw error;
        this.#perPage = Math.ceil(Math.min(this.#perPage, Math.max(1, read.records)) / 2);
      }
    }
  }

  async #delete(ids: readonly string[], since: string): Promise<void> {
    await this.#inFile(async (file) => {
      await file.deletes(ids);
      await this.#copy.delete(ids, async () => ({ since, cursor: null, changeFiles: await file.seal() }));
    });
  }

  /** Runs a transaction that has a change file. */
  async #inFile<T>(transaction: (file: ChangeFile) => Promise<T>): Promise<T> {
    const file = this.#deps.changes.open(this.#resource.name);
    try {
      const result = await transaction(file);
      file.committed();
      return result;
    } finally {
      await file.close();
    }
  }

  async #theirs(depth: number, since: string | null): Promise<{ groups: Groups; dataAsOf: string | null }> {
    const of = since === null ? '' : `&since=${encodeURIComponent(since)}`;
    const { body, dataAsOf } = await this.#deps.api.dated(`${this.#path}/digest?depth=${depth}${of}`);
    const data = getMember<{ prefix: string; count: number; hash: string }[]>(body, 'data');
    return { groups: new Map(data.map(({ prefix, count, hash }) => [prefix, `${count} ${hash}`])), dataAsOf };
  }

  /** Estimates how many records a pass over everything will bring. */
  async #recordsLeft(cursor: string | null): Promise<number> {
    const { groups } = await this.#theirs(0, null);
    return Math.max(0, countIn(groups) - (cursor === null ? 0 : countIn(await this.#copy.digest(0))));
  }
}

const countIn = (groups: Groups): number => Number.parseInt(groups.get('') ?? '0', 10);

const composeQuery = (prefixes: readonly string[], since: string): string =>
  `prefix=${prefixes.join(',')}&since=${encodeURIComponent(since)}`;

function isSame(one: Groups, other: Groups): boolean {
  return (one.get('') ?? '0') === (other.get('') ?? '0');
}

/** Also writes each slice into the file, and counts it. */
async function* noteRecord(
  slices: AsyncIterable<string[]>,
  file: ChangeFile,
  read: { records: number },
): AsyncGenerator<string[]> {
  read.records = 0;
  for await (const slice of slices) {
    read.records += slice.length;
    await file.upserts(slice);
    yield slice;
  }
}
