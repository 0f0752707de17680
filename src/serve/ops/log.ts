import { write } from 'node:fs';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { context, propagation, trace } from '@opentelemetry/api';
import { type DestinationStream, type Logger, type LoggerOptions, pino, stdTimeFunctions } from 'pino';
import { type Event, events, type Observe } from '../../base/events.js';
import { readVersion } from '../../base/paths.js';
import { tracerName } from '../../base/tracing.js';
import { getSqlState } from '../../postgres/database-errors.js';

/** Writes `level` as a word, `time` by ISO 8601, `msg` as the event's type. `observe` learns of lines that stdout does not take. */
export function openLog(level: string, observe: Observe, destination?: DestinationStream) {
  const options: LoggerOptions = {
    level,
    base: { version: readVersion(), pid: process.pid, hostname: hostname() },
    timestamp: stdTimeFunctions.isoTime,
    mixin: getTrace,
    formatters: { level: (word) => ({ level: word }) },
  };
  const stdout = destination ? null : new LogOutput(observe);
  const logger: Logger = pino(options, (destination ?? stdout) as DestinationStream);
  const lines = foldRepeatedLines((logged, repetition) => {
    if (!logger.isLevelEnabled(events[logged.type].level)) return;
    const { type, ...event } = logged;
    const isOfValue = type === 'decode_failed';
    const fields = { ...event, ...('error' in event && describeError(event.error, isOfValue)), ...repetition };
    logger[events[type].level](fields, type);
  });
  const close = async (): Promise<void> => {
    lines.close();
    await stdout?.close();
  };
  /** `stuckMs` says for how long stdout has taken nothing of what waits. */
  return { add: lines.add, stuckMs: () => stdout?.getStuckMs() ?? 0, close };
}

function getTrace(): object {
  const span = trace.getActiveSpan()?.spanContext();
  return span === undefined ? {} : { traceId: span.traceId, spanId: span.spanId };
}

/** Members of a database error that hold no stored value; message, detail, hint, context and statement can hold one. */
const safeMembers = ['code', 'routine', 'schema', 'table', 'constraint'] as const;

/** Leaves out messages that can quote a stored value: of errors that a value caused, database errors and SyntaxErrors. */
function describeError(error: Error, isOfValue: boolean): Record<string, unknown> {
  const chain = listErrorCauses(error);
  const quotesValues = chain.some(
    (link) => isOfValue || getSqlState(link) !== undefined || link instanceof SyntaxError,
  );
  const fields = ({ name, message, stack }: Error): Record<string, unknown> => ({
    error: name,
    ...(!quotesValues && { message }),
    stack: quotesValues ? listFrames(stack, message) : stack,
  });
  const pickSafe = (link: object): object =>
    Object.fromEntries(safeMembers.filter((name) => name in link).map((name) => [name, link[name as never]]));
  const [first, ...causes] = chain.map((link) => ({ ...pickSafe(link), ...fields(link) }));
  return { ...first, ...(causes.length > 0 && { causes }) };
}

/** The chain of causes can be circular. */
function listErrorCauses(error: Error): Error[] {
  const chain: Error[] = [];
  for (let link: unknown = error; link instanceof Error && !chain.includes(link); link = link.cause) chain.push(link);
  return chain;
}

/** Cuts the message off the stack; undefined when the stack does not contain it. */
function listFrames(stack: string | undefined, message: string): string | undefined {
  const at = stack?.indexOf(message) ?? -1;
  if (at < 0) return undefined;
  return stack
    ?.slice(at + message.length)
    .split('\n')
    .filter((line) => line.startsWith('    at '))
    .join('\n');
}

/** Bound of the waiting lines in characters. */
const waitingMax = 500_000;
const collectMs = 10;
/** Pause before a write is tried again, for example because the pipe is full. */
const retryMs = 100;
const endMsMax = 1000;
const nothing = Buffer.alloc(0);
const stdoutDescriptor = 1;
/** A pipe takes PIPE_BUF (pipe(7)) at once or not at all, so that workers do not write into each other's lines. */
const batchBytesMax = 4096;

/**
 * Writes by threads of libuv, so that the gateway waits for no reader: a forked worker's stdout can block. Each write has whole lines.
 * Lines beyond the bound are dropped and counted.
 */
class LogOutput {
  readonly #lines: string[] = [];
  #waiting = 0;
  #batch: Buffer = nothing;
  #writingSinceMs: number | null = null;
  /** Time since which the first waiting line is tried; null while nothing waits. */
  #stuckSinceMs: number | null = null;
  #timer: NodeJS.Timeout | null = null;
  #dropped = 0;

