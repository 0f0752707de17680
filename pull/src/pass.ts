import { type Api, Refused } from './api.js';
import type { ChangeFile, ChangeFiles } from './changes.js';
import type { Copy, Groups, Progress } from './destination.js';
import type { Resource } from './document.js';
import { PageText } from './json-text.js';

/** The outcome of a pass. */
export interface PassReport {
  readonly resource: string;
  /** Whether the pass read everything. */
  readonly whole: boolean;
  readonly pages: number;
  readonly records: number;
  /** Records that the gateway no longer has. */
  readonly deleted: number;
  /** Records that the digest showed as missing or in another version, and that were read again. */
  readonly repaired: number;
  readonly seconds: number;
}

/** The progress of a pass, after each page. `recordsLeft` is null where the gateway cannot say: in a pass over changes. */
export interface PassProgress {
  readonly resource: string;
  readonly records: number;
  readonly recordsLeft: number | null;
}

/** Dependencies of a pass. */
export interface PassDeps {
  readonly api: Api;
  readonly changes: ChangeFiles;
  readonly onPage?: (progress: PassProgress) => void;
}

interface Pagination {
  readonly nextCursor: string | null;
  readonly since: string | null;
}

/** The gateway names a hundred prefixes and 100,000 ids at most at once. */
const prefixesPerRequest = 100;
const idsPerRequest = 50_000;
const groupDigits = 3;
/** Where a larger share of the groups differs, a pass over everything is cheaper. */
const differingShareMax = 0.25;
/** The cursor or the token leads nowhere: of another timeline (410), or damaged (400). */
const lost: ReadonlySet<number> = new Set([400, 410]);

/** Brings the copy of a resource up to date, from its progress on, and compares it. `isBegun` reads nothing before it compares. */
export async function pass(
  deps: PassDeps,
  copy: Copy,
  resource: Resource,
  { verify = false } = {},
): Promise<PassReport> {
  const startedMs = performance.now();
  const reader = new Reader(deps, copy, resource);
  let repaired = 0;
  if (verify) await copy.recheck();
  let progress = copy.progress;
  let [pages, records, whole] = [0, 0, progress.since === null];
  for (let isRepeated = false; ; isRepeated = true) {
    if (!(verify && progress.since !== null && !isRepeated)) {
      const read = await reader.pages(progress);
      if (read === null) {
        [progress, whole] = [{ since: null, cursor: null }, true];
        continue;
      }
      [pages, records] = [pages + read.pages, records + read.records];
      progress = { since: read.since, cursor: null };
    }
    const compared = await orNull(reader.compare(progress.since as string));
    if (compared === 'differs' && isRepeated && whole)
      throw new Refused(
        0,
        `The copy of ${resource.name} differs from the gateway after a pass over everything: run \`pull --verify\`.`,
      );
    if (compared === null || compared === 'differs') {
      [progress, whole] = [{ since: null, cursor: null }, true];
      continue;
    }
    repaired += compared.repaired;
    await copy.finish();
    const seconds = Math.round(performance.now() - startedMs) / 1000;
    return { resource: resource.name, whole, pages, records, deleted: compared.deleted, repaired, seconds };
  }
}

/** Null where the gateway no longer knows the history of a token, as after a failover, or the token is damaged. */
function orNull<T>(asked: Promise<T>): Promise<T | null> {
  return asked.catch((error: unknown) => {
    if (error instanceof Refused && lost.has(error.status)) return null;
    throw error;
  });
}

class Reader {
  readonly #deps: PassDeps;
  readonly #copy: Copy;
  readonly #resource: Resource;
  readonly #path: string;

