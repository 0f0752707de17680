import { write } from 'node:fs';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { context, propagation, trace } from '@opentelemetry/api';
import { type DestinationStream, type Logger, type LoggerOptions, pino, stdTimeFunctions } from 'pino';
import { sqlStateOf } from '../../base/errors.js';
import { type Event, events, type Observe } from '../../base/events.js';
import { tracerName } from '../../base/tracing.js';
import { apiVersion } from '../http/render.js';

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
  const stdout = destination ? null : new LogOutput(observe);
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

/** Characters of lines that wait at most, beside as many in the write under way. */
const waitingMax = 500_000;
/** Time in which lines are collected for one write. */
const collectMs = 10;
/** Pause before a write is tried again that the descriptor did not take, for example because the pipe is full. */
const retryMs = 100;
/** Time that a write may take at the end of the process. */
const endMsMax = 1000;

const nothing = Buffer.alloc(0);
const stdoutDescriptor = 1;

/**
 * Writes log lines to stdout without ever waiting for their reader: threads of libuv write, because a stdout that a
 * forked worker shares can be a blocking one. Lines beyond the bound are dropped and counted.
 */
class LogOutput {
  readonly #observe: Observe;
  #waiting = '';
  /** The rest of the write under way or to be repeated. */
  #batch: Buffer = nothing;
  #writingSinceMs: number | null = null;
  #timer: NodeJS.Timeout | null = null;
  #dropped = 0;

