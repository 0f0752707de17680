import { LRUCache } from 'lru-cache';
import type { Key } from '../definition/row-serializer.js';
import type { ListRequest } from './parse.js';

/**
 * Where pages ended, so that page N+1 after page N seeks there instead of skipping N pages, and a walk by page number
 * sees each row once although rows are inserted meanwhile. Kept per token, as two walkers may see different pages.
 */
export class PageMemory {
  readonly #ends: LRUCache<string, { key: Key | null }>;

  constructor(max: number, ttlMs: number) {
    this.#ends = new LRUCache({ max, ttl: ttlMs });
  }

  /** The end of the page before `page`; undefined when it is not remembered. */
  endBefore(request: ListRequest, page: number): Key | null | undefined {
    return this.#ends.get(name(request, page - 1))?.key;
  }

  remember(request: ListRequest, page: number, key: Key | null): void {
    this.#ends.set(name(request, page), { key });
  }
}

function name({ caller, context, perPage }: ListRequest, page: number): string {
  return `${caller.tokenId} ${perPage} ${page} ${context}`;
}
