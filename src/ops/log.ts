import { hostname } from 'node:os';
import { trace } from '@opentelemetry/api';
import { type DestinationStream, type Logger, type LoggerOptions, pino, stdTimeFunctions } from 'pino';
import { sqlStateOf } from '../errors.js';
import { type Event, events, type Observe } from '../events.js';
import { apiVersion } from '../http/render.js';
import { LogOutput } from './log-output.js';
import { repeatedLines } from './repeated-lines.js';

/** Writes events as log lines. */
export interface EventLog {
  add(event: Event): void;
  /** Writes what is due; resolves when stdout has taken all lines, after a second at the latest. */
  close(): Promise<void>;
}

/**
 * Writes events as JSON lines: `level` as a word, `time` by ISO 8601, `version` of the gateway; `msg` is the type of the event.
 * Without a destination to stdout; `observe` then learns of lines that stdout does not take.
 */
export function logEvents(level: string, observe: Observe, destination?: DestinationStream): EventLog {
  const options: LoggerOptions = {
    level,
    base: { version: apiVersion, pid: process.pid, hostname: hostname() },
    timestamp: stdTimeFunctions.isoTime,
    mixin: traceOf,
    formatters: { level: (word) => ({ level: word }) },
  };
  const stdout = destination ? null : new LogOutput(1, observe);
  const logger: Logger = pino(options, (destination ?? stdout) as DestinationStream);
  const lines = repeatedLines((logged, repetition) => {
    if (!logger.isLevelEnabled(events[logged.type].level)) return;
    const { type, ...event } = logged;
    const fields = { ...event, ...('error' in event && errorFields(event.error)), ...repetition };
    logger[events[type].level](fields, type);
  });
  const close = async (): Promise<void> => {
    lines.close();
    await stdout?.close();
  };
  return { add: lines.add, close };
}

/** The ids of the current trace and span; nothing without tracing. */
function traceOf(): object {
  const span = trace.getActiveSpan()?.spanContext();
  return span === undefined ? {} : { traceId: span.traceId, spanId: span.spanId };
}

/** Parts of a database error that hold no stored value; message, detail, hint, context and statement can hold one. */
const safeParts = ['code', 'routine', 'schema', 'table', 'constraint'] as const;

/**
 * The fields that are logged for an error. Leaves out messages that can quote a stored value: those of database errors
 * (`invalid input syntax for type uuid: "…"`), of SyntaxErrors, and of errors whose cause is such an error.
 */
function errorFields(error: Error): Record<string, unknown> {
  const chain = causesOf(error);
  const quotesValues = chain.some((link) => sqlStateOf(link) !== undefined || link instanceof SyntaxError);
  const fields = ({ name, message, stack }: Error): Record<string, unknown> => ({
    error: name,
    ...(!quotesValues && { message }),
    stack: quotesValues ? framesOf(stack, message) : stack,
  });
  const parts = (link: object): object =>
    Object.fromEntries(safeParts.filter((part) => part in link).map((part) => [part, link[part as never]]));
  const [first, ...causes] = chain.map((link) => ({ ...parts(link), ...fields(link) }));
  return { ...first, ...(causes.length > 0 && { causes }) };
}

/** The error and its chain of causes, which can be circular. */
function causesOf(error: Error): Error[] {
  const chain: Error[] = [];
  for (let link: unknown = error; link instanceof Error && !chain.includes(link); link = link.cause) chain.push(link);
  return chain;
}

/** The stack without the message at its head; undefined when the message is not found in it. */
function framesOf(stack: string | undefined, message: string): string | undefined {
  const at = stack?.indexOf(message) ?? -1;
  if (at < 0) return undefined;
  return stack
    ?.slice(at + message.length)
    .split('\n')
    .filter((line) => line.startsWith('    at '))
    .join('\n');
}
