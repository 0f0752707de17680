import { Router } from '@koa/router';
import type { Context, Middleware } from 'koa';
import { Problem, Shortage } from '../../base/errors.js';
import type { Gates } from '../../base/flow/gates.js';
import { windowSeconds } from '../../base/flow/rate-limiter.js';
import { traceWork } from '../../base/tracing.js';
import type { CompiledResource, CompiledSync, CompiledWrite } from '../../resource/compiled.js';
import { parseDetail, readDetail } from '../read/detail.js';
import { planList } from '../read/list.js';
import { isKnownLarge, runPlan } from '../read/page.js';
import { type ListLimits, parseDryRun, parseList, refuseParameters } from '../read/parse.js';
import type { ReadDeps } from '../read/routing.js';
import type { ReadContent } from '../read-register.js';
import type { Reply } from '../reply.js';
import { planFeed, readDigest, readIds, type SyncDeps } from '../sync/feed.js';
import { type FeedRequest, parseDigest, parseFeed, parseIds, type SyncCall } from '../sync/sync-request.js';
import type { TokenSeal } from '../sync/token-seal.js';
import { type WriteDeps, write } from '../write/write.js';
import { parseWrite } from '../write/write-request.js';
import { type Admission, admit, admitPublic, requireScope } from './admit.js';
import type { BodyReader } from './body.js';
import type { FixedBody } from './descriptions.js';
import { getExchange, makeClientSignal } from './exchange.js';
import { countHeaders, getOrigin } from './request-head.js';
import { type RespondDeps, respond, send } from './respond.js';
import type { Access } from './token-look-up.js';

export interface RouteDeps extends Admission, RespondDeps {
  readonly reads: ReadDeps;
  readonly latestTimeline: SyncDeps['latestTimeline'];
  readonly syncSeal: TokenSeal;
  readonly listLimits: ListLimits;
  readonly publicUrl: string;
  readonly compiled: readonly CompiledResource[];
  /** Fills the register of reads; a page that broke counts the records that were sent. */
  readonly noteRead: (tokenId: string, content: ReadContent) => void;
  readonly gates: Gates;
  readonly index: FixedBody;
  readonly openapi: FixedBody;
  /** Null if DOCS puts the page elsewhere, or has none. */
  readonly docs: FixedBody | null;
  readonly writes: (WriteDeps & { readonly readBody: BodyReader }) | null;
}

const apiPrefix = '/api/v1';

/** Paths are case-sensitive; a trailing slash makes another path, except for the index. */
const makeRouter = (): Router => new Router({ sensitive: true, strict: true });
const resourceIn = /^\/api\/v1\/(?:sync\/)?([^/]+)/;

/** Gives each resource a router, because a router tries its paths one after another. */
export function makeRoutes(deps: RouteDeps): Middleware {
  const byResource = new Map(deps.compiled.map((each) => [each.resource.name, makeResourceRoutes(deps, each)]));
  const others = makeOtherRoutes(deps);
  return (ctx, next) => (byResource.get(resourceIn.exec(ctx.path)?.[1] ?? '') ?? others)(ctx, next);
}

function makeResourceRoutes(deps: RouteDeps, compiled: CompiledResource): Middleware {
  const router = makeRouter();
  const { name, detail } = compiled.resource;
  const path = `${apiPrefix}/${name}`;
  router.get(path, makeListRoute(deps, compiled));
  if (detail) router.get(`${path}/:id`, makeDetailRoute(deps, compiled));
  if (compiled.sync !== null) {
    const pass = `${apiPrefix}/sync/${name}`;
    const route = makeSyncRoute(deps, compiled.sync);
    const readFeed = async (sync: SyncDeps, request: FeedRequest) => runPlan(await planFeed(sync, request));
    const feed = route((call) => parseFeed(call, deps.listLimits), readFeed);
    const digest = route((call) => parseDigest(call, deps.listLimits), readDigest);
    const ids = route(parseIds, readIds);
    router.get(pass, feed).get(`${pass}/digest`, digest).get(`${pass}/ids`, ids);
  }
  if (compiled.write !== null && deps.writes !== null) {
    const write = makeWriteRoute(deps, deps.writes, compiled, compiled.write);
    if (compiled.write.creates) router.post(path, write);
    router.patch(`${path}/:id`, write);
  }
  return router.routes() as Middleware;
}

