import { setTimeout as sleep } from 'node:timers/promises';

/** The gateway refused a request for good; the message is meant for the operator. */
export class Refused extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** A body as the gateway sent it, and parsed. Numbers in `value` are rounded as JavaScript does. */
export interface Body {
  readonly text: string;
  readonly value: unknown;
}

/** A client of the API. */
export interface Client {
  /** The body of GET base + path. Throws Refused, or the reason of the signal. */
  get(path: string): Promise<Body>;
}

/** Called before each pause; `reason` is the end of a sentence. */
export type OnWait = (reason: string, waitMs: number) => void;

const requestMsMax = 600_000;
const pauseMsMax = 30_000;
const retryAfterMsMax = 3_600_000;
/** Statuses after which the same request can succeed. */
const passing: ReadonlySet<number> = new Set([408, 429, 500, 502, 503, 504]);

/**
 * Repeats what can succeed later, for as long as it takes: refused and broken connections, bodies that are not whole, 429 and 5xx. Waits as
 * Retry-After says, up to an hour, else twice as long each time, up to 30 s.
 */
export function client(base: string, token: string, signal: AbortSignal, onWait: OnWait): Client {
  const headers = { authorization: `Bearer ${token}`, 'accept-encoding': 'gzip' };
  const attempt = async (path: string): Promise<Body | { reason: string; waitMs: number | null }> => {
    const within = AbortSignal.any([signal, AbortSignal.timeout(requestMsMax)]);
    const reply = await fetch(base + path, { headers, signal: within });
    const text = await reply.text();
    const type = reply.headers.get('content-type') ?? 'application/json';
    if (reply.ok && !type.includes('json'))
      return { reason: `it answers with ${type.slice(0, 80)}, as a gateway does not`, waitMs: null };
    if (reply.ok) return { text, value: JSON.parse(text) };
    if (!passing.has(reply.status))
      throw new Refused(reply.status, `${path.split('?')[0]}: ${reply.status} ${detailOf(text)}`);
    return { reason: `it answers ${reply.status}`, waitMs: retryAfterMs(reply.headers.get('retry-after')) };
  };
  return {
    get: async (path) => {
      for (let pauseMs = 500; ; pauseMs = Math.min(pauseMs * 2, pauseMsMax)) {
        const outcome = await attempt(path).catch((error: Error) => {
          signal.throwIfAborted();
          if (error instanceof Refused) throw error;
          return { reason: reasonOf(error), waitMs: null };
        });
        if ('text' in outcome) return outcome;
        const waitMs = outcome.waitMs ?? pauseMs;
        onWait(outcome.reason, waitMs);
        await sleep(waitMs, undefined, { signal });
      }
    },
  };
}

/** Milliseconds of a Retry-After, which is seconds or a date (RFC 9110, section 10.2.3); null when it is absent or past. */
export function retryAfterMs(value: string | null, nowMs = Date.now()): number | null {
  if (value === null) return null;
  const ms = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - nowMs;
  return ms > 0 ? Math.min(ms, retryAfterMsMax) : null;
}

function reasonOf(error: Error): string {
  if (error instanceof SyntaxError) return 'its reply is not whole';
  const { code, message } = (error.cause ?? error) as { code?: string; message: string };
  return `the connection failed (${code ?? message})`;
}

function detailOf(body: string): string {
  try {
    return String((JSON.parse(body) as { detail?: unknown }).detail);
  } catch {
    return '';
  }
}
