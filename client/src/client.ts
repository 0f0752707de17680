import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';

/** The gateway refused a request. `code` is stable: compare it, not the text. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    /** A code such as `not_found` or `insufficient_scope`, or `unknown` if the answer is not the gateway's. */
    readonly code: string,
    detail: string,
    readonly requestId: string | null,
    readonly errors: readonly Fault[],
  ) {
    super([`${status} ${code}: ${detail}`, ...errors.map((each) => `${describeWhere(each)} ${each.detail}`)].join(' '));
  }
}

/** A fault of the request: one of the places, a code, and a sentence. */
export interface Fault {
  readonly pointer?: string;
  readonly parameter?: string;
  readonly header?: string;
  readonly code: string;
  readonly detail: string;
}

const describeWhere = ({ pointer, parameter, header }: Fault): string => pointer ?? parameter ?? header ?? '';

/** No answer came, although the request was repeated. A change may have happened: `repeat` the request later. */
export class NoAnswer extends Error {
  constructor(
    message: string,
    readonly request: Request,
  ) {
    super(message);
  }
}

/** A request can be stored as JSON and sent again: with the same key a change takes effect once. */
export interface Request {
  readonly method: 'GET' | 'POST' | 'PATCH';
  readonly path: string;
  readonly body?: JsonObject;
  readonly key?: string;
  readonly etag?: string | null;
}

export interface ClientOptions {
  /** Address with `/api/v1`, such as https://data.example.com/api/v1. */
  readonly base: string;
  /** A token, or a function that is called for each request, because a token can be replaced. */
  readonly token: string | (() => string);
  readonly signal?: AbortSignal;
  /** The gateway tries each write without storing it; `store` is not called. */
  readonly dryRun?: boolean;
  /** Number of times that a request is sent, at most. */
  readonly attemptsMax?: number;
  /** Milliseconds before the first repetition; each next pause is twice as long, up to 30 s. */
  readonly firstPauseMs?: number;
}

export type Query = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;
export type JsonObject = Readonly<Record<string, unknown>>;

/** A record with the version that a change of it is based on. */
export interface Versioned<T> {
  readonly record: T;
  readonly etag: string | null;
}

/** Is called with each write before it is sent: a program that stores it can repeat it after a crash. */
export type Store = (request: Request) => Promise<void> | void;

export interface Client {
  /** Yields the records of a list, such as `werkbonnen`, from its first page to its last. */
  listAll<T = JsonObject>(list: string, query?: Query): AsyncGenerator<T>;
  /** Returns a record, such as `installaties/ID`, or another answer in JSON. */
  get<T = JsonObject>(path: string): Promise<Versioned<T>>;
  create<T = JsonObject>(list: string, record: JsonObject, store?: Store): Promise<Versioned<T>>;
  /** Reads a record, and sends the change that `decide` makes of it; null: none. Repeats both after another client's change. */
  change<T = JsonObject>(path: string, decide: (record: T) => JsonObject | null, store?: Store): Promise<Versioned<T>>;
  /** Sends a stored request again. */
  repeat<T = JsonObject>(request: Request): Promise<Versioned<T>>;
}

interface Reply {
  readonly body: unknown;
  readonly etag: string | null;
}

/** An answer after which the same request can succeed. */
class PassingFailure extends Error {
  constructor(
    message: string,
    readonly waitMs: number | null,
  ) {
    super(message);
  }
}

const pauseMsMax = 30_000;
/** Attempts of a change that other clients preceded. */
const conflictsMax = 10;