function makeOtherRoutes(deps: RouteDeps): Middleware {
  const router = makeRouter();
  router.get(`${apiPrefix}/token`, makeTokenRoute(deps));
  router.get([apiPrefix, `${apiPrefix}/`, '/'], makePublicRoute(deps, deps.index));
  router.get(`${apiPrefix}/openapi.json`, makePublicRoute(deps, deps.openapi));
  if (deps.docs !== null) router.get('/docs', makePublicRoute(deps, deps.docs, false));
  return router.routes() as Middleware;
}

interface RouteRules {
  readonly kind: 'read' | 'write';
  readonly scope?: string;
  readonly isCompressible: boolean;
}

/** Passes a request with a token through limits → scope → Accept → its own stages → respond. */
function makeAdmitted(
  deps: RouteDeps,
  rules: RouteRules,
  stages: (ctx: Context, access: Access) => Promise<Reply>,
): Middleware {
  const { kind, scope, isCompressible } = rules;
  return async (ctx) => {
    const access = await traceWork('authenticate', () => admit(deps, ctx, kind));
    if (scope !== undefined) requireScope(access, scope);
    requireJsonAccepted(ctx);
    const reply = await stages(ctx, access);
    await traceWork('respond', () => respond(ctx, reply, isCompressible, deps));
    const { content } = getExchange(ctx).sent;
    if (content && ctx.method !== 'HEAD') deps.noteRead(access.tokenId, content);
  };
}

function makeListRoute(deps: RouteDeps, compiled: CompiledResource): Middleware {
  const scope = `read:${compiled.resource.name}`;
  return makeAdmitted(deps, { kind: 'read', scope, isCompressible: true }, async (ctx, access) => {
    const call = makeCall(deps, ctx, access);
    const request = parseList({ compiled, ...call }, deps.listLimits);
    const isLarge = isKnownLarge(deps.reads, request);
    if (isLarge) await enterLargePage(deps, ctx, call);
    const reply = await traceWork('read', async () => runPlan(await planList(deps.reads, request)));
    // Only its first chunk shows that a page is large if nothing was known of the weight of its rows.
    if (!isLarge && !Buffer.isBuffer(reply.body)) await enterLargePage(deps, ctx, call);
    return reply;
  });
}

type Call = ReturnType<typeof makeCall>;

function makeCall({ publicUrl }: RouteDeps, ctx: Context, caller: Access) {
  const baseUrl = getOrigin(ctx, publicUrl) + apiPrefix;
  return { caller, query: ctx.querystring, baseUrl, signal: makeClientSignal(ctx.res) };
}

/** Counts a large page until its response is closed. Throws Problem `overloaded`, or ClientGone. */
async function enterLargePage({ gates, reads }: RouteDeps, { res }: Context, call: Call): Promise<void> {
  const { caller, signal } = call;
  const waiting = { waitMs: reads.queueWaitMs, lane: caller.tokenId, signal };
  res.once('close', await gates.largePages.enter([caller.tokenId, `workspace ${caller.workspace}`], waiting));
}

/** Makes the stages of sync, which count as a large page: a request can examine every record of the workspace. */
function makeSyncRoute(deps: RouteDeps, { rows: compiled, statements: sync }: CompiledSync) {
  const scope = `read:${compiled.resource.name}`;
  return <Request>(
    parse: (call: SyncCall) => Request,
    read: (deps: SyncDeps, request: Request) => Promise<Reply>,
  ): Middleware =>
    makeAdmitted(deps, { kind: 'read', scope, isCompressible: true }, async (ctx, access) => {
      const call = { compiled, sync, seal: deps.syncSeal, ...makeCall(deps, ctx, access) };
      const request = await deps.syncSeal.parseWithEachKey(() => parse(call));
      await enterLargePage(deps, ctx, call);
      return traceWork('read', () => read(deps, request));
    });
}

function makeDetailRoute(deps: RouteDeps, compiled: CompiledResource): Middleware {
  const scope = `read:${compiled.resource.name}`;
  return makeAdmitted(deps, { kind: 'read', scope, isCompressible: false }, async (ctx, access) => {
    refuseParameters(ctx.querystring, 'detail');
    const { 'if-match': ifMatch, 'if-none-match': ifNoneMatch } = ctx.req.headers;
    const request = parseDetail(compiled, access, ctx.params.id as string, { ifMatch, ifNoneMatch });
    return traceWork('read', () => readDetail(deps.reads, request));
  });
}

const keyHeader = 'idempotency-key';

