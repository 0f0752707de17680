import { Router } from '@koa/router';
import type { Context, Middleware } from 'koa';
import type { CompiledResource } from '../compile/compiled.js';
import type { Replica } from '../db/replica.js';
import { Problem } from '../errors.js';
import type { Observe } from '../ops/events.js';
import type { ReadDeps } from '../read/chunks.js';
import { parseDetail, readDetail } from '../read/detail.js';
import { readList } from '../read/list.js';
import type { PageMemory } from '../read/page-memory.js';
import { parseList, refuseParameters } from '../read/parse.js';
import type { Settings } from '../settings.js';
import { type Admission, admit } from './admit.js';
import { type Access, requireScope } from './auth.js';
import { baseUrl } from './base-url.js';
import { clientSignal } from './exchange.js';
import { respond } from './respond.js';

/** What the API listener works with; made once by the gateway. */
export interface RouteDeps extends Admission {
  readonly settings: Settings;
  readonly observe: Observe;
  readonly replicas: readonly Replica[];
  readonly compiled: readonly CompiledResource[];
  readonly pageMemory: PageMemory;
  readonly openapi: string;
}

export const apiPrefix = '/api/v1';

/** Every path of the API, from the resource definitions. Case-sensitive; a trailing slash is another path. */
export function routes(deps: RouteDeps): Middleware {
  const router = new Router({ prefix: apiPrefix, sensitive: true, strict: true });
  for (const compiled of deps.compiled) {
    const { name, detail } = compiled.resource;
    router.get(`/${name}`, listRoute(deps, compiled));
    if (detail) router.get(`/${name}/:id`, detailRoute(deps, compiled));
  }
  router.get('/openapi.json', openapiRoute(deps));
  return router.routes() as unknown as Middleware;
}

/** The whole way of a list: token and limit → scope → Accept → parameters → read → respond. */
function listRoute(deps: RouteDeps, compiled: CompiledResource): Middleware {
  return async (ctx) => {
    const access: Access = await admit(deps, ctx);
    requireScope(access, `read:${compiled.resource.name}`);
    requireJsonAccepted(ctx);
    const request = parseList(compiled, access, ctx.querystring, deps.settings);
    const reply = await readList(readDeps(deps, ctx), deps.pageMemory, request);
    await respond(ctx, reply, true, deps.observe);
  };
}

/** The whole way of a detail: token and limit → scope → Accept → headers and parameters → read → respond. */
function detailRoute(deps: RouteDeps, compiled: CompiledResource): Middleware {
  return async (ctx) => {
    const access: Access = await admit(deps, ctx);
    requireScope(access, `read:${compiled.resource.name}`);
    requireJsonAccepted(ctx);
    refuseParameters(ctx.querystring);
    const { 'if-match': ifMatch, 'if-none-match': ifNoneMatch } = ctx.headers;
    const request = parseDetail(compiled, access, ctx['params'].id as string, { ifMatch, ifNoneMatch });
    const reply = await readDetail(readDeps(deps, ctx), request);
    await respond(ctx, reply, false, deps.observe);
  };
}

function openapiRoute({ openapi, observe }: RouteDeps): Middleware {
  return async (ctx) => {
    requireJsonAccepted(ctx);
    refuseParameters(ctx.querystring);
    await respond(ctx, { status: 200, headers: {}, body: openapi, databaseMs: 0 }, true, observe);
  };
}

/** What no route took: OPTIONS → 204 with Allow, another method of a known path → 405 with Allow, else 404. */
export const unrouted: Middleware = (ctx) => {
  const matched = (ctx['matched'] ?? []) as { methods: string[] }[];
  const allow = [...new Set([...matched.flatMap(({ methods }) => methods), 'OPTIONS'])].sort().join(', ');
  if (matched.length === 0) throw new Problem('not_found', 'There is nothing at this path.');
  if (ctx.method !== 'OPTIONS') {
    throw new Problem('method_not_allowed', `${ctx.method} is not possible here.`, { headers: { Allow: allow } });
  }
  ctx.set('Allow', allow);
  ctx.status = 204;
};

function requireJsonAccepted(ctx: Context): void {
  const { accept } = ctx.headers;
  if (accept === undefined || accept === '*/*' || accept === 'application/json') return;
  if (ctx.accepts('application/json') === false)
    throw new Problem('not_acceptable', 'Only application/json can be produced.');
}

function readDeps(deps: RouteDeps, ctx: Context): ReadDeps {
  const { observe, replicas, settings } = deps;
  let signal: AbortSignal | undefined;
  return {
    observe,
    replicas,
    queueWaitMs: settings.queueWaitMs,
    chunkRowsMax: settings.chunkRowsMax,
    chunkBytes: settings.chunkBytes,
    chunkWaitMs: settings.statementTimeoutMs,
    get baseUrl() {
      return baseUrl(ctx, settings.publicUrl) + apiPrefix;
    },
    get signal() {
      signal ??= clientSignal(ctx.res);
      return signal;
    },
  };
}
