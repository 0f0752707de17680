import { type SpanOptions, SpanStatusCode, trace } from '@opentelemetry/api';

/** The name of the gateway among tracers and services. */
export const tracerName = 'workspace-data-gateway';

/**
 * Runs `work` in a span of OpenTelemetry under the current span. Without a current span, as whenever tracing is off, it only runs
 * it. Errors mark the span; their messages, which can quote stored values, stay out of it.
 */
export function inSpan<T>(
  name: string | (() => string),
  work: () => Promise<T>,
  options?: () => SpanOptions,
): Promise<T> {
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