/** Checks everything before the primary is contacted. */
function makeWriteRoute(
  deps: RouteDeps,
  writes: NonNullable<RouteDeps['writes']>,
  compiled: CompiledResource,
  rules: CompiledWrite,
): Middleware {
  const { name } = compiled.resource;
  return makeAdmitted(deps, { kind: 'write', scope: `write:${name}`, isCompressible: false }, async (ctx, access) => {
    const body = await writes.readBody(ctx, mediaTypes[ctx.method] as readonly string[]);
    const isDryRun = parseDryRun(ctx.querystring);
    if (isDryRun) getExchange(ctx).headers.push('Dry-Run', 'true'); // refusals have it, too
    const request = parseWrite(rules, access, access.scopes.has(`read:${name}`), {
      isDryRun,
      method: ctx.method,
      path: ctx.path,
      id: (ctx.params.id as string | undefined) ?? null,
      idempotencyKey: { value: ctx.get(keyHeader) || undefined, timesSent: countHeaders(ctx.req, keyHeader) },
      ifMatch: ctx.req.headers['if-match'],
      body,
    });
    const location = (id: string): string =>
      `${getOrigin(ctx, deps.publicUrl)}${apiPrefix}/${name}/${encodeURIComponent(id)}`;
    if (writes.refuses(name)) throw new Shortage('unfit for writes');
    return traceWork('write', () => write(writes, rules, request, location));
  });
}

/** PATCH bodies are merge patches (RFC 7396). */
const mediaTypes: Readonly<Record<string, readonly string[]>> = {
  POST: ['application/json'],
  PATCH: ['application/json', 'application/merge-patch+json'],
};

function makeTokenRoute(deps: RouteDeps): Middleware {
  const { token, write } = deps.limits;
  const writes = write === null ? [] : [{ name: 'writes', quota: write.quota, windowSeconds }];
  return makeAdmitted(deps, { kind: 'read', isCompressible: false }, async (ctx, access) => {
    refuseParameters(ctx.querystring);
    const { name, workspace, scopes, expiresAtMs, requestsPerMinute: quota = token.quota } = access;
    const expiresAt = Number.isFinite(expiresAtMs) ? new Date(expiresAtMs).toISOString() : null;
    const body = JSON.stringify({
      name,
      workspaceId: workspace,
      scopes: [...scopes].filter((scope) => scope !== '').sort(),
      expiresAt,
      limits: [{ name: 'default', quota, windowSeconds }, ...writes], // as `RateLimit-Policy` names them
    });
    return { status: 200, headers: {}, body, databaseMs: 0 };
  });
}

/** Passes a request for a document without a token through limit per address → Accept → respond. */
function makePublicRoute(deps: RouteDeps, document: FixedBody, isJson = true): Middleware {
  return async (ctx) => {
    await admitPublic(deps, ctx);
    if (isJson) {
      requireJsonAccepted(ctx);
      refuseParameters(ctx.querystring);
    }
    const { 'accept-encoding': acceptEncoding, 'if-none-match': ifNoneMatch } = ctx.req.headers;
    await respond(ctx, await document.reply(acceptEncoding, ifNoneMatch), false, deps);
  };
}

/** Answers OPTIONS with 204, another method of a known path with 405, and 404 otherwise; within the limit of the address. */
export async function answerUnrouted(deps: Admission, ctx: Context): Promise<void> {
  await admitPublic(deps, ctx);
  const matched = (ctx.matched ?? []) as { methods: string[] }[];
  const headers = { Allow: [...new Set([...matched.flatMap(({ methods }) => methods), 'OPTIONS'])].sort().join(', ') };
  if (matched.length === 0) throw new Problem('not_found', 'There is nothing at this path.');
  if (ctx.method !== 'OPTIONS')
    throw new Problem('method_not_allowed', `${ctx.method} is not allowed on this path.`, { headers });
  send(ctx, 204, null, headers);
}

/** A longer Accept is disregarded (RFC 9110 §12.5.1): its parser takes quadratic time, 30 ms for 16 KB. */
const acceptCharactersMax = 1000;

function requireJsonAccepted(ctx: Context): void {
  const { accept = '*/*' } = ctx.req.headers;
  if (accept === '*/*' || accept === 'application/json' || accept.length > acceptCharactersMax) return;
  // Some clients ask for a charset although JSON defines none.
  if (ctx.accepts('application/json', 'application/json; charset=utf-8') === false)
    throw new Problem('not_acceptable', 'Only application/json is available.');
}
