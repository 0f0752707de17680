import { SpanKind } from '@opentelemetry/api';
import { inSpan } from '../tracing.js';
import type { Statement } from './statement.js';

/** Runs a statement in a span that has its text, which holds no value: values are parameters. Waiting for a connection is part of it. */
export function inStatementSpan<T>({ name, text }: Statement, work: () => Promise<T>): Promise<T> {
  return inSpan(name, work, () => ({
    kind: SpanKind.CLIENT,
    attributes: { 'db.system.name': 'postgresql', 'db.query.summary': name, 'db.query.text': text },
  }));
}

/** Runs the statements of one round trip in one span. Its texts are joined only while tracing is on. */
export function inBatchSpan<T>(
  steps: readonly { readonly statement: Statement }[],
  work: () => Promise<T>,
): Promise<T> {
  const joined = (of: (statement: Statement) => string, between: string): string =>
    steps.map(({ statement }) => of(statement)).join(between);
  const name = (): string => joined((statement) => statement.name, ' ');
  return inSpan(name, work, () => ({
    kind: SpanKind.CLIENT,
    attributes: {
      'db.system.name': 'postgresql',
      'db.operation.batch.size': steps.length,
      'db.query.summary': name(),
      'db.query.text': joined(({ text }) => text, '; '),
    },
  }));
}
