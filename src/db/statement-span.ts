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
