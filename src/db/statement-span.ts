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

/** Runs statements of one round trip in one span. */
export function inBatchSpan<T>(statements: readonly Statement[], work: () => Promise<T>): Promise<T> {
  const joined = (of: (statement: Statement) => string, between: string): string => statements.map(of).join(between);
  const name = joined((statement) => statement.name, ' ');
  return inSpan(name, work, () => ({
    kind: SpanKind.CLIENT,
    attributes: {
      'db.system.name': 'postgresql',
      'db.operation.batch.size': statements.length,
      'db.query.summary': name,
      'db.query.text': joined(({ text }) => text, '; '),
    },
  }));
}
