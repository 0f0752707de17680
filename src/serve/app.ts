import { context, propagation, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import Koa, { type Context } from 'koa';
import { ClientGone, Problem, Shortage } from '../base/errors.js';
import type { Event } from '../base/events.js';
import { tracerName } from '../base/tracing.js';
import { findNameIn, getCorrection, getDatabaseErrorKind, getSqlState } from '../postgres/database-errors.js';
import { type CrossOrigin, makeCrossOrigin } from './http/cors.js';
import { getExchange, startExchange } from './http/exchange.js';
import { commonHeaders, renderProblem } from './http/render.js';
import { checkHost, checkTarget, checkTransferEncoding } from './http/request-head.js';
import { send } from './http/respond.js';
import { answerUnrouted, makeRoutes, type RouteDeps } from './http/routes.js';

export interface AppDeps extends RouteDeps {
  readonly trustedProxyHops: number;
  /** Values of the headers; empty: none. */
  readonly deprecation: string;
  readonly sunset: string;
  readonly corsOrigins: string;
  readonly logClientAddress: boolean;
  readonly tracing: boolean;
  readonly inFlight: { requests: number };
}

/** The connection closed before the response; nginx logs the same number. */
const statusWithoutResponse = 499;

/** Koa's own listeners for the end of a request take 5 % of a single record's processor time. */
class Application extends Koa {
  handleRequest(ctx: Context, middleware: (ctx: Context) => Promise<void>): Promise<void> {
    return middleware(ctx).catch((error) => ctx.onerror(error));
  }
}

/** A request goes: begin → check the target → preflight → route (http/routes) → answer errors. */
export function makeApp(deps: AppDeps): Koa {
  const koa = new Application({ proxy: deps.trustedProxyHops > 0, maxIpsCount: deps.trustedProxyHops });
  if (deps.tracing) koa.use(traceRequests);
  koa.silent = true; // answerError reports every error; Koa itself would only log clients that disconnect
  const cors = makeCrossOrigin(deps.corsOrigins);
  const begin = makeBeginning(deps, cors);
  const route = makeRoutes(deps);
  koa.use(async (ctx) => {
    begin(ctx);
    try {
      checkHost(ctx.req);
      checkTransferEncoding(ctx.req);
      checkTarget(ctx.req);
      if (cors?.isPreflight(ctx.req)) return send(ctx, 204, null);
      await route(ctx, () => answerUnrouted(deps, ctx));
    } catch (error) {
      answerError(deps, ctx, error);
    }
  });
  return koa;
}

/** Sets the request's id and common headers, and reports it when its response is closed. */
function makeBeginning(deps: AppDeps, cors: CrossOrigin | null): (ctx: Context) => void {
  const { observe, deprecation, sunset, logClientAddress, inFlight } = deps;
  const headers = Object.entries({
    ...commonHeaders,
    ...(deprecation && { Deprecation: deprecation }),
    ...(sunset && { Sunset: sunset }),
  }).flat();
  return (ctx) => {
    const exchange = startExchange(ctx.req, cors === null ? headers : [...headers, ...cors.headersFor(ctx.req)]);
    const { socket } = ctx.req;
    const address = logClientAddress ? { address: ctx.ip } : {}; // read now, because a closed socket has no address
    ctx.state.exchange = exchange;
    ctx.respond = false; // http/respond sends every response
    inFlight.requests++;
    const reportFinished = (): void => {
      inFlight.requests--;
      observe({
        type: 'request_finished',
        requestId: exchange.requestId,
        method: ctx.method,
        route: String(ctx._matchedRoute ?? 'none'),
        status: ctx.res.headersSent ? ctx.res.statusCode : statusWithoutResponse,
        code: exchange.code,
        complete: ctx.res.writableFinished,
        durationMs: Math.round((performance.now() - exchange.startedMs) * 1000) / 1000,
        tokenId: exchange.access?.tokenId ?? exchange.refused?.id ?? null,
        ...(exchange.refused && { tokenRefused: exchange.refused.reason }),
        workspace: exchange.access?.workspace ?? null,
        rows: exchange.sent.page?.rows ?? null,
        perPage: exchange.sent.page?.perPage ?? null,
        bytes: socket.bytesWritten - exchange.bytesBefore,
        ...address,
      });
    };
    // `close` comes once, and `on` is cheaper than `once`. Bound, so that the log line has the trace id.
    ctx.res.on('close', context.bind(context.active(), reportFinished));
  };
}

/** Turns an error into a response, as no other function does. */
function answerError({ observe }: AppDeps, ctx: Context, error: unknown): void {
  if (error instanceof ClientGone || ctx.res.destroyed) return;
  const exchange = getExchange(ctx);
  const { requestId } = exchange;
  const problem = toProblem(error, ctx.method);
  const route = String(ctx._matchedRoute ?? 'none');
  if (problem.code === 'internal' || getDatabaseErrorKind(error) === 'unfit')
    observe(describeFailure(error as Error, requestId, route));
  if (problem.code === 'overloaded')
    observe({ type: 'request_shed', bound: problem.bound, route, workspace: exchange.access?.workspace ?? null });
  if (problem.cause instanceof Error) observe({ type: 'value_refused', requestId, error: problem.cause });
  exchange.code = problem.code;
  if (ctx.res.headersSent) return void ctx.res.destroy(); // a second head would be a second response
  const { status, headers, body } = renderProblem(problem, requestId);
  send(ctx, status, body, headers);
}

function toProblem(error: unknown, method: string): Problem {
  if (error instanceof Problem) return error;
  if (getDatabaseErrorKind(error) === 'unfit')
    return new Shortage(/^(GET|HEAD)$/.test(method) ? 'unfit for reads' : 'unfit for writes');
  if (getCorrection(error) !== undefined)
    return new Problem('internal', 'The database of the API is misconfigured; retrying will not help.');
  if (getDatabaseErrorKind(error) === 'retry' && (error as { code?: unknown }).code !== undefined)
    return new Shortage('no answer');
  return new Problem('internal', 'Something went wrong on our side. Quote the request id when you report it.');
}

/** Reports a fault of the database with its correction, or a bug. */
function describeFailure(error: Error, requestId: string, route: string): Event {
  const correction = getCorrection(error);
  if (correction === undefined) return { type: 'request_failed', requestId, error };
  const code = getSqlState(error) as string;
  return { type: 'database_unfit', requestId, route, code, object: findNameIn(error), correction };
}

/** Continues the client's `traceparent` (W3C Trace Context). */
const traceRequests: Koa.Middleware = (ctx, next) => {
  const parent = propagation.extract(ROOT_CONTEXT, ctx.headers);
  const options = { kind: SpanKind.SERVER, attributes: { 'http.request.method': ctx.method } };
  const span = trace.getTracer(tracerName).startSpan(ctx.method, options, parent);
  ctx.res.once('close', () => {
    const route = String(ctx._matchedRoute ?? 'none');
    const { statusCode, headersSent, writableFinished } = ctx.res;
    span.updateName(`${ctx.method} ${route}`);
    span.setAttribute('http.route', route);
    if (headersSent) span.setAttribute('http.response.status_code', statusCode); // the status of Koa is 404 before
    if (statusCode >= 500 || !writableFinished) span.setStatus({ code: SpanStatusCode.ERROR });
    span.end();
  });
  return context.with(trace.setSpan(parent, span), next);
};
