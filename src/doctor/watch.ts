import type pg from 'pg';
import type { Event, Observe, RefusedResource } from '../base/events.js';
import { getCorrection, getDatabaseErrorKind, getReason } from '../postgres/database-errors.js';
import type { Resource } from '../resource/definition/resource.js';
import { type CheckBounds, connectForCheck, isSlow, runReadOnly } from './check-session.js';
import { getTitle, type Item, makeItem, placeItem } from './finding.js';
import { checkTokens } from './server-checks.js';
import type { ServerKind } from './verdicts.js';
import { checkApplied, checkViews, getViewNeed, listWriteNeeds, readAppliedNames } from './view-checks.js';

export interface WatchedServer {
  readonly kind: ServerKind;
  readonly name: string;
  /** Null while the server is not used. */
  readonly url: () => string | null;
}

export interface WatchBounds extends CheckBounds {
  readonly fitnessIntervalMs: number;
}

/** Fractions of the interval: the pause while a resource is refused, and the least pause between two looks. */
const refusedFraction = 1 / 15;
const leastFraction = 1 / 30;

type Use = RefusedResource['use'];

/** Refuses a resource until all servers pass: missing rows look like an answer. An unreachable server keeps its last result. */
export class FitnessWatch {
  readonly #items = new Map<WatchedServer, readonly Item[]>();
  #refused: readonly RefusedResource[] = [];
  #looking: Promise<void> | null = null;
  #lookedMs = performance.now();
  #timer: NodeJS.Timeout | undefined;
  #dueMs = Number.POSITIVE_INFINITY;
  #isClosed = false;
  /** True if all servers in use answered the last look. */
  #isJudged = false;

  constructor(
    private readonly servers: readonly WatchedServer[],
    private readonly resources: readonly Resource[],
    private readonly bounds: WatchBounds,
    private readonly observe: Observe,
  ) {
    this.#planLook(bounds.fitnessIntervalMs * (0.5 + Math.random() / 2)); // not in step with other gateways
  }

  get refused(): readonly RefusedResource[] {
    return this.#refused;
  }

  refuses(resource: string, use: Use): boolean {
    return this.#refused.some((each) => each.resource === resource && each.use === use);
  }