  constructor(observe: Observe) {
    this.#observe = observe;
    process.once('exit', this.#atExit);
  }

  /** Takes a line; returns at once. */
  write(line: string): void {
    if (this.#waiting.length + line.length > waitingMax) {
      this.#dropped++;
      return this.#observe({ type: 'log_line_dropped' });
    }
    this.#waiting += line;
    if (this.#writingSinceMs === null) this.#timer ??= setTimeout(this.#begin, collectMs);
  }

  /** Resolves when all lines are written, after a second at the latest. */
  async close(): Promise<void> {
    const deadlineMs = performance.now() + endMsMax;
    while (this.#writingSinceMs !== null || this.#timer !== null) {
      if (performance.now() > deadlineMs) return;
      await sleep(collectMs);
    }
    process.off('exit', this.#atExit);
  }

  readonly #begin = (): void => {
    this.#timer = null;
    this.#writingSinceMs = performance.now();
    if (this.#batch.length === 0) {
      this.#batch = Buffer.from(this.#waiting);
      this.#waiting = '';
      if (this.#dropped > 0) this.#reportDropped(); // now, because there is room for its line
    }
    write(stdoutDescriptor, this.#batch, this.#handleEnd);
  };

  #reportDropped(): void {
    const lines = this.#dropped;
    this.#dropped = 0;
    this.#observe({ type: 'log_resumed', lines });
  }

  readonly #handleEnd = (error: NodeJS.ErrnoException | null, bytes: number): void => {
    this.#writingSinceMs = null;
    if (error === null) this.#batch = this.#batch.subarray(bytes);
    if (this.#batch.length + this.#waiting.length > 0)
      this.#timer ??= setTimeout(this.#begin, error === null ? 0 : retryMs);
  };

  /** Node waits for its threads, and so for ever for a thread that waits for the reader of a blocking pipe. */
  readonly #atExit = (): void => {
    if (this.#writingSinceMs !== null && performance.now() - this.#writingSinceMs >= endMsMax)
      process.kill(process.pid, 'SIGKILL');
  };
}

/** Stands for the further events of a kind in a log line. */
export interface Repetition {
  /** Events of this kind since its last line, the one in this line included. */
  readonly repeated: number;
  /** Times of the first and the last of them, ISO 8601. */
  readonly firstAt: string;
  readonly lastAt: string;
  /** Rows that these events name, the first 20 of them. */
  readonly rows?: readonly string[];
}

/** Writes a log line; with `repetition` it stands for several events. */
export type WriteLine = (event: Event, repetition?: Repetition) => void;

/** Takes events, and limits the lines of kinds that would flood the log. */
export interface RepeatedLines {
  add(event: Event): void;
  /** Writes the counts that are due. */
  close(): void;
}

interface Kind {
  last: Event;
  repeated: number;
  firstMs: number;
  lastMs: number;
  readonly rows: string[];
}

const minuteMs = 60_000;
const rowsMax = 20;
/** Kinds that are told apart at a time; further ones are told apart by the type of the event only. */
const kindsMax = 1000;

/**
 * Writes the first event of a kind at once, and the further ones of a minute as one line with their number: one page under a
 * wrong key wrote 1,691 lines. The table of events says which members make a kind (`repeats`).
 */
export function repeatedLines(write: WriteLine, windowMs = minuteMs): RepeatedLines {
  const kinds = new Map<string, Kind>();
  const begin = (name: string, event: Event): void => {
    kinds.set(name, { last: event, repeated: 0, firstMs: 0, lastMs: 0, rows: [] });
    setTimeout(end, windowMs, name).unref();
  };
  const end = (name: string): void => {
    const kind = kinds.get(name);
    kinds.delete(name);
    if (kind !== undefined && writeRepeated(kind, write)) begin(name, kind.last);
  };
  return {
    add(event) {
      const { repeats } = events[event.type] as { repeats?: readonly (keyof Event)[] };
      if (repeats === undefined) return write(event);
      const full = JSON.stringify([event.type, ...repeats.map((member) => event[member])]);
      const name = kinds.has(full) || kinds.size < kindsMax ? full : event.type;
      const kind = kinds.get(name);
      if (kind === undefined) {
        write(event);
        return begin(name, event);
      }
      kind.last = event;
      kind.lastMs = Date.now();
      if (kind.repeated++ === 0) kind.firstMs = kind.lastMs;
      if ('row' in event && kind.rows.length < rowsMax) kind.rows.push(event.row);
    },
    close() {
      for (const kind of kinds.values()) writeRepeated(kind, write);
      kinds.clear();
    },
  };
}

/** Writes the line of a kind's further events; false when there were none. */
function writeRepeated({ last, repeated, firstMs, lastMs, rows }: Kind, write: WriteLine): boolean {
  if (repeated === 0) return false;
  const [firstAt, lastAt] = [firstMs, lastMs].map((ms) => new Date(ms).toISOString()) as [string, string];
  write(last, { repeated, firstAt, lastAt, ...(rows.length > 0 && { rows }) });
  return true;
}

/** How long an export may take, so that a collector that is away delays the end of the gateway by no more. */
const exportMsMax = 3000;

/**
 * Sends spans to an OTLP collector (HTTP) from now on; `endpoint` is its base URL. Returns the end of it, which sends the spans
 * that wait. The SDK is imported here only, because a gateway without tracing must not pay for it.
 */
export async function startTraces(endpoint: string): Promise<() => Promise<void>> {
  const [{ BatchSpanProcessor, NodeTracerProvider }, { OTLPTraceExporter }, { resourceFromAttributes }] =
    await Promise.all([
      import('@opentelemetry/sdk-trace-node'),
      import('@opentelemetry/exporter-trace-otlp-http'),
      import('@opentelemetry/resources'),
    ]);
  const url = `${endpoint.replace(/\/$/, '')}/v1/traces`;
  const exporter = new OTLPTraceExporter({ url, timeoutMillis: exportMsMax });
  const provider = new NodeTracerProvider({
    resource: resourceFromAttributes({ 'service.name': tracerName, 'service.version': apiVersion }),
    spanProcessors: [new BatchSpanProcessor(exporter)],
  });
  provider.register();
  return async () => {
    await provider.shutdown().catch(() => undefined); // spans of a collector that is away are lost
    for (const api of [trace, context, propagation]) api.disable();
  };
}
