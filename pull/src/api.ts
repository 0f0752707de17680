import { setTimeout as sleep } from 'node:timers/promises';

/** The gateway refused a request, and repeating it cannot help, or --base is no gateway; the message is for the operator. */
export class RefusedRequest extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** The answer broke off, or is not whole: the same request can succeed later. The message is the end of a sentence. */
export class BrokenAnswer extends Error {}

/** Is called before each pause, and when an answer is late; `reason` is the end of a sentence. */
export type OnWait = (reason: string, waitMs: number) => void;

/** Takes a body while it comes. */
type TakeBody<T> = (text: AsyncIterable<string>, headers: Headers) => Promise<T>;

export interface Api {
  /** Passes the body of GET base + path to `take` as it comes, once more when it breaks off. Throws Refused, or what `take` throws. */
  stream<T>(path: string, take: TakeBody<T>): Promise<T>;
  /** Returns the parsed body. Numbers are rounded as JavaScript does. */
  getJson(path: string): Promise<unknown>;
  /** Returns the body, with the moment up to which it is current; null: the gateway does not say. */
  getDatedJson(path: string): Promise<{ readonly body: unknown; readonly dataAsOf: string | null }>;
}

/** Bound of a body that is kept whole, in bytes after decompression. */
const bodyBytesMax = 64 * 1024 * 1024;
const silentMsMax = 60_000;
const lateMs = 5_000;
const pauseMsMax = 30_000;
const retryAfterMsMax = 3_600_000;
/** Answers 500 in a row after which a request is given up: some minutes. */
const internalErrorsMax = 10;
/** Statuses after which the same request can succeed. */
const passingStatuses: ReadonlySet<number> = new Set([408, 429, 500, 502, 503, 504]);

/**
 * Repeats for as long as it takes: refused and broken connections, incomplete bodies, a server that is silent for a minute, 429 and 5xx;
 * 500 for some minutes. Waits as Retry-After says, up to an hour, otherwise twice as long each time, up to 30 s. Reads the token once more
 * after a 401.
 */
export function makeApi(
  base: string,
  readToken: () => string,
  signal: AbortSignal,
  onWait: OnWait,
  firstPauseMs = 500,
): Api {
  let token = readToken();
  const sendOnce = async <T>(path: string, take: TakeBody<T>): Promise<T> => {
    const stalled = new AbortController();
    /** Waits for the server, but not for `take`. */
    const waitForServer = async <V>(wanted: Promise<V>): Promise<V> => {
      const late = setTimeout(() => onWait('it has not answered yet', 0), lateMs);
      const silent = setTimeout(() => stalled.abort(new Error('it was silent for a minute')), silentMsMax);
      try {
        return await wanted;
      } catch (error) {
        signal.throwIfAborted();
        throw new BrokenAnswer(getReason(error as Error));
      } finally {
        clearTimeout(late);
        clearTimeout(silent);
      }
    };
    const within = AbortSignal.any([signal, stalled.signal]);
    const headers = { authorization: `Bearer ${token}`, 'accept-encoding': 'gzip' };
    const reply = await waitForServer(fetch(base + path, { headers, signal: within, redirect: 'manual' }));
    try {
      await judgeReply(path, reply, () => readWholeText(readText(reply, waitForServer)));
      return await take(readText(reply, waitForServer), reply.headers);
    } finally {
      stalled.abort();
    }
  };
  const stream: Api['stream'] = async (path, take) => {
    for (let pauseMs = firstPauseMs, internalErrors = 0; ; pauseMs = Math.min(pauseMs * 2, pauseMsMax)) {
      try {
        return await sendOnce(path, take);
      } catch (error) {
        const before = token;
        if (error instanceof RefusedRequest && error.status === 401) token = readToken();
        if (token !== before) continue;
        if (!(error instanceof BrokenAnswer)) throw error;
        if (error instanceof RetryLater && error.status === 500 && ++internalErrors === internalErrorsMax)
          throw new RefusedRequest(500, `${path.split('?')[0]}: ${error.message}, each time.`);
        const waitMs = (error instanceof RetryLater && error.waitMs) || pauseMs;
        onWait(error.message, waitMs);
        await sleep(waitMs, undefined, { signal });
      }
    }
  };
  const getDatedJson: Api['getDatedJson'] = (path) =>
    stream(path, async (chunks, reply) => {
      const text = await readWholeText(chunks);
      if (!/[}\]]\s*$/.test(text)) throw new BrokenAnswer('its reply is not whole');
      return { body: parseAnswer(text), dataAsOf: findMoment(reply.get('data-as-of')) };
    });
  return { stream, getDatedJson, getJson: async (path) => (await getDatedJson(path)).body };
}

