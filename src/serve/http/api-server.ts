import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type Koa from 'koa';
import { Problem } from '../../base/errors.js';
import type { Observe } from '../../base/events.js';
import type { Settings } from '../../settings.js';
import { getRequestId } from './exchange.js';
import { ResponseOrder } from './raw-answers.js';
import { renderWhole } from './render.js';

export type ServerBounds = Pick<
  Settings,
  'headersTimeoutMs' | 'requestTimeoutMs' | 'keepAliveTimeoutMs' | 'clientConnectionsMax' | 'slowClientMs'
>;

const headerBytesMax = 16_384;

/** Answers errors with problem documents, also those that Node would answer. */
export function makeApiServer(koa: Koa, bounds: ServerBounds, observe: Observe): Server {
  const handle = koa.callback();
  const order = new ResponseOrder();
  const answer = (request: IncomingMessage, response: ServerResponse): void =>
    order.runInTurn(request, response, () => {
      if (!server.listening) response.shouldKeepAlive = false; // the gateway is stopping: this response is the connection's last
      void handle(request, response);
    });
  const server = createServer(
    {
      maxHeaderSize: headerBytesMax,
      headersTimeout: bounds.headersTimeoutMs,
      requestTimeout: Math.max(bounds.requestTimeoutMs, bounds.headersTimeoutMs), // Node refuses a shorter one
      keepAliveTimeout: bounds.keepAliveTimeoutMs,
      connectionsCheckingInterval: Math.min(1000, bounds.headersTimeoutMs),
      requireHostHeader: false, // http/request-head checks it, so that the answer is a problem document
      noDelay: true,
    },
    answer,
  );
  server.on('checkContinue', answer); // the reader of bodies sends 100, once the request is admitted
  server.maxConnections = bounds.clientConnectionsMax;
  server.on('drop', () => observe({ type: 'client_refused', max: bounds.clientConnectionsMax }));
  server.timeout = bounds.slowClientMs;
  server.on('timeout', (socket) => {
    if (socket.writableLength > 0) {
      observe({ type: 'client_too_slow' });
      socket.resetAndDestroy(); // an orderly end could look complete (respond.ts)
    } else if (!order.isAnswering(socket)) socket.destroy(); // an answer that is due waits for the database, not for its client
  });
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) =>
    order.runInTurn(request, response, () => refuseExpectation(request, response)),
  );
  order.answerErrors(server);
  return server;
}

function refuseExpectation(request: IncomingMessage, response: ServerResponse): void {
  const problem = new Problem('expectation_failed', 'Only Expect: 100-continue is supported.');
  const { status, headers, body } = renderWhole(problem, getRequestId(request));
  response.writeHead(status, headers).end(body);
}
