import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Caller } from '../../postgres/statement.js';
import type { PageEnd } from './cursor.js';

export interface PageSeries {
  readonly caller: Caller;
  readonly context: string;
  readonly perPage: number;
}

interface NumberedEnd {
  readonly page: number;
  readonly end: PageEnd;
  /** Other pages are counted only from full ones. */
  readonly isFull: boolean;
  readonly expiresMs: number;
}

const startOfList: NumberedEnd = { page: 0, end: { key: null, asOfMs: null }, isFull: true, expiresMs: 0 };
/** Pages of a list that a token reads in ten minutes. */
const endsPerSeriesMax = 600;

/** Remembers by token: page N+1 seeks to the end of page N, and other pages skip from the nearest end. */
export class PageMemory {
  readonly #series: LRUCache<string, Map<number, NumberedEnd>>;

  /** Keeps `max` ends of all lists together, each for `ttlMs`. */
  constructor(
    max: number,
    private readonly ttlMs = 600_000,
    private readonly now: () => number = () => performance.now(),
  ) {
    this.#series = new LRUCache({ maxSize: max, sizeCalculation: ({ size }) => size });
  }

  /** Returns the page's own end, otherwise the nearest one before or after it. */
  findNearest(series: PageSeries, page: number): NumberedEnd {
    const ends = this.#series.get(nameSeries(series));
    const nowMs = this.now();
    let nearest = startOfList;
    for (const each of ends?.values() ?? []) {
      if (each.expiresMs <= nowMs) continue;
      if (each.page === page) return each;
      if (each.isFull && Math.abs(each.page - page) < Math.abs(nearest.page - page)) nearest = each;
    }
    return nearest;
  }

  remember(series: PageSeries, page: number, end: PageEnd, isFull: boolean): void {
    const name = nameSeries(series);
    const ends = this.#series.get(name) ?? new Map<number, NumberedEnd>();
    ends.delete(page); // moves it to the end
    ends.set(page, { page, end, isFull, expiresMs: this.now() + this.ttlMs });
    if (ends.size > endsPerSeriesMax) ends.delete(ends.keys().next().value as number);
    this.#series.delete(name); // makes the cache take the size again
    this.#series.set(name, ends);
  }
}

/** Makes a digest: contexts are as long as URLs, and V8 keeps the parts of a joined text beside it. */
function nameSeries({ caller, context, perPage }: PageSeries): string {
  return hash('sha256', `${caller.tokenId} ${perPage} ${context}`, 'base64url');
}
