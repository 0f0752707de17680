import { type Api, getMember, RefusedRequest } from './api.js';
import type { ChangeFile, ChangeFiles } from './changes.js';
import { ColumnWidened, type Copy, type Groups, OutOfMemory, type Progress } from './destination.js';
import type { Resource } from './document.js';
import { PageText } from './json-text.js';

// Example: the last pass over the copy of klanten ended with the token T7, and one record has been deleted since.
//   GET /sync/klanten?since=T7                 brings 40 changed records, which are stored page by page with the cursor, and the token T8.
//   GET /sync/klanten/digest?depth=0&since=T8  gives count and hash of all ids and versions: the copy has one record more.
//   GET /sync/klanten/digest?depth=3&since=T8  gives them by the first three digits of the SHA-256 of the id: the group a3f differs.
//   GET /sync/klanten/ids?prefix=a3f&since=T8  names ids and versions of the group: the copy deletes the record that is missing there.
// If versions of the group differed, GET /sync/klanten?prefix=a3f&since=T8 would read it again. If more than a quarter of the groups
// differ, everything is read again.

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
const lostStatuses: ReadonlySet<number> = new Set([400, 410]);

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
  await reader.countRecordsBefore();
  if (options.verify) await copy.verifyHashes();
  let progress = copy.progress;
  let isRead = options.verify && progress.since !== null;
  let isWhole = progress.since === null;
  for (;;) {
    const since = isRead ? progress.since : await reader.readPages(progress);
    isRead = false;
    if (since !== null) await copy.noteUpdated();
    const compared = since === null ? null : await reader.catchLoss(reader.compare(since, isWhole));
    if (compared === null || compared === 'differs') {
      [progress, isWhole] = [beginning, true];
      continue;
    }
    await copy.finish({ dataAsOf: compared.dataAsOf, isVerified: options.verify || isWhole });
    const seconds = Math.round(performance.now() - startedMs) / 1000;
    const { deleted, repaired } = compared;
    return { resource: resource.name, whole: isWhole, ...reader.counts, deleted, repaired, seconds };
  }
}

interface Comparison {
  readonly deleted: number;
  readonly repaired: number;
  readonly dataAsOf: string | null;
}

class Reader {
  readonly #path: string;
  #perPage: number;
  #recordsBefore = 0;
  #counts = { pages: 0, records: 0 };
  #losses = 0;

  constructor(
    private readonly deps: PassDeps,
    private readonly copy: Copy,
    private readonly resource: Resource,
    private readonly options: PassOptions,
  ) {
    this.#path = `/sync/${resource.name}`;
    this.#perPage = resource.perPageMax;
  }

  get counts(): { readonly pages: number; readonly records: number } {
    return this.#counts;
  }

  async countRecordsBefore(): Promise<void> {
    this.#recordsBefore = countRecords(await this.copy.readDigest(0));
  }

