import { setTimeout as sleep } from 'node:timers/promises';

/** The gateway refused a request for good, or what is at --base is no gateway; the message is meant for the operator. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** A body is larger than `bodyBytesMax`. */
export class TooLarge extends Error {}

/** Called before each pause, and when an answer is late; `reason` is the end of a sentence. */
export type OnWait = (reason: string, waitMs: number) => void;

/** A client of the API. */
export interface Api {
  /** The body of GET base + path, as text. Throws Refused, TooLarge, or the reason of the signal. */
  text(path: string): Promise<string>;
  /** The same, parsed. Numbers are rounded as JavaScript does. */
  json(path: string): Promise<unknown>;
}

/** Bytes of a body after decompression: a page that is larger is asked for in smaller ones. */
export const bodyBytesMax = 64 * 1024 * 1024;
const silentMsMax = 60_000;
const lateMs = 5_000;
const pauseMsMax = 30_000;
const retryAfterMsMax = 3_600_000;
/** Statuses after which the same request can succeed. */
const passing: ReadonlySet<number> = new Set([408, 429, 500, 502, 503, 504]);

/**
 * Repeats what can succeed later, for as long as it takes: refused and broken connections, bodies that are not whole, a server that is
 * silent for a minute, 429 and 5xx. Waits as Retry-After says, up to an hour, else twice as long each time, up to 30 s.
 */
export function api(base: string, token: string, signal: AbortSignal, onWait: OnWait): Api {
  const headers = { authorization: `Bearer ${token}`, 'accept-encoding': 'gzip' };
  const attempt = async (path: string): Promise<string | Wait> => {
    const stalled = new AbortController();
    const late = setTimeout(() => onWait('it has not answered yet', 0), lateMs);
    const silent = setTimeout(() => stalled.abort(new Error('it was silent for a minute')), silentMsMax);
    try {
      const within = AbortSignal.any([signal, stalled.signal]);
      const reply = await fetch(base + path, { headers, signal: within, redirect: 'manual' });
      const text = await bodyOf(reply, () => silent.refresh());
      return judge(path, reply, text);
    } finally {
      clearTimeout(late);
      clearTimeout(silent);
    }
  };
  const text = async (path: string): Promise<string> => {
    for (let pauseMs = 500; ; pauseMs = Math.min(pauseMs * 2, pauseMsMax)) {
      const outcome = await attempt(path).catch((error: Error) => {
        signal.throwIfAborted();
        if (error instanceof Refused || error instanceof TooLarge) throw error;
        return { reason: reasonOf(error), waitMs: null };
      });
      if (typeof outcome === 'string') return outcome;
      const waitMs = outcome.waitMs ?? pauseMs;
      onWait(outcome.reason, waitMs);
      await sleep(waitMs, undefined, { signal });
    }
  };
  return { text, json: async (path) => JSON.parse(await text(path)) };
}

/** The request can succeed later; null: after a pause of any length. */
interface Wait {
  readonly reason: string;
  readonly waitMs: number | null;
}

function judge(path: string, reply: Response, text: string): string | Wait {
  const place = path.split('?')[0];
  if (reply.status >= 300 && reply.status < 400)
    throw new Refused(
      reply.status,
      `The server redirects ${place} to ${plain(reply.headers.get('location') ?? 'nowhere')}: give that address as --base.`,
    );
  const type = reply.headers.get('content-type') ?? 'application/json';
  if (reply.ok && !type.includes('json'))
    throw new Refused(reply.status, `The server at --base answers with ${plain(type)}, as a gateway does not.`);
  if (reply.ok) {
    if (!/[}\]]\s*$/.test(text)) return { reason: 'its reply is not whole', waitMs: null };
    return text;
  }
  if (!passing.has(reply.status)) throw new Refused(reply.status, `${place}: ${reply.status} ${detailOf(text)}`);
  return { reason: `it answers ${reply.status}`, waitMs: retryAfterMs(reply.headers.get('retry-after')) };
}

async function bodyOf(reply: Response, onBytes: () => void): Promise<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let [text, bytes] = ['', 0];
  for await (const chunk of reply.body ?? []) {
    onBytes();
    bytes += chunk.length;
    if (bytes > bodyBytesMax) throw new TooLarge(`The answer is larger than ${bodyBytesMax} bytes.`);
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}

/** Milliseconds of a Retry-After, which is seconds or a date (RFC 9110, section 10.2.3); null when it is absent or past. */
function retryAfterMs(value: string | null, nowMs = Date.now()): number | null {
  if (value === null) return null;
  const ms = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - nowMs;
  return ms > 0 ? Math.min(ms, retryAfterMsMax) : null;
}

function reasonOf(error: Error): string {
  const { code, message } = (error.cause ?? error) as { code?: string; message: string };
  return code === undefined ? plain(message) : `the connection failed (${code})`;
}

function detailOf(body: string): string {
  try {
    return plain(String((JSON.parse(body) as { detail?: unknown }).detail ?? ''));
  } catch {
    return '';
  }
}

/** Text of the server in one line, without control characters. */
export function plain(text: string): string {
  return text.replace(/[\p{Cc}\u2028\u2029]+/gu, ' ').slice(0, 300);
}