function parseAnswer(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new RefusedRequest(200, 'The server at --base answers with broken JSON, as a gateway does not.');
  }
}

/** Reads a member of an answer, which every gateway gives. Throws Refused. */
export function getMember<T>(body: unknown, name: string): T {
  const value = (body as Record<string, unknown> | null)?.[name];
  if (typeof value === 'object' && value !== null) return value as T;
  throw new RefusedRequest(200, `The server at --base answers without ${name}, as a gateway does not.`);
}

/** The server asks to come again; null: after a pause of any length. */
class RetryLater extends BrokenAnswer {
  constructor(
    message: string,
    readonly status: number,
    readonly waitMs: number | null,
  ) {
    super(message);
  }
}

/** Throws unless the reply is the requested JSON. */
async function judgeReply(path: string, reply: Response, text: () => Promise<string>): Promise<void> {
  const resourcePath = path.split('?')[0];
  if (reply.status >= 300 && reply.status < 400)
    throw new RefusedRequest(
      reply.status,
      `The server redirects ${resourcePath} to ${stripControls(reply.headers.get('location') ?? 'nowhere')}: give that address as --base.`,
    );
  const type = reply.headers.get('content-type') ?? 'application/json';
  if (reply.ok && !type.includes('json'))
    throw new RefusedRequest(
      reply.status,
      `The server at --base answers with ${stripControls(type)}, as a gateway does not.`,
    );
  if (reply.ok) return;
  const passes = passingStatuses.has(reply.status);
  const body = await (passes ? text().catch(() => '') : text()); // 504 of a proxy is temporary, 504 of the gateway is not
  if (!passes || body.includes('"code":"query_timeout"'))
    throw new RefusedRequest(reply.status, `${resourcePath}: ${reply.status} ${getDetail(body)}`);
  const detail = getDetail(body).replace(/[.;]+$/, '');
  throw new RetryLater(
    `it answers ${reply.status}${detail && ` (${detail})`}`,
    reply.status,
    getRetryAfterMs(reply.headers.get('retry-after')),
  );
}

/** Yields the text of a body, while it comes. */
async function* readText(
  reply: Response,
  waitForServer: <V>(wanted: Promise<V>) => Promise<V>,
): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const reader = reply.body?.getReader();
  if (reader === undefined) return;
  for (;;) {
    const { done, value } = await waitForServer(reader.read());
    let text: string;
    try {
      text = decoder.decode(value, { stream: !done });
    } catch {
      throw new BrokenAnswer('its reply is no UTF-8');
    }
    yield text;
    if (done) return;
  }
}

async function readWholeText(chunks: AsyncIterable<string>): Promise<string> {
  let text = '';
  for await (const chunk of chunks) {
    text += chunk;
    if (text.length > bodyBytesMax) throw new RefusedRequest(200, `The answer is larger than ${bodyBytesMax} bytes.`);
  }
  return text;
}

/** Formats a moment as every destination takes it. */
function findMoment(value: string | null): string | null {
  const ms = Date.parse(value ?? '');
  return Number.isNaN(ms) ? null : new Date(ms).toISOString();
}

/** Reads seconds or a date (RFC 9110, section 10.2.3); null when it is absent or past. */
function getRetryAfterMs(value: string | null, nowMs = Date.now()): number | null {
  if (value === null) return null;
  const ms = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - nowMs;
  return ms > 0 ? Math.min(ms, retryAfterMsMax) : null;
}

function getReason(error: Error): string {
  const { code, message } = (error.cause ?? error) as { code?: string; message: string };
  return code === undefined ? stripControls(message) : `the connection failed (${code})`;
}

function getDetail(body: string): string {
  try {
    return stripControls(String((JSON.parse(body) as { detail?: unknown }).detail ?? ''));
  } catch {
    return '';
  }
}

/** Puts text of the server into one line, without control characters. */
export function stripControls(text: string, lengthMax = 300): string {
  return text.replace(/[\p{Cc}\u2028\u2029]+/gu, ' ').slice(0, lengthMax);
}
