import { type Client, Refused } from './client.js';
import type { Destination, PullState } from './destination.js';

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

interface Page {
  readonly data: readonly unknown[];
  readonly pagination: { readonly nextCursor: string | null; readonly since: string | null };
}

const prefixesPerRequest = 100;
const pageRows = 1000;

/** Brings the copy of a resource up to date, from its progress on, and compares it. */
export async function pass(client: Client, to: Destination, resource: string, state: PullState): Promise<PassReport> {
  const startedMs = performance.now();
  let [pages, records, whole] = [0, 0, state.since === null];
  for (let { since, cursor } = state; ; ) {
    const begin = since === null ? '' : `&since=${since}`;
    const query = cursor === null ? begin : `&cursor=${cursor}`;
    const body = await client.get(`/sync/${resource}?perPage=${pageRows}${query}`).catch((error: unknown) => {
      if (error instanceof Refused && error.status === 410) return null;
      throw error;
    });
    if (body === null) {
      [since, cursor, whole] = [null, null, true];
      continue;
    }
    const { pagination } = JSON.parse(body) as Page;
    cursor = pagination.nextCursor;
    since = pagination.since ?? since;
    records += await to.store(resource, body, { since, cursor });
    pages++;
    if (cursor !== null) continue;
    const seconds = (): number => Math.round(performance.now() - startedMs) / 1000;
    const compared = await compare(client, to, resource, since as string);
    return { resource, whole, pages, records, ...compared, seconds: seconds() };
  }
}

/**
 * Compares the ids of the copy with those of the gateway, group by group, deletes those that are gone and reads those that are missing. All
 * is asked of a replica at least as current as the token: of an older one, new records would look deleted.
 */
export async function compare(
  client: Client,
  to: Destination,
  resource: string,
  since: string,
): Promise<{ readonly deleted: number; readonly added: number }> {
  const differing = async (depth: number): Promise<string[]> => {
    const { data } = JSON.parse(await client.get(`/sync/${resource}/digest?depth=${depth}&since=${since}`)) as {
      data: { prefix: string; count: number; hash: string }[];
    };
    const theirs = new Map(data.map(({ prefix, count, hash }) => [prefix, `${count} ${hash}`]));
    const ours = await to.digest(resource, depth);
    const prefixes = new Set([...theirs.keys(), ...ours.keys()]);
    return [...prefixes].filter((prefix) => theirs.get(prefix) !== ours.get(prefix));
  };
  if ((await differing(0)).length === 0) return { deleted: 0, added: 0 };
  const prefixes = await differing(3);
  let [deleted, added] = [0, 0];
  for (let i = 0; i < prefixes.length; i += prefixesPerRequest) {
    const some = prefixes.slice(i, i + prefixesPerRequest);
    const query = `prefix=${some.join(',')}&since=${since}`;
    const { data } = JSON.parse(await client.get(`/sync/${resource}/ids?${query}`)) as { data: string[] };
    const [theirs, ours] = [new Set(data), await to.ids(resource, some)];
    const gone = ours.filter((id) => !theirs.has(id));
    await to.delete(resource, gone);
    deleted += gone.length;
    const here = new Set(ours);
    if (data.every((id) => here.has(id))) continue;
    added += data.filter((id) => !here.has(id)).length;
    await readGroups(client, to, resource, query, since);
  }
  return { deleted, added };
}

/** Reads every record of some groups. */
async function readGroups(
  client: Client,
  to: Destination,
  resource: string,
  query: string,
  since: string,
): Promise<void> {
  const prefix = query.split('&')[0];
  for (let from = query; ; ) {
    const body = await client.get(`/sync/${resource}?perPage=${pageRows}&${from}`);
    await to.store(resource, body, { since, cursor: null });
    const { nextCursor } = (JSON.parse(body) as Page).pagination;
    if (nextCursor === null) return;
    from = `${prefix}&cursor=${nextCursor}`;
  }
}
