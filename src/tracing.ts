import { type SpanOptions, SpanStatusCode, trace } from '@opentelemetry/api';
import type { Awaitable } from './awaitable.js';

/** The name of the gateway among tracers and services. */
export const tracerName = 'workspace-data-gateway';

type SpanName = string | (() => string);

/**
 * Runs `work` in a span of OpenTelemetry under the current span. Without a current span, as whenever tracing is off, it only runs
 * it. Errors mark the span; their messages, which can quote stored values, stay out of it.
 */
export function inSpan<T>(name: SpanName, work: () => Promise<T>, options?: () => SpanOptions): Promise<T>;
export function inSpan<T>(name: SpanName, work: () => Awaitable<T>, options?: () => SpanOptions): Awaitable<T>;
export function inSpan<T>(name: SpanName, work: () => Awaitable<T>, options?: () => SpanOptions): Awaitable<T> {
  if (trace.getActiveSpan() === undefined) return work();
  const spanName = typeof name === 'string' ? name : name();
  return trace.getTracer(tracerName).startActiveSpan(spanName, options?.() ?? {}, async (span) => {
    try {
      return await work();
    } catch (error) {
      span.setStatus({ code: SpanStatusCode.ERROR, message: (error as Error).name });
      throw error;
    } finally {
      span.end();
    }
  });
}
