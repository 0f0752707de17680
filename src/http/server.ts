import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type Koa from 'koa';
import { Problem } from '../errors.js';
import type { Observe } from '../events.js';
import { Gate } from '../flow/gate.js';
import { RequestTurns } from '../flow/request-turns.js';
import type { Settings } from '../settings.js';
import { addressKey } from './address.js';
import { requestId } from './exchange.js';
import { ConnectionEnds } from './raw-answers.js';
import { commonHeaders, renderProblem } from './render.js';

/** Bounds of the API listener; docs/settings.md describes each. */
export type ServerBounds = SlowClientBounds &
  Pick<
    Settings,
    | 'headerBytesMax'
    | 'headersTimeoutMs'
    | 'requestTimeoutMs'
    | 'keepAliveTimeoutMs'
    | 'clientConnectionsMax'
    | 'clientConnectionsPerAddress'
    | 'trustedProxyHops'
  >;

/** The API listener: Node's HTTP server with bounds; errors that Node would answer itself get problem documents too. */
export function apiServer(koa: Koa, bounds: ServerBounds, observe: Observe): Server {
  const handle = koa.callback();
  const ends = new ConnectionEnds();
  const turns = new RequestTurns();
  const server = createServer(
    {
      maxHeaderSize: bounds.headerBytesMax,
      headersTimeout: bounds.headersTimeoutMs,
      requestTimeout: Math.max(bounds.requestTimeoutMs, bounds.headersTimeoutMs), // Node refuses a shorter one
      keepAliveTimeout: bounds.keepAliveTimeoutMs,
      connectionsCheckingInterval: Math.min(1000, bounds.headersTimeoutMs),
      requireHostHeader: false, // http/request-head checks it, so that the answer is a problem document
      noDelay: true,
      ServerResponse: ends.responseClass(),
    },
    (request, response) =>
      ends.inTurn(request, response, () => {
        turns.begin(request, () => {
          if (response.closed) return; // the client went away before its turn
          if (!server.listening) response.shouldKeepAlive = false; // the gateway is stopping: this response is the connection's last
          void handle(request, response);
        });
      }),
  );
  server.maxConnections = bounds.clientConnectionsMax;
  if (bounds.trustedProxyHops === 0) boundConnectionsPerAddress(server, bounds.clientConnectionsPerAddress);
  endSlowClients(server, bounds, observe);
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) =>
    ends.inTurn(request, response, () => refuseExpectation(request, response)),
  );
  ends.answerErrors(server);
  return server;
}

/** Bounds the connections per client address. Not used behind a proxy, which holds all connections and must bound them itself. */
function boundConnectionsPerAddress(server: Server, max: number): void {
  const held = new Gate({ share: () => max, refusal: () => new Error('too many connections') });
  server.on('connection', (socket: Socket) => {
    const address = addressKey(socket.remoteAddress ?? '');
    if (held.isFull(address)) socket.destroy();
    else socket.once('close', held.take(address));
  });
}

function refuseExpectation(request: IncomingMessage, response: ServerResponse): void {
  const id = requestId(request);
  const problem = new Problem('expectation_failed', 'Only Expect: 100-continue is supported.');
  const { status, headers, body } = renderProblem(problem, id);
  const length = { 'Content-Length': Buffer.byteLength(body) };
  response.writeHead(status, { ...commonHeaders, ...headers, ...length, 'X-Request-Id': id }).end(body);
}

/** The speed at which a client must read a response, and the time over which it is measured. */
interface SlowClientBounds {
  readonly minBytesPerSecond: number;
  readonly slowClientMs: number;
}

/** The start of a socket's current measurement, and the bytes that its client had read by then. */
interface Progress {
  sinceMs: number;
  bytesRead: number;
}

/** Number of checks within slowClientMs. */
const checksPerWindow = 6;

/**
 * Destroys connections whose client reads a response slower than minBytesPerSecond over slowClientMs. A timer checks every
 * connection, so that every response is covered and requests do no work for it. A client that has read all bytes sent so far
 * is not slow.
 */
function endSlowClients(server: Server, { minBytesPerSecond, slowClientMs }: SlowClientBounds, observe: Observe): void {
  const sockets = new Map<Socket, Progress>();
  server.on('connection', (socket: Socket) => {
    sockets.set(socket, { sinceMs: performance.now(), bytesRead: 0 });
    socket.once('close', () => sockets.delete(socket));
  });
  const check = (): void => {
    const nowMs = performance.now();
    for (const [socket, progress] of sockets) {
      const bytesRead = socket.bytesWritten - socket.writableLength;
      const elapsedMs = nowMs - progress.sinceMs;
      const bytesMin = (minBytesPerSecond * slowClientMs) / 1000;
      if (socket.writableLength === 0 || bytesRead - progress.bytesRead >= bytesMin) {
        Object.assign(progress, { sinceMs: nowMs, bytesRead });
      } else if (elapsedMs >= slowClientMs) {
        observe({ type: 'client_too_slow', bytesPerSecond: ((bytesRead - progress.bytesRead) / elapsedMs) * 1000 });
        socket.destroy();
      }
    }
  };
  const timer = setInterval(check, slowClientMs / checksPerWindow).unref();
  server.on('close', () => clearInterval(timer));
}