  constructor(deps: PassDeps, copy: Copy, resource: Resource) {
    [this.#deps, this.#copy, this.#resource] = [deps, copy, resource];
    this.#path = `/sync/${resource.name}`;
  }

  /** Reads the pages of a pass from a place on. Null: the place is lost. */
  async pages(from: {
    since: string | null;
    cursor: string | null;
  }): Promise<{ pages: number; records: number; since: string } | null> {
    let [pages, records, left] = [0, 0, null as number | null];
    if (from.since === null && this.#deps.onPage) left = await this.#recordsLeft(from.cursor);
    const begin = from.since === null ? '' : `&since=${encodeURIComponent(from.since)}`;
    let query = from.cursor === null ? begin : `&cursor=${encodeURIComponent(from.cursor)}`;
    for (;;) {
      const page = await orNull(
        this.#page(query, ({ nextCursor, since }) => ({ since: since ?? from.since, cursor: nextCursor })),
      );
      if (page === null) return null;
      pages++;
      records += page.stored;
      if (left !== null) left = Math.max(0, left - page.stored);
      this.#deps.onPage?.({ resource: this.#resource.name, records, recordsLeft: left });
      if (page.nextCursor === null) return { pages, records, since: page.since as string };
      query = `&cursor=${encodeURIComponent(page.nextCursor)}`;
    }
  }

  /**
   * Compares ids and versions with the gateway's, group by group: deletes what is gone, reads what is missing or has another version. All
   * is asked of a replica at least as current as the token: of an older one, new records would look deleted.
   */
  async compare(since: string): Promise<{ deleted: number; repaired: number } | 'differs'> {
    if (isSame(await this.#theirs(0, since), await this.#copy.digest(0))) return { deleted: 0, repaired: 0 };
    const theirs = await this.#theirs(groupDigits, since);
    const ours = await this.#copy.digest(groupDigits);
    const prefixes = [...new Set([...theirs.keys(), ...ours.keys()])].filter(
      (each) => theirs.get(each) !== ours.get(each),
    );
    const countMax = [...theirs.values()].reduce((max, digest) => Math.max(max, Number.parseInt(digest, 10)), 1);
    if (countMax > 10 && prefixes.length > differingShareMax * theirs.size) return 'differs';
    const perRequest = Math.max(1, Math.min(prefixesPerRequest, Math.floor(idsPerRequest / countMax)));
    let [deleted, repaired] = [0, 0];
    for (let i = 0; i < prefixes.length; i += perRequest) {
      const some = prefixes.slice(i, i + perRequest);
      const query = `prefix=${some.join(',')}&since=${encodeURIComponent(since)}`;
      const { data } = (await this.#deps.api.json(`${this.#path}/ids?${query}`)) as {
        data: { id: string; syncVersion: string }[];
      };
      const here = await this.#copy.versions(some);
      const present = new Set(data.map(({ id }) => id));
      const gone = [...here.keys()].filter((id) => !present.has(id));
      if (gone.length > 0) await this.#delete(gone, since);
      deleted += gone.length;
      const stale = data.filter(({ id, syncVersion }) => here.get(id) !== syncVersion).length;
      repaired += stale;
      if (stale > 0) await this.#groups(query, since);
    }
    return { deleted, repaired };
  }

  /** Reads every record of some groups. */
  async #groups(query: string, since: string): Promise<void> {
    const prefix = query.split('&')[0];
    for (let from = query; ; ) {
      const { nextCursor } = await this.#page(`&${from}`, () => ({ since, cursor: null }));
      if (nextCursor === null) return;
      from = `${prefix}&cursor=${encodeURIComponent(nextCursor)}`;
    }
  }

  /** Stores a page while it comes; once more from its beginning, when it breaks off. */
  async #page(
    query: string,
    progress: (pagination: Pagination) => Progress,
  ): Promise<Pagination & { readonly stored: number }> {
    const path = `${this.#path}?perPage=${this.#resource.perPageMax}${query}`;
    return this.#deps.api.stream(path, async (chunks) => {
      const page = new PageText(chunks);
      const pagination = (): Pagination => (page.rest() as { pagination: Pagination }).pagination;
      const stored = await this.#inFile(async (file) =>
        this.#copy.store(noted(page.slices(), file), async () => ({
          ...progress(pagination()),
          changeFiles: await file.seal(),
        })),
      );
      return { ...pagination(), stored };
    });
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

  async #theirs(depth: number, since: string | null): Promise<Groups> {
    const of = since === null ? '' : `&since=${encodeURIComponent(since)}`;
    const { data } = (await this.#deps.api.json(`${this.#path}/digest?depth=${depth}${of}`)) as {
      data: { prefix: string; count: number; hash: string }[];
    };
    return new Map(data.map(({ prefix, count, hash }) => [prefix, `${count} ${hash}`]));
  }

  /** Records that a pass over everything will bring. */
  async #recordsLeft(cursor: string | null): Promise<number> {
    const count = (groups: Groups): number => Number.parseInt(groups.get('') ?? '0', 10);
    return Math.max(0, count(await this.#theirs(0, null)) - (cursor === null ? 0 : count(await this.#copy.digest(0))));
  }
}

function isSame(one: Groups, other: Groups): boolean {
  return (one.get('') ?? '0') === (other.get('') ?? '0');
}

/** The slices, each of which is also written into the file. */
async function* noted(slices: AsyncIterable<string[]>, file: ChangeFile): AsyncGenerator<string[]> {
  for await (const slice of slices) {
    await file.upserts(slice);
    yield slice;
  }
}
