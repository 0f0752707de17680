import { SpanKind, type SpanOptions, SpanStatusCode, trace } from '@opentelemetry/api';

export const tracerName = 'workspace-data-gateway';

interface TracedStatement {
  readonly name: string;
  readonly text: string;
}

/** Runs `work` in a span below the current one, if there is one. Messages of errors stay out: they can quote values. */
export function traceWork<T>(name: string, work: () => Promise<T>, options: SpanOptions = {}): Promise<T> {
  if (trace.getActiveSpan() === undefined) return work();
  return trace.getTracer(tracerName).startActiveSpan(name, options, async (span) => {
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

/** Runs `work` in one span for the statements of a round trip and the wait for a connection. Texts hold no values. */
export function traceSql<T>(statements: readonly TracedStatement[], work: () => Promise<T>): Promise<T> {
  if (trace.getActiveSpan() === undefined) return work(); // then no text is put together
  const name = statements.map((statement) => statement.name).join(' ');
  return traceWork(name, work, {
    kind: SpanKind.CLIENT,
    attributes: {
      'db.system.name': 'postgresql',
      'db.query.summary': name,
      'db.query.text': statements.map((statement) => statement.text).join('; '),
      ...(statements.length > 1 && { 'db.operation.batch.size': statements.length }),
    },
  });
}
