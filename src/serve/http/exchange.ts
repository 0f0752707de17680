import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Context } from 'koa';
import { ClientGone } from '../../base/errors.js';
import type { PageSize } from '../read/reply.js';
import { tokenPrefix } from './token-format.js';
import type { Access, Refusal } from './tokens.js';

/** State of a request while it runs; kept in ctx.state. */
export interface Exchange {
  readonly requestId: string;
  readonly startedMs: number;
  /** Headers of the response, whatever it will be: names and values in turns, as writeHead takes them. Merging objects took a tenth of a detail. */
  readonly headers: string[];
  access: Access | null;
  /** The token of the request where the database has it and it has no rights. */
  refused: Refusal['token'] | null;
  /** Time until the token was accepted, in milliseconds. */
  authMs: number;
  /** Code of the problem that was answered, for log and metrics. */
  code: string | null;
  /** The size of a list's page; null for other responses. */
  page: PageSize | null;
  /** Bytes that the connection had sent before. */
  readonly bytesBefore: number;
}

/** `headers` are those of every response, names and values in turns. */
export function newExchange(request: IncomingMessage, headers: readonly string[]): Exchange {
  const id = requestId(request);
  return {
    requestId: id,
    headers: [...headers, 'X-Request-Id', id],
    startedMs: performance.now(),
    access: null,
    refused: null,
    authMs: 0,
    code: null,
    page: null,
    bytesBefore: request.socket.bytesWritten,
  };
}

export function exchangeOf(ctx: Context): Exchange {
  return ctx.state.exchange as Exchange;
}

/** A client's request id is kept when it can be logged and sent back unchanged. */
const validRequestId = /^[A-Za-z0-9._:+/=-]{1,128}$/;

/** The client's X-Request-Id when it is valid, else a new id. A token is refused as an id because ids are logged. */
export function requestId(request?: IncomingMessage): string {
  const sent = request?.headers['x-request-id'];
  const isKept = typeof sent === 'string' && validRequestId.test(sent) && !sent.includes(tokenPrefix);
  return isKept ? sent : randomUUID();
}

/** A signal that aborts when the client closes the connection before the response was sent, and at the end of a HEAD, which may have begun a count. */
export function clientSignal(response: ServerResponse): AbortSignal {
  const controller = new AbortController();
  const abort = (): void => {
    if (!response.writableFinished || response.req.method === 'HEAD') controller.abort(new ClientGone());
  };
  if (response.closed) abort();
  else response.once('close', abort);
  return controller.signal;
}
