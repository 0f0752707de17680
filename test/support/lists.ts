import type { ApiClient, ApiReply, RequestOptions } from './client.js';

export const lists = {
  klanten: ['ids', 'updatedSince'],
  installaties: ['ids', 'customerId', 'updatedSince', 'serienummer'],
  werkbonnen: ['ids', 'installationId', 'from', 'to', 'updatedSince', 'status', 'nummer'],
  logboeken: ['ids', 'entity', 'entityId', 'from', 'to', 'actie'],
} as const;
export type ListName = keyof typeof lists;
export const listNames = Object.keys(lists) as ListName[];

export type IdRow = { readonly id: string };
export const idsOf = (rows: readonly IdRow[]): string[] => rows.map(({ id }) => id);

export interface Page<R = IdRow> {
  readonly data: R[];
  readonly pagination: {
    readonly page: number | null;
    readonly perPage: number;
    readonly count: number;
    readonly hasMore: boolean;
    readonly nextCursor: string | null;
    readonly endCursor: string;
    readonly next: string | null;
    readonly total?: number;
  };
}

export interface PageReply<R> extends Page<R> {
  readonly reply: ApiReply;
}

export async function page<R = IdRow>(
  client: ApiClient,
  path: string,
  options?: RequestOptions,
): Promise<PageReply<R>> {
  const reply = await client.get(path, options);
  if (reply.status !== 200) throw new Error(`${path}: ${reply.status} ${reply.text}`);
  return { ...reply.json<Page<R>>(), reply };
}

export async function* pages<R = IdRow>(
  client: ApiClient,
  path: string,
  by: 'cursor' | 'page' = 'cursor',
  options?: RequestOptions,
): AsyncGenerator<PageReply<R>> {
  const joiner = path.includes('?') ? '&' : '?';
  let next = '';
  for (let number = 2; ; number++) {
    const current = await page<R>(client, path + next, options);
    yield current;
    if (!current.pagination.hasMore) return;
    next = joiner + (by === 'page' ? `page=${number}` : `cursor=${current.pagination.nextCursor}`);
  }
}

export async function records<R = IdRow>(client: ApiClient, path: string, options?: RequestOptions): Promise<R[]> {
  const all: R[] = [];
  for await (const { data } of pages<R>(client, path, 'cursor', options)) all.push(...data);
  return all;
}

export function faultsOf(reply: ApiReply): string[] {
  const { errors = [] } = reply.json<{ errors?: Record<string, string>[] }>();
  return errors.map(({ parameter, header, pointer, code }) => `${parameter ?? header ?? pointer} ${code}`);
}

export function codeOf(reply: ApiReply): string {
  return reply.json<{ code: string }>().code;
}
