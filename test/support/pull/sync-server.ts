import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** The server speaks as a gateway does; the records are texts of JSON, `syncVersion` included. */
export interface ServedResource {
  readonly schema: object;
  readonly records: Map<string, string>;
}

export interface SyncServer {
  readonly base: string;
  readonly resources: Map<string, ServedResource>;
  workspaceId: string;
  /** The token has these members beside workspace and scopes. */
  token: object;
  clockAheadMs: number;
  /** Sends all records in one page. */
  ignoresPerPage: boolean;
  readonly asked: string[];
  /** Refuses a request with a status and a body. */
  refuse: (path: string, authorization: string) => readonly [status: number, body: object] | undefined;
  onRequest: (path: string) => Promise<void> | void;
  close(): void;
}

export async function syncServer(resources: Record<string, ServedResource>): Promise<SyncServer> {
  const http = createServer((request, reply) => void answer(served, request, reply));
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  const served: SyncServer = {
    base: `http://127.0.0.1:${(http.address() as AddressInfo).port}`,
    resources: new Map(Object.entries(resources)),
    workspaceId: 'north',
    token: {},
    clockAheadMs: 0,
    ignoresPerPage: false,
    refuse: () => undefined,
    asked: [],
    onRequest: () => undefined,
    close: () => {
      http.close();
      http.closeAllConnections();
    },
  };
  return served;
}

export function record(id: string, members: string, version = createHash('md5').update(members).digest('hex')): string {
  return `{"id":${JSON.stringify(id)}${members === '' ? '' : `,${members}`},"syncVersion":"${version.slice(0, 16)}"}`;
}

async function answer(served: SyncServer, request: IncomingMessage, reply: ServerResponse): Promise<void> {
  const url = new URL(request.url ?? '/', served.base);
  const path = url.pathname.replace('/api/v1', '');
  served.asked.push(path);
  await served.onRequest(path);
  const send = (text: string): void => {
    const moment = new Date(Date.now() + served.clockAheadMs).toISOString();
    reply.writeHead(200, { 'content-type': 'application/json', 'data-as-of': moment }).end(text);
  };
  const refusal = served.refuse(path, request.headers.authorization ?? '');
  if (refusal !== undefined)
    return void reply.writeHead(refusal[0], { 'content-type': 'application/json' }).end(JSON.stringify(refusal[1]));
  if (path === '/token')
    return send(
      JSON.stringify({
        workspaceId: served.workspaceId,
        scopes: [...served.resources.keys()].map((name) => `read:${name}`),
        ...served.token,
      }),
    );
  if (path === '/openapi.json') return send(JSON.stringify(documentOf(served)));
  const [, , name = '', what = ''] = path.split('/').map(decodeURIComponent);
  const resource = served.resources.get(name);
  if (resource === undefined) return void reply.writeHead(404).end('{}');
  if (what === 'digest') return send(digestOf(resource, Number(url.searchParams.get('depth'))));
  const prefixes = url.searchParams.get('prefix')?.split(',') ?? [''];
  const length = prefixes[0]?.length ?? 0;
  const wanted = new Set(prefixes);
  const ids = [...resource.records.keys()].filter((id) => length === 0 || wanted.has(sha(id).slice(0, length)));
  if (what === 'ids')
    return send(JSON.stringify({ data: ids.map((id) => ({ id, syncVersion: versionOf(resource, id) })) }));
  return sendPage(resource, ids, url.searchParams, reply, served.ignoresPerPage);
}

/** A pass over changes brings everything that is there: repeated rows are allowed. */
function sendPage(
  resource: ServedResource,
  ids: string[],
  query: URLSearchParams,
  reply: ServerResponse,
  isUnbounded: boolean,
): void {
  const from = Number(query.get('cursor') ?? 0);
  const perPage = isUnbounded ? ids.length : Number(query.get('perPage'));
  const page = ids.slice(from, from + perPage);
  const hasMore = from + perPage < ids.length;
  const pagination = { nextCursor: hasMore ? String(from + perPage) : null, since: hasMore ? null : 'token' };
  reply.writeHead(200, { 'content-type': 'application/json' });
  reply.write('{"data":[');
  for (const [i, id] of page.entries()) reply.write((i === 0 ? '' : ',') + resource.records.get(id));
  reply.end(`],"pagination":${JSON.stringify(pagination)}}`);
}

const sha = (text: string): string => createHash('sha256').update(text).digest('hex');

const versionOf = ({ records }: ServedResource, id: string): string =>
  /"syncVersion":"([^"]*)"\s*}$/.exec((records.get(id) as string).slice(-60))?.[1] ?? '';

function digestOf(resource: ServedResource, depth: number): string {
  const groups = new Map<string, { count: number; hash: bigint }>();
  for (const id of resource.records.keys()) {
    const prefix = sha(id).slice(0, depth);
    const { count, hash } = groups.get(prefix) ?? { count: 0, hash: 0n };
    const own = BigInt(`0x${sha(`${id}\n${versionOf(resource, id)}`).slice(0, 16)}`);
    groups.set(prefix, { count: count + 1, hash: hash ^ own });
  }
  const data = [...groups].map(([prefix, { count, hash }]) => ({
    prefix,
    count,
    hash: hash.toString(16).padStart(16, '0'),
  }));
  return JSON.stringify({ data });
}

function documentOf({ resources }: SyncServer): object {
  const paths = [...resources].map(([name, { schema }]) => {
    return [`/sync/${name}`, { get: operationOf(schema) }];
  });
  return { openapi: '3.1.0', paths: Object.fromEntries(paths) };
}

export function operationOf(schema: object): object {
  const page = { type: 'object', properties: { data: { type: 'array', items: schema } } };
  return {
    parameters: [{ name: 'perPage', in: 'query', schema: { type: 'integer', maximum: 10_000 } }],
    responses: { 200: { content: { 'application/json': { schema: page } } } },
  };
}
