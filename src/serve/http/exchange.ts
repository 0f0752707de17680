import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Context } from 'koa';
import { ClientGone } from '../../base/errors.js';
import type { SentContent } from '../reply.js';
import { tokenPrefix } from './token-format.js';
import type { Access, TokenRefusal } from './token-look-up.js';

export type Exchange = ReturnType<typeof startExchange>;

export function startExchange(request: IncomingMessage, headers: readonly string[]) {
  const id = getRequestId(request);
  return {
    requestId: id,
    /** Names and values in turns, as writeHead takes them: merging objects took a tenth of a single record's time. */
    headers: [...headers, 'X-Request-Id', id],
    startedMs: performance.now(),
    access: null as Access | null,
    /** A token that the database knows but that has no rights. */
    refused: null as TokenRefusal['token'] | null,
    authMs: 0,
    code: null as string | null,
    sent: {} as SentContent,
    bytesBefore: request.socket.bytesWritten,
  };
}

export function getExchange(ctx: Context): Exchange {
  return ctx.state.exchange as Exchange;
}

/** An id that can be logged and sent back unchanged. */
const validRequestId = /^[A-Za-z0-9._:+/=-]{1,128}$/;

/** Takes the client's X-Request-Id if it is valid, otherwise a new id. Ids are logged, so a token is refused. */
export function getRequestId(request?: IncomingMessage): string {
  const sent = request?.headers['x-request-id'];
  const isKept = typeof sent === 'string' && validRequestId.test(sent) && !sent.includes(tokenPrefix);
  return isKept ? sent : randomUUID();
}

/** Aborts when the client leaves early, and at the end of a HEAD, which may have begun a count. */
export function makeClientSignal(response: ServerResponse): AbortSignal {
  const controller = new AbortController();
  const abort = (): void => {
    if (!response.writableFinished || response.req.method === 'HEAD') controller.abort(new ClientGone());
  };
  if (response.closed) abort();
  else response.once('close', abort);
  return controller.signal;
}
