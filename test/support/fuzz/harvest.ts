import type { ListName } from '../lists.js';
import type { FuzzRequest } from './request.js';
import type { WireResponse } from './wire.js';
import type { FuzzWorkspace } from './world.js';

export interface GivenCursor {
  readonly workspace: FuzzWorkspace;
  readonly list: ListName;
  readonly cursor: string;
  readonly next: string | null;
}

class Recent<T> {
  readonly #max: number;
  readonly #items: T[] = [];
  #added = 0;

  constructor(max: number) {
    this.#max = max;
  }

  add(item: T): void {
    this.#items[this.#added++ % this.#max] = item;
  }

  pick(number: number): T | undefined {
    return this.#items[number % Math.max(1, this.#items.length)];
  }
}

/** Ids, cursors and tags of the answers so far, so that later requests can use them as a client does. */
export class Harvest {
  readonly cursors = new Recent<GivenCursor>(500);
  readonly writes = new Recent<FuzzRequest>(200);
  readonly etags = new Map<string, string>();
  readonly #created = new Map<number, Recent<string>>();

  created(workspace: FuzzWorkspace, number: number): string | undefined {
    return this.#created.get(workspace.number)?.pick(number);
  }

  learn(workspace: FuzzWorkspace, request: FuzzRequest, { status, headers }: WireResponse, text: string): void {
    if ('dry-run' in headers) return;
    const list = /^\/api\/v1\/(klanten|installaties|werkbonnen|logboeken)(?:\?|$)/.exec(request.target)?.[1];
    if (request.method === 'GET' && status === 200 && list !== undefined) {
      const [, cursor, next] = /"endCursor":"([\w-]+)","next":(?:"https?:\/\/[^/"]*([^"]+)"|null)/.exec(text) ?? [];
      if (cursor !== undefined) this.cursors.add({ workspace, list: list as ListName, cursor, next: next ?? null });
    }
    const id = /^\{"id":"([^"]+)"/.exec(text)?.[1];
    if (headers.etag !== undefined && id !== undefined) this.etags.set(id, headers.etag);
    if (status === 201 && id !== undefined) {
      const created = this.#created.get(workspace.number) ?? new Recent<string>(50);
      this.#created.set(workspace.number, created);
      created.add(id);
    }
    if ((request.method === 'POST' || request.method === 'PATCH') && status < 300) this.writes.add(request);
  }
}