/** Makes a client, which repeats a request with the same key after 429, 503 and lost answers. */
export function workspaceClient(options: ClientOptions): Client {
  const send = (request: Request): Promise<Reply> => sendUntilAnswered(options, request);
  const sendVersioned = async <T>(request: Request): Promise<Versioned<T>> => {
    const { body, etag } = await send(request);
    return { record: body as T, etag };
  };
  const storeAndSend = async <T>(request: Request, store?: Store): Promise<Versioned<T>> => {
    if (!options.dryRun) await store?.(request);
    return sendVersioned(request);
  };
  return {
    async *listAll<T>(list: string, query: Query = {}) {
      for (let cursor: string | undefined; ; ) {
        const path = `${list}${composeQuery({ perPage: 1000, ...query, cursor })}`;
        const { data, pagination } = (await send({ method: 'GET', path })).body as Page<T>;
        yield* data;
        if (pagination.nextCursor === null) return;
        cursor = pagination.nextCursor;
      }
    },
    get: (path) => sendVersioned({ method: 'GET', path }),
    create: async (path, body, store) => storeAndSend({ method: 'POST', path, body, key: randomUUID() }, store),
    repeat: sendVersioned,
    async change<T>(path: string, decide: (record: T) => JsonObject | null, store?: Store) {
      for (let conflicts = 0; ; ) {
        const before = await sendVersioned<T>({ method: 'GET', path });
        const body = decide(before.record);
        if (body === null) return before;
        try {
          return await storeAndSend<T>({ method: 'PATCH', path, body, key: randomUUID(), etag: before.etag }, store);
        } catch (error) {
          const isConflict = error instanceof ApiError && error.code === 'precondition_failed';
          if (!isConflict || ++conflicts > conflictsMax) throw error;
        }
      }
    },
  };
}

interface Page<T> {
  readonly data: readonly T[];
  readonly pagination: { readonly nextCursor: string | null; readonly complete: boolean };
}

function composeQuery(query: Query): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  return `?${new URLSearchParams(given.map(([name, value]): [string, string] => [name, String(value)]))}`;
}

async function sendUntilAnswered(options: ClientOptions, request: Request): Promise<Reply> {
  const { signal, attemptsMax = 8, firstPauseMs = 500 } = options;
  for (let attempt = 1, pauseMs = firstPauseMs; ; attempt++, pauseMs = Math.min(2 * pauseMs, pauseMsMax)) {
    try {
      return await sendOnce(options, request);
    } catch (error) {
      if (!(error instanceof PassingFailure)) throw error;
      if (attempt === attemptsMax) throw new NoAnswer(`${request.method} ${request.path}: ${error.message}`, request);
      await sleep(error.waitMs ?? pauseMs, undefined, signal && { signal });
    }
  }
}

async function sendOnce({ base, token, signal, dryRun }: ClientOptions, request: Request): Promise<Reply> {
  const { method, path, body, key, etag } = request;
  const headers = new Headers({ authorization: `Bearer ${typeof token === 'function' ? token() : token}` });
  if (body !== undefined) headers.set('content-type', 'application/json');
  if (key !== undefined) headers.set('idempotency-key', key);
  if (etag != null) headers.set('if-match', etag);
  const query = dryRun && method !== 'GET' ? '?dryRun=true' : '';
  const url = `${base.replace(/\/+$/, '')}/${path.replace(/^\/+/, '')}${query}`;
  const failAsLost = (error: Error): never => {
    signal?.throwIfAborted();
    throw new PassingFailure(`the answer was lost (${error.message})`, null);
  };
  const sent = { method, headers, ...(body && { body: JSON.stringify(body) }), ...(signal && { signal }) };
  const reply = await fetch(url, sent).catch(failAsLost);
  const text = await reply.text().catch(failAsLost); // a page that cannot be finished breaks off
  if (reply.ok)
    return { body: parseJson(text) ?? failAsLost(new Error('it is no JSON')), etag: reply.headers.get('etag') };
  const problem = parseJson(text) as Partial<ApiError & { detail: string }> | undefined;
  const { code = 'unknown', detail = text.slice(0, 300), requestId = null, errors = [] } = problem ?? {};
  const passes = [429, 502, 503].includes(reply.status) || code === 'idempotency_in_progress';
  if (!passes) throw new ApiError(reply.status, code, detail, requestId, errors);
  const seconds = Number(reply.headers.get('retry-after') ?? Number.NaN);
  throw new PassingFailure(`${reply.status} ${code}: ${detail}`, Number.isFinite(seconds) ? seconds * 1000 : null);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
