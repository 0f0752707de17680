import { randomUUID } from 'node:crypto';
import { until } from '../../demo/cluster/wait.js';

/** Clients that read and write without a pause, each one request at a time. */
export interface Load {
  /** Resolves when so many more requests have been answered; false when that takes over 20 s. */
  passed(requests: number): Promise<boolean>;
  /** Resolves when so many more writes have been acknowledged; false when that takes over 30 s. */
  written(writes: number): Promise<boolean>;
  /** Ends the clients; resolves with their counts. May be called again. */
  stop(): Promise<LoadResult>;
}

export interface LoadResult {
  /** Each outcome other than 2xx, once, such as `GET 503 {"type":…}` or the error of a connection. */
  readonly outcomes: readonly string[];
  readonly reads: number;
  readonly writes: number;
  /** Names of the installations whose creation was acknowledged by a 201. */
  readonly created: readonly string[];
  /** The longest time between two acknowledged writes, milliseconds. */
  readonly longestWriteGapMs: number;
}

const readPaths = [
  '/klanten?perPage=10',
  '/installaties?perPage=10',
  '/werkbonnen?perPage=10',
  '/logboeken?perPage=10',
];

/**
 * Starts the clients. A write is repeated with the same Idempotency-Key until it is acknowledged, as a client of the API
 * should; outcomes of failed attempts are noted.
 */
export function startLoad(
  origin: string,
  options: { token: string; customerId: string; readers: number; writers: number },
): Load {
  const outcomes = new Set<string>();
  const created: string[] = [];
  let [reads, writes, answered, isRunning] = [0, 0, 0, true];
  let [lastWriteMs, longestWriteGapMs] = [performance.now(), 0];
  const authorization = `Bearer ${options.token}`;
  const send = async (path: string, init: RequestInit = {}): Promise<boolean> => {
    try {
      const headers = { authorization, ...(init.headers as Record<string, string>) };
      const reply = await fetch(`${origin}/api/v1${path}`, { ...init, headers });
      const text = await reply.text();
      if (!reply.ok) outcomes.add(`${init.method ?? 'GET'} ${reply.status} ${text.replace(/"requestId":"[^"]*"/, '')}`);
      return reply.ok;
    } catch (error) {
      outcomes.add(`${init.method ?? 'GET'} ${(error as Error).cause ?? error}`);
      return false;
    } finally {
      answered++;
    }
  };
  const read = async (n: number): Promise<void> => {
    for (let i = n; isRunning; i++) if (await send(readPaths[i % readPaths.length] as string)) reads++;
  };
  const write = async (): Promise<void> => {
    while (isRunning) {
      const naam = randomUUID();
      const headers = { 'idempotency-key': naam, 'content-type': 'application/json' };
      const body = JSON.stringify({ customerId: options.customerId, naam });
      while (!(await send('/installaties', { method: 'POST', headers, body }))) {
        if (!isRunning) return;
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
      writes++;
      created.push(naam);
      longestWriteGapMs = Math.max(longestWriteGapMs, performance.now() - lastWriteMs);
      lastWriteMs = performance.now();
    }
  };
  const clients = [
    ...Array.from({ length: options.readers }, (_, n) => read(n)),
    ...Array.from({ length: options.writers }, write),
  ];
  return {
    passed: (requests) => {
      const goal = answered + requests;
      return until(() => answered >= goal, 20_000, 10);
    },
    written: (more) => {
      const goal = writes + more;
      return until(() => writes >= goal, 30_000, 10);
    },
    stop: async () => {
      isRunning = false;
      await Promise.all(clients);
      return { outcomes: [...outcomes], reads, writes, created, longestWriteGapMs };
    },
  };
}
