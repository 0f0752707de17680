import { SpanKind, type SpanOptions, SpanStatusCode, trace } from '@opentelemetry/api';

/** The name of the gateway among tracers and services. */
export const tracerName = 'workspace-data-gateway';

type SpanName = string | (() => string);

/** A statement as a span shows it. */
interface TracedStatement {
  readonly name: string;
  readonly text: string;
}

/**
 * Runs `work` in a span of OpenTelemetry under the current span. Without a current span, as whenever tracing is off, it only runs
 * it. Errors mark the span; their messages, which can quote stored values, stay out of it.
 */
export function inSpan<T>(name: SpanName, work: () => Promise<T>, options?: () => SpanOptions): Promise<T> {
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

/**
 * Runs the statements of a round trip in one span. It has their texts, which hold no value: values are parameters. Waiting for a connection
 * is part of it.
 */
export function inSqlSpan<T>(statements: readonly TracedStatement[], work: () => Promise<T>): Promise<T> {
  const joined = (of: 'name' | 'text', between: string): string =>
    statements.map((statement) => statement[of]).join(between);
  const name = (): string => joined('name', ' ');
  return inSpan(name, work, () => ({
    kind: SpanKind.CLIENT,
    attributes: {
      'db.system.name': 'postgresql',
      'db.query.summary': name(),
      'db.query.text': joined('text', '; '),
      ...(statements.length > 1 && { 'db.operation.batch.size': statements.length }),
    },
  }));
}
