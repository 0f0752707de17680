import { setTimeout as sleep } from 'node:timers/promises';

/** The gateway refused a request for good; the message is meant for the operator. */
export class Refused extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** A client of the API. */
export interface Client {
  /** The body of GET base + path. Throws Refused, or the reason of the signal. */
  get(path: string): Promise<string>;
}

const requestMsMax = 600_000;
const pauseMsMax = 30_000;
/** Statuses after which the same request can succeed. */
const passing: ReadonlySet<number> = new Set([408, 429, 500, 502, 503, 504]);

/**
 * Repeats what can succeed later, for as long as it takes: refused and broken connections, bodies that are not whole, 429 and 5xx. Waits as
 * Retry-After says, else twice as long each time, up to 30 s.
 */
export function client(base: string, token: string, signal: AbortSignal): Client {
  const headers = { authorization: `Bearer ${token}`, 'accept-encoding': 'gzip' };
  const attempt = async (path: string): Promise<{ body: string } | { waitMs: number }> => {
    const within = AbortSignal.any([signal, AbortSignal.timeout(requestMsMax)]);
    const reply = await fetch(base + path, { headers, signal: within });
    const body = await reply.text();
    if (reply.ok) return { body };
    if (!passing.has(reply.status))
      throw new Refused(reply.status, `${path.split('?')[0]}: ${reply.status} ${detailOf(body)}`);
    return { waitMs: Number(reply.headers.get('retry-after') ?? 0) * 1000 };
  };
  return {
    get: async (path) => {
      for (let pauseMs = 500; ; pauseMs = Math.min(pauseMs * 2, pauseMsMax)) {
        const outcome = await attempt(path).catch((error: Error) => {
          signal.throwIfAborted();
          if (error instanceof Refused) throw error;
          return { waitMs: 0 }; // the connection broke
        });
        if ('body' in outcome) return outcome.body;
        await sleep(outcome.waitMs || pauseMs, undefined, { signal });
      }
    },
  };
}

function detailOf(body: string): string {
  try {
    return String((JSON.parse(body) as { detail?: unknown }).detail);
  } catch {
    return '';
  }
}
