import { type Client, Refused } from './client.js';
import type { Copy } from './destination.js';

/** The outcome of a pass. */
export interface PassReport {
  readonly resource: string;
  /** Whether the pass read everything. */
  readonly whole: boolean;
  readonly pages: number;
  readonly records: number;
  /** Records that the gateway no longer has. */
  readonly deleted: number;
  /** Records that the copy lacked when it was compared: those of the last moments, or a fault. */
  readonly added: number;
  readonly seconds: number;
}

/** The progress of a pass, after each page. */
export interface PassProgress {
  readonly resource: string;
  readonly pages: number;
  readonly records: number;
  /** Null when the gateway cannot say how many records follow: in a pass over changes. */
  readonly pagesLeft: number | null;
}

/** Called after each page; its presence costs a pass over everything a request for the number of records. */
export type OnPage = (progress: PassProgress) => void;

interface Page {
  readonly data: readonly unknown[];
  readonly pagination: { readonly nextCursor: string | null; readonly since: string | null };
}

interface Digest {
  readonly data: readonly { readonly prefix: string; readonly count: number; readonly hash: string }[];
}

const prefixesPerRequest = 100;
/** The gateway refuses to list more than 100,000 at once. */
const idsPerRequest = 50_000;
const pageRows = 1000;

/** Brings the copy of a resource up to date, from its progress on, and compares it. */
export async function pass(client: Client, copy: Copy, resource: string, onPage?: OnPage): Promise<PassReport> {
  const startedMs = performance.now();
  let [pages, records, whole] = [0, 0, copy.state.since === null];
  let expected = whole && onPage ? await recordsLeft(client, copy, resource) : null;
  for (let { since, cursor } = copy.state; ; ) {
    const begin = since === null ? '' : `&since=${since}`;
    const query = cursor === null ? begin : `&cursor=${cursor}`;
    const body = await nullIfGone(client.get(`/sync/${resource}?perPage=${pageRows}${query}`));
    if (body === null) {
      [since, cursor, whole, expected] = [null, null, true, null];
      continue;
    }
    const { pagination } = body.value as Page;
    cursor = pagination.nextCursor;
    since = pagination.since ?? since;
    records += await copy.store(body.text, { since, cursor });
    pages++;
    const pagesLeft = expected === null ? null : Math.ceil(Math.max(0, expected - records) / pageRows);
    onPage?.({ resource, pages, records, pagesLeft });
    if (cursor !== null) continue;
    const compared = await nullIfGone(compare(client, copy, resource, since as string));
    if (compared === null) {
      [since, whole, expected] = [null, true, null];
      continue;
    }
    const seconds = Math.round(performance.now() - startedMs) / 1000;
    return { resource, whole, pages, records, ...compared, seconds };
  }
}

/** Null where the gateway no longer knows the history of a token, as after a failover: a pass over everything follows. */
function nullIfGone<T>(asked: Promise<T>): Promise<T | null> {
  return asked.catch((error: unknown) => {
    if (error instanceof Refused && error.status === 410) return null;
    throw error;
  });
}

/** Number of records of a pass over everything; of one that goes on, those that the copy lacks. */
async function recordsLeft(client: Client, copy: Copy, resource: string): Promise<number> {
  const { data } = (await client.get(`/sync/${resource}/digest?depth=0`)).value as Digest;
  const present = copy.state.cursor === null ? '0' : ((await copy.digest(0)).get('') ?? '0');
  return (data[0]?.count ?? 0) - Number.parseInt(present, 10);
}

/**
 * Compares the ids of the copy with those of the gateway, group by group, deletes those that are gone and reads those that are missing. All
 * is asked of a replica at least as current as the token: of an older one, new records would look deleted. Ends with a commit.
 */
export async function compare(
  client: Client,
  copy: Copy,
  resource: string,
  since: string,
): Promise<{ readonly deleted: number; readonly added: number }> {
  const differing = async (depth: number): Promise<{ readonly prefixes: string[]; readonly countMax: number }> => {
    const { data } = (await client.get(`/sync/${resource}/digest?depth=${depth}&since=${since}`)).value as Digest;
    const theirs = new Map(data.map(({ prefix, count, hash }) => [prefix, `${count} ${hash}`]));
    const ours = await copy.digest(depth);
    const prefixes = [...new Set([...theirs.keys(), ...ours.keys()])].filter(
      (each) => theirs.get(each) !== ours.get(each),
    );
    return { prefixes, countMax: data.reduce((max, { count }) => Math.max(max, count), 1) };
  };
  const isEqual = (await differing(0)).prefixes.length === 0;
  const { prefixes, countMax } = isEqual ? { prefixes: [], countMax: 1 } : await differing(3);
  const perRequest = Math.max(1, Math.min(prefixesPerRequest, Math.floor(idsPerRequest / countMax)));
  let [deleted, added] = [0, 0];
  for (let i = 0; i < prefixes.length; i += perRequest) {
    const some = prefixes.slice(i, i + perRequest);
    const query = `prefix=${some.join(',')}&since=${since}`;
    const { data } = (await client.get(`/sync/${resource}/ids?${query}`)).value as { data: string[] };
    const [theirs, ours] = [new Set(data), await copy.ids(some)];
    const gone = ours.filter((id) => !theirs.has(id));
    await copy.delete(gone);
    deleted += gone.length;
    const here = new Set(ours);
    if (data.every((id) => here.has(id))) continue;
    added += data.filter((id) => !here.has(id)).length;
    await readGroups(client, copy, resource, query, since);
  }
  await copy.commit();
  return { deleted, added };
}

/** Reads every record of some groups. */
async function readGroups(client: Client, copy: Copy, resource: string, query: string, since: string): Promise<void> {
  const prefix = query.split('&')[0];
  for (let from = query; ; ) {
    const body = await client.get(`/sync/${resource}?perPage=${pageRows}&${from}`);
    await copy.store(body.text, { since, cursor: null });
    const { nextCursor } = (body.value as Page).pagination;
    if (nextCursor === null) return;
    from = `${prefix}&cursor=${nextCursor}`;
  }
}
