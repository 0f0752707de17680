import { context, propagation, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import type Koa from 'koa';
import { tracerName } from '../tracing.js';

/** Opens the span of each request, under the client's `traceparent` (W3C Trace Context) if it sent one. */
export const traceRequests: Koa.Middleware = (ctx, next) => {
  const parent = propagation.extract(ROOT_CONTEXT, ctx.headers);
  const options = { kind: SpanKind.SERVER, attributes: { 'http.request.method': ctx.method } };
  const span = trace.getTracer(tracerName).startSpan(ctx.method, options, parent);
  ctx.res.once('close', () => {
    const route = String(ctx._matchedRoute ?? 'none');
    const { statusCode, headersSent, writableFinished } = ctx.res;
    span.updateName(`${ctx.method} ${route}`);
    span.setAttribute('http.route', route);
    if (headersSent) span.setAttribute('http.response.status_code', statusCode); // Koa's is 404 before
    if (statusCode >= 500 || !writableFinished) span.setStatus({ code: SpanStatusCode.ERROR });
    span.end();
  });
  return context.with(trace.setSpan(parent, span), next);
};