  constructor(private readonly observe: Observe) {
    process.once('exit', this.#endAtExit);
  }

  write(whole: string): void {
    const line = shortenLine(whole);
    if (this.#waiting + line.length > waitingMax) {
      this.#dropped++;
      return this.observe({ type: 'log_line_dropped' });
    }
    this.#lines.push(line);
    this.#waiting += line.length;
    if (this.#writingSinceMs === null) this.#timer ??= setTimeout(this.#begin, collectMs);
  }

  getStuckMs(): number {
    return this.#stuckSinceMs === null ? 0 : performance.now() - this.#stuckSinceMs;
  }

  async close(): Promise<void> {
    const deadlineMs = performance.now() + endMsMax;
    while (this.#writingSinceMs !== null || this.#timer !== null) {
      if (performance.now() > deadlineMs) return;
      await sleep(collectMs);
    }
    process.off('exit', this.#endAtExit);
  }

  readonly #begin = (): void => {
    this.#timer = null;
    this.#writingSinceMs = performance.now();
    this.#stuckSinceMs ??= this.#writingSinceMs;
    if (this.#batch.length === 0) {
      this.#batch = this.#takeBatch();
      if (this.#dropped > 0) this.#reportDropped(); // at once, because the line has room
    }
    write(stdoutDescriptor, this.#batch, this.#handleEnd);
  };

  #takeBatch(): Buffer {
    let [count, bytes] = [0, 0];
    for (const line of this.#lines) {
      bytes += Buffer.byteLength(line);
      if (count > 0 && bytes > batchBytesMax) break;
      count++;
      this.#waiting -= line.length;
    }
    return Buffer.from(this.#lines.splice(0, count).join(''));
  }

  #reportDropped(): void {
    const lines = this.#dropped;
    this.#dropped = 0;
    this.observe({ type: 'log_resumed', lines });
  }

  readonly #handleEnd = (error: NodeJS.ErrnoException | null, bytes: number): void => {
    this.#writingSinceMs = null;
    if (error === null) this.#stuckSinceMs = null;
    if (error === null) this.#batch = this.#batch.subarray(bytes);
    if (this.#batch.length + this.#lines.length === 0) return;
    if (error === null) this.#begin();
    else this.#timer ??= setTimeout(this.#begin, retryMs);
  };

  /** Ends at once, because Node would wait forever for a thread that waits for a blocking pipe. */
  readonly #endAtExit = (): void => {
    if (this.#writingSinceMs !== null && performance.now() - this.#writingSinceMs >= endMsMax)
      process.kill(process.pid, 'SIGKILL');
  };
}

/** Cuts the longest texts of a line, such as the stack of an error. */
function shortenLine(line: string): string {
  if (line.length * 3 <= batchBytesMax || Buffer.byteLength(line) <= batchBytesMax) return line;
  const shortenTexts = (max: number): string =>
    `${JSON.stringify(JSON.parse(line), (_, value) => (typeof value === 'string' && value.length > max ? `${value.slice(0, max)}…` : value))}\n`;
  for (let max = 2048; max > 8; max /= 2) {
    const cut = shortenTexts(max);
    if (Buffer.byteLength(cut) <= batchBytesMax) return cut;
  }
  return shortenTexts(0);
}

export interface Repetition {
  /** Events since the kind's last line, with this one. */
  readonly repeated: number;
  readonly firstAt: string;
  readonly lastAt: string;
  /** The first 20. */
  readonly rows?: readonly string[];
}

export type PrintLine = (event: Event, repetition?: Repetition) => void;

export type RepeatedLines = ReturnType<typeof foldRepeatedLines>;

interface RepeatedKind {
  last: Event;
  repeated: number;
  firstMs: number;
  lastMs: number;
  readonly rows: string[];
}

const minuteMs = 60_000;
const rowsMax = 20;
/** More kinds are distinguished by the type of the event only. */
const kindsMax = 1000;

/** Writes the first event of a kind at once, the others of a minute as one line. Without it a page under a wrong key wrote 1,691. */
export function foldRepeatedLines(print: PrintLine, windowMs = minuteMs) {
  const kinds = new Map<string, RepeatedKind>();
  const begin = (name: string, event: Event): void => {
    kinds.set(name, { last: event, repeated: 0, firstMs: 0, lastMs: 0, rows: [] });
    setTimeout(end, windowMs, name).unref();
  };
  const end = (name: string): void => {
    const kind = kinds.get(name);
    kinds.delete(name);
    if (kind !== undefined && printRepeated(kind, print)) begin(name, kind.last);
  };
  return {
    add(event: Event): void {
      const { repeats } = events[event.type] as { repeats?: readonly (keyof Event)[] };
      if (repeats === undefined) return print(event);
      const full = JSON.stringify([event.type, ...repeats.map((member) => event[member])]);
      const name = kinds.has(full) || kinds.size < kindsMax ? full : event.type;
      const kind = kinds.get(name);
      if (kind === undefined) {
        print(event);
        return begin(name, event);
      }
      kind.last = event;
      kind.lastMs = Date.now();
      if (kind.repeated++ === 0) kind.firstMs = kind.lastMs;
      if ('row' in event && kind.rows.length < rowsMax) kind.rows.push(event.row);
    },
    close(): void {
      for (const kind of kinds.values()) printRepeated(kind, print);
      kinds.clear();
    },
  };
}

function printRepeated({ last, repeated, firstMs, lastMs, rows }: RepeatedKind, print: PrintLine): boolean {
  if (repeated === 0) return false;
  const [firstAt, lastAt] = [firstMs, lastMs].map((ms) => new Date(ms).toISOString()) as [string, string];
  print(last, { repeated, firstAt, lastAt, ...(rows.length > 0 && { rows }) });
  return true;
}

/** An unreachable collector delays the end of the gateway no longer. */
const exportMsMax = 3000;

/** Exports OTLP over HTTP; returns a function that sends waiting spans. Imports the SDK here: others do not pay for it. */
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
    resource: resourceFromAttributes({ 'service.name': tracerName, 'service.version': readVersion() }),
    spanProcessors: [new BatchSpanProcessor(exporter)],
  });
  provider.register();
  return async () => {
    await provider.shutdown().catch(() => undefined); // spans of an unreachable collector are lost
    for (const api of [trace, context, propagation]) api.disable();
  };
}