  /** Brings the next look forward after a change of the database. A change that the catalog shows may be half of a migration. */
  readonly handle = (event: Event): void => {
    const pauseMs = this.bounds.fitnessIntervalMs * leastFraction;
    const isHint =
      event.type === 'database_unfit' || (event.type === 'replica_failed' && event.helps === 'new connection');
    if (isHint) this.#planLook(Math.max(0, this.#lookedMs + pauseMs - performance.now()));
    if (event.type === 'catalog_changed' && performance.now() + pauseMs < this.#dueMs) this.#planLook(pauseMs);
  };

  /** Looks at all servers; callers share a look. Never rejects. */
  look(): Promise<void> {
    this.#looking ??= this.#lookAtAll().finally(() => {
      this.#looking = null;
      this.#lookedMs = performance.now();
      this.#planLook(this.bounds.fitnessIntervalMs * (this.#refused.length > 0 ? refusedFraction : 1));
    });
    return this.#looking;
  }

  /** Waits for a look that began after the call; returns false when a server in use did not answer. */
  async lookAfresh(): Promise<boolean> {
    await this.#looking;
    await this.look();
    return this.#isJudged;
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  #planLook(ms: number): void {
    this.#dueMs = performance.now() + ms;
    clearTimeout(this.#timer);
    if (!this.#isClosed) this.#timer = setTimeout(() => void this.look(), ms).unref();
  }

  async #lookAtAll(): Promise<void> {
    const answers = await Promise.all(this.servers.map((server) => this.#lookAt(server)));
    this.#isJudged = answers.includes(true) && !answers.includes(false);
    if (!this.#isClosed) this.#judge();
  }

  /** Returns false without an answer, and null while the server is not used. */
  async #lookAt(server: WatchedServer): Promise<boolean | null> {
    const url = server.url();
    if (url === null) {
      this.#items.delete(server);
      return null;
    }
    let client: pg.Client | null = null;
    try {
      client = await connectForCheck(url, server.kind, this.bounds);
      const look = server.kind === 'replica' ? lookAtReplica : lookAtPrimary;
      const before = this.#items.get(server) ?? [];
      const items = await look(client, this.resources, before);
      const slow = items.find(isSlow);
      if (slow) throw new Error(slow.detail);
      const unfit = items.filter(({ level, code }) => level === 'refused' || code === 'dropped');
      this.#items.set(server, unfit);
      return true;
    } catch (error) {
      this.observe({ type: 'look_failed', server: server.name, reason: getReason(error as Error) });
      return false;
    } finally {
      await client?.end().catch(() => undefined);
    }
  }

  #judge(): void {
    const keyOf = ({ resource, use }: RefusedResource): string => `${use} ${resource}`;
    const refused = new Map<string, RefusedResource>();
    // The primary comes first, because only it knows what keeps it from writing; the order of the answers does not matter.
    const rank = ({ kind }: WatchedServer): number => Number(kind === 'replica');
    const servers = this.servers.toSorted((one, other) => rank(one) - rank(other));
    for (const each of servers.flatMap((server) => this.#listRefusals(server)))
      if (!refused.has(keyOf(each))) refused.set(keyOf(each), each);
    const before = new Set(this.#refused.map(keyOf));
    for (const [key, each] of refused) if (!before.has(key)) this.observe({ type: 'resource_refused', ...each });
    for (const { resource, use, ...rest } of this.#refused)
      if (!refused.has(keyOf({ resource, use, ...rest }))) this.observe({ type: 'resource_admitted', resource, use });
    this.#refused = [...refused.values()];
  }

  #listRefusals(server: WatchedServer): RefusedResource[] {
    return (this.#items.get(server) ?? []).flatMap((item) => {
      const { detail, advice } = placeItem(server.name, item);
      const refusal = { server: server.name, item: getTitle(item), detail, advice };
      return listUses(item, this.resources).map(([resource, use]) => ({ resource, use, ...refusal }));
    });
  }
}

/** Lists the uses that an item makes unfit; without an object it makes all unfit. */
function listUses({ object }: Item, resources: readonly Resource[]): [resource: string, use: Use][] {
  const uses = resources.flatMap(({ name, view, write }): [string, Use, boolean][] => [
    [name, 'read', object === view || object === name],
    ...(write ? [[name, 'write', object === write.view || object === name] as [string, Use, boolean]] : []),
  ]);
  const namedUses = uses.filter(([, , isNamed]) => isNamed);
  // Otherwise the item concerns all resources, or the log into which every write inserts.
  const meant = namedUses.length > 0 ? namedUses : uses.filter(([, use]) => object === '' || use === 'write');
  return meant.map(([name, use]) => [name, use]);
}

/** Returns the items of a server; `before` holds the items of the last look. */
type Look = (client: pg.Client, resources: readonly Resource[], before: readonly Item[]) => Promise<Item[]>;

const lookAtReplica: Look = async (client, resources, before) => [
  ...(await checkViews(client, resources.map(getViewNeed))),
  ...(await lookAtFiles(client, resources, before)),
  ...(await planReads(client, resources)), // after the files: a changed file is the cause of what cannot be read
  ...(await checkTokens(client)), // last: without the schema, which the first items report, the advice differs
];

/** Finds faults that no catalog shows, such as a revoked function. */
async function planReads(client: pg.Client, resources: readonly Resource[]): Promise<Item[]> {
  const items: Item[] = [];
  for (const { view } of resources) {
    const plan = () => client.query(`explain select * from ${view}`).then((): Item[] => []);
    const describeRefusal = (error: Error): Item[] => {
      const item = makeItem('refused', 'view', `it cannot be read: ${error.message}.`, view);
      return getDatabaseErrorKind(error) === 'unfit' ? [{ ...item, advice: getCorrection(error) }] : [];
    };
    items.push(...(await runReadOnly(client, { object: null }, plan, describeRefusal)));
  }
  return items;
}

/** Looks at the files of tokens too, which are looked up here while no replica can be used; views of one resource are read on replicas. */
const lookAtPrimary: Look = async (client, resources, before) => [
  ...(await checkViews(client, resources.flatMap(listWriteNeeds))),
  ...(await lookAtFiles(client, resources, before)).filter(({ object }) => object === ''),
  ...(await checkTokens(client)),
];

/** Compares the files one by one if a lock hides a view; its earlier findings stay. */
const lookAtFiles: Look = async (client, resources, before) => {
  const all = await checkApplied(client, resources);
  if (all.length > 0) return all;
  const items = before.filter(({ code }) => code === 'migrated');
  for (const file of await readAppliedNames(client)) items.push(...(await checkApplied(client, resources, [file])));
  return items;
};
