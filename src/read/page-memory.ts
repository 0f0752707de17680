import { hash } from 'node:crypto';
import type { PageEnd, PageSeries } from './page-ends.js';

/** The end of the page with a number; page 0 ends at the beginning of the list. */
export interface NumberedEnd {
  readonly page: number;
  readonly end: PageEnd;
}

interface RememberedEnd extends NumberedEnd {
  /** Whether the page had all its rows; other pages are counted from the ends of such pages only. */
  readonly isFull: boolean;
  readonly expiresMs: number;
}

/** The ends of one series by page, the one remembered longest ago first. */
type SeriesEnds = Map<number, RememberedEnd>;

interface WorkspaceEnds {
  size: number;
  /** By name, the least recently used first. */
  readonly series: Map<string, SeriesEnds>;
}

const beginning: NumberedEnd = { page: 0, end: { key: null, asOfMs: null } };

/**
 * Remembers the end of each page, so that page N+1 after page N seeks there, a page further away skips from the nearest end, and
 * a walk by page number sees each row once although rows are inserted meanwhile. By token, as two clients may see different pages.
 */
export class PageMemory {
  readonly #max: number;
  readonly #ttlMs: number;
  readonly #now: () => number;
  readonly #workspaces = new Map<string, WorkspaceEnds>();
  #size = 0;

  /** `max` is the number of ends of all workspaces together, each of which is kept for `ttlMs`. */
  constructor(max: number, ttlMs = 600_000, now: () => number = () => performance.now()) {
    this.#max = max;
    this.#ttlMs = ttlMs;
    this.#now = now;
  }

  /** The end of the page itself when it is remembered; else the nearest end, of a page before or behind it, from which it can be counted. */
  nearest(series: PageSeries, page: number): NumberedEnd {
    const name = nameOf(series);
    const owner = this.#workspaces.get(series.caller.workspace);
    const ends = owner?.series.get(name);
    if (page === 0 || owner === undefined || ends === undefined) return beginning;
    setLast(owner.series, name, ends);
    const nowMs = this.#now();
    const own = ends.get(page);
    if (own !== undefined && own.expiresMs > nowMs) return own;
    const distance = (each: NumberedEnd): number => Math.abs(each.page - page);
    let nearest = beginning;
    for (const each of ends.values())
      if (each.isFull && each.expiresMs > nowMs && distance(each) < distance(nearest)) nearest = each;
    return nearest;
  }

  remember(series: PageSeries, page: number, end: PageEnd, isFull: boolean): void {
    const { workspace } = series.caller;
    const name = nameOf(series);
    const owner = this.#workspaces.get(workspace) ?? { size: 0, series: new Map<string, SeriesEnds>() };
    const ends = owner.series.get(name) ?? new Map<number, RememberedEnd>();
    const added = ends.has(page) ? 0 : 1;
    setLast(ends, page, { page, end, isFull, expiresMs: this.#now() + this.#ttlMs });
    setLast(owner.series, name, ends);
    this.#workspaces.set(workspace, owner);
    owner.size += added;
    this.#size += added;
    if (this.#size > this.#max) this.#evict();
  }

  /** Evicts the oldest end of the least recently used series of the workspace with the most ends. */
  #evict(): void {
    let largest: [string, WorkspaceEnds] | undefined;
    for (const entry of this.#workspaces) if (entry[1].size > (largest?.[1].size ?? 0)) largest = entry;
    const [workspace, owner] = largest as [string, WorkspaceEnds];
    const [name, ends] = owner.series.entries().next().value as [string, SeriesEnds];
    ends.delete(ends.keys().next().value as number);
    if (ends.size === 0) owner.series.delete(name);
    if (--owner.size === 0) this.#workspaces.delete(workspace);
    this.#size--;
  }
}

/** Sets the entry as the map's last. */
function setLast<K, V>(map: Map<K, V>, key: K, value: V): void {
  map.delete(key);
  map.set(key, value);
}

/** A digest: the context can be as long as a URL, and V8 keeps the parts of a joined text beside it, half of an end. */
function nameOf({ caller, context, perPage }: PageSeries): string {
  return hash('sha256', `${caller.tokenId} ${perPage} ${context}`, 'base64url');
}