  /** Resolves with null if the gateway no longer knows the history of a token, as after a failover, or the token is damaged. */
  catchLoss<T>(asked: Promise<T>): Promise<T | null> {
    return asked.catch((error: unknown) => {
      if (error instanceof RefusedRequest && lostStatuses.has(error.status) && ++this.#losses <= lossesMax) return null;
      throw error;
    });
  }

  /** Reads the pages of a pass from `from` on. Returns its token for changes, or null if the cursor is lost. */
  async readPages(from: Progress): Promise<string | null> {
    let left: number | null = null;
    if (from.since === null && this.deps.onPage) left = await this.#estimateRecordsLeft(from.cursor);
    const begin = from.since === null ? '' : `&since=${encodeURIComponent(from.since)}`;
    let query = from.cursor === null ? begin : `&cursor=${encodeURIComponent(from.cursor)}`;
    for (;;) {
      const page = await this.catchLoss(
        this.#storePage(query, ({ nextCursor, since }) => ({ since: since ?? from.since, cursor: nextCursor })),
      ).catch((error: unknown) => {
        if (!(error instanceof ColumnWidened)) throw error;
        this.deps.note(`${this.resource.name} is read again: ${error.message}.`);
        return null;
      });
      if (page === null) return null;
      this.#counts.pages++;
      this.#counts.records += page.stored;
      if (left !== null) left = Math.max(0, left - page.stored);
      this.deps.onPage?.({ resource: this.resource.name, records: this.#counts.records, recordsLeft: left });
      if (page.nextCursor === null) return page.since;
      query = `&cursor=${encodeURIComponent(page.nextCursor)}`;
    }
  }

  /**
   * Compares ids and versions with the gateway's by group: deletes missing records, and reads new and changed ones. Only asks replicas at
   * least as current as the token: on an older one, new records would look deleted.
   */
  async compare(since: string, isWhole: boolean): Promise<Comparison | 'differs'> {
    const { groups: all, dataAsOf } = await this.#readTheirDigest(0, since);
    if (isSameDigest(all, await this.copy.readDigest(0))) return { deleted: 0, repaired: 0, dataAsOf };
    const { groups: theirs } = await this.#readTheirDigest(groupDigits, since);
    const ours = await this.copy.readDigest(groupDigits);
    const differing = [...new Set([...theirs.keys(), ...ours.keys()])].filter(
      (each) => theirs.get(each) !== ours.get(each),
    );
    const countMax = [...theirs.values()].reduce((max, digest) => Math.max(max, Number.parseInt(digest, 10)), 1);
    const perRequest = Math.max(1, Math.min(prefixesPerRequest, Math.floor(idsPerRequest / countMax)));
    const queries: (readonly string[])[] = [];
    for (let i = 0; i < differing.length; i += perRequest) queries.push(differing.slice(i, i + perRequest));
    const recordsInQuestion = differing.reduce((sum, prefix) => sum + Number.parseInt(ours.get(prefix) ?? '0', 10), 0);
    await this.#refuseManyDeletions(queries, since, recordsInQuestion);
    if (!isWhole && countMax > 10 && differing.length > differingShareMax * theirs.size) return 'differs';
    let [deleted, repaired] = [0, 0];
    for (const prefixes of queries) {
      const { gone, stale } = await this.#findDifference(prefixes, since);
      if (gone.length > 0) await this.#delete(gone, since);
      if (stale > 0) await this.#readGroups(prefixes, since);
      [deleted, repaired] = [deleted + gone.length, repaired + stale];
    }
    return { deleted, repaired, dataAsOf };
  }

  /** Throws Refused if more than half of the records would be deleted, because the fault is then rather at the gateway. */
  async #refuseManyDeletions(
    queries: readonly (readonly string[])[],
    since: string,
    recordsInQuestion: number,
  ): Promise<void> {
    const before = this.#recordsBefore;
    if (this.options.allowDeletions || before <= guardedRecordsMin || recordsInQuestion <= before / 2) return;
    let gone = 0;
    for (const prefixes of queries) gone += (await this.#findDifference(prefixes, since)).gone.length;
    if (gone > before / 2)
      throw new RefusedRequest(
        0,
        `The gateway no longer has ${gone} of the ${before} records of ${this.resource.name}. None was deleted here: ` +
          'see whether they are really gone, then run with --allow-deletions.',
      );
  }

  /** Returns the ids of some groups that the gateway no longer has, and the number of those that it has in another version. */
  async #findDifference(prefixes: readonly string[], since: string): Promise<{ gone: string[]; stale: number }> {
    const answer = await this.deps.api.getJson(`${this.#path}/ids?${composeQuery(prefixes, since)}`);
    const data = getMember<{ id: string; syncVersion: string }[]>(answer, 'data');
    const here = await this.copy.readVersions(prefixes);
    const present = new Set(data.map(({ id }) => id));
    return {
      gone: [...here.keys()].filter((id) => !present.has(id)),
      stale: data.filter(({ id, syncVersion }) => here.get(id) !== syncVersion).length,
    };
  }

  /** Reads every record of some groups. */
  async #readGroups(prefixes: readonly string[], since: string): Promise<void> {
    for (let from = composeQuery(prefixes, since); ; ) {
      const { nextCursor } = await this.#storePage(`&${from}`, () => ({ since, cursor: null }));
      if (nextCursor === null) return;
      from = `prefix=${prefixes.join(',')}&cursor=${encodeURIComponent(nextCursor)}`;
    }
  }

  /** Stores a page as it comes: once more from its beginning when it breaks off, and half of it when it does not fit into memory. */
  async #storePage(
    query: string,
    progress: (pagination: Pagination) => Progress,
  ): Promise<Pagination & { readonly stored: number }> {
    for (;;) {
      const read = { records: 0 };
      try {
        return await this.deps.api.stream(`${this.#path}?perPage=${this.#perPage}${query}`, async (chunks) => {
          const page = new PageText(chunks, this.#perPage);
          const parsePagination = (): Pagination => getMember(page.parseMembersAfterRecords(), 'pagination');
          const stored = await this.#runWithFile((file) =>
            this.copy.store(writeSlices(page.readSlices(), file, read), async () => ({
              ...progress(parsePagination()),
              changeFiles: await file.seal(),
            })),
          );
          return { ...parsePagination(), stored };
        });
      } catch (error) {
        if (!(error instanceof OutOfMemory) || error.isBroken || this.#perPage === 1) throw error;
        this.#perPage = Math.ceil(Math.min(this.#perPage, Math.max(1, read.records)) / 2);
      }
    }
  }

  async #delete(ids: readonly string[], since: string): Promise<void> {
    await this.#runWithFile(async (file) => {
      await file.writeDeletions(ids);
      await this.copy.delete(ids, async () => ({ since, cursor: null, changeFiles: await file.seal() }));
    });
  }

  /** Runs a transaction that has a change file. */
  async #runWithFile<T>(transaction: (file: ChangeFile) => Promise<T>): Promise<T> {
    const file = this.deps.changes.open(this.resource.name);
    try {
      const result = await transaction(file);
      file.markCommitted();
      return result;
    } finally {
      await file.close();
    }
  }

  async #readTheirDigest(depth: number, since: string | null): Promise<{ groups: Groups; dataAsOf: string | null }> {
    const sinceQuery = since === null ? '' : `&since=${encodeURIComponent(since)}`;
    const { body, dataAsOf } = await this.deps.api.getDatedJson(`${this.#path}/digest?depth=${depth}${sinceQuery}`);
    const data = getMember<{ prefix: string; count: number; hash: string }[]>(body, 'data');
    return { groups: new Map(data.map(({ prefix, count, hash }) => [prefix, `${count} ${hash}`])), dataAsOf };
  }

  /** Estimates how many records a pass over everything will bring. */
  async #estimateRecordsLeft(cursor: string | null): Promise<number> {
    const { groups } = await this.#readTheirDigest(0, null);
    return Math.max(0, countRecords(groups) - (cursor === null ? 0 : countRecords(await this.copy.readDigest(0))));
  }
}

const countRecords = (groups: Groups): number => Number.parseInt(groups.get('') ?? '0', 10);

const composeQuery = (prefixes: readonly string[], since: string): string =>
  `prefix=${prefixes.join(',')}&since=${encodeURIComponent(since)}`;

function isSameDigest(one: Groups, other: Groups): boolean {
  return (one.get('') ?? '0') === (other.get('') ?? '0');
}

/** Also writes each slice into the file, and counts it. */
async function* writeSlices(
  slices: AsyncIterable<string[]>,
  file: ChangeFile,
  read: { records: number },
): AsyncGenerator<string[]> {
  read.records = 0;
  for await (const slice of slices) {
    read.records += slice.length;
    await file.writeUpserts(slice);
    yield slice;
  }
}
