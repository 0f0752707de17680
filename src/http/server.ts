import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type Koa from 'koa';
import { Problem } from '../errors.js';
import type { Observe } from '../events.js';
import type { Settings } from '../settings.js';
import { requestId } from './exchange.js';
import { commonHeaders, renderProblem } from './render.js';
import { endSlowClients } from './slow-clients.js';

/** What HTTP parsing can fail with (llhttp's and Node's error codes) → the problem the client is told. */
const parseProblems: Readonly<Record<string, Problem>> = {
  HPE_HEADER_OVERFLOW: new Problem('headers_too_large', 'The request header is too large.'),
  HPE_CHUNK_EXTENSIONS_OVERFLOW: new Problem('payload_too_large', 'The chunk extensions are too large.'),
  ERR_HTTP_REQUEST_TIMEOUT: new Problem('request_timeout', 'The request did not arrive in time.'),
};
const malformed = new Problem('invalid_request', 'This is not a valid HTTP/1.1 request.');

/** The API listener: Node's HTTP server with our bounds, and problem details also where Node would answer by itself. */
export function apiServer(koa: Koa, settings: Settings, observe: Observe): Server {
  const handle = koa.callback();
  const latest = new WeakMap<Duplex, { readonly request: IncomingMessage; readonly response: ServerResponse }>();
  const server = createServer(
    {
      maxHeaderSize: settings.headerBytesMax,
      headersTimeout: settings.headersTimeoutMs,
      requestTimeout: Math.max(settings.requestTimeoutMs, settings.headersTimeoutMs), // Node refuses less
      keepAliveTimeout: settings.keepAliveTimeoutMs,
      connectionsCheckingInterval: Math.min(1000, settings.headersTimeoutMs),
      requireHostHeader: false, // http/request-head checks it, so that the answer is ours
      noDelay: true,
    },
    (request, response) => {
      latest.set(request.socket, { request, response });
      if (!server.listening) response.shouldKeepAlive = false; // stopping: this connection's last response says so
      void handle(request, response);
    },
  );
  server.maxConnections = settings.clientConnectionsMax;
  endSlowClients(server, settings, observe);
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    latest.set(request.socket, { request, response });
    const id = requestId(request);
    const { status, headers, body } = renderProblem(
      new Problem('expectation_failed', 'Only Expect: 100-continue is supported.'),
      id,
    );
    const length = { 'Content-Length': Buffer.byteLength(body) };
    response.writeHead(status, { ...commonHeaders, ...headers, ...length, 'X-Request-Id': id }).end(body);
  });
  server.on('clientError', (error: NodeJS.ErrnoException & { rawPacket?: Buffer }, socket) => {
    const last = latest.get(socket);
    if (error.code === 'ECONNRESET' || !socket.writable) socket.destroy();
    else if (last?.response.headersSent && !last.request.complete)
      endRaw(socket); // it has its answer already
    else answerRaw(socket, unknownMethod(error) ?? parseProblems[error.code as string] ?? malformed, isHead(error));
  });
  server.on('connect', (_request, socket) => answerRaw(socket, notHere('CONNECT')));
  return server;
}

/** A method Node's parser does not know is a method that is not allowed, not a malformed request. */
function unknownMethod(error: { code?: string | undefined; rawPacket?: Buffer }): Problem | undefined {
  if (error.code !== 'HPE_INVALID_METHOD') return undefined;
  const line = /^([!#$%&'*+.^_`|~0-9A-Za-z-]{1,40}) \S+ HTTP\/1\.[01]\r?\n/.exec(
    error.rawPacket?.toString('latin1') ?? '',
  );
  return line ? notHere(line[1] as string) : undefined;
}

/**
 * Whether what could not be read is a HEAD, to which no answer has a body (RFC 9110 §9.3.2). The end of the body before
 * may have come with it.
 */
function isHead({ rawPacket }: { rawPacket?: Buffer }): boolean {
  return rawPacket !== undefined && /^HEAD |HEAD \S+ HTTP\/1\.[01]\r?\n/.test(rawPacket.toString('latin1'));
}

function notHere(method: string): Problem {
  return new Problem('method_not_allowed', `${method} is not possible here.`, {
    headers: { Allow: 'GET, HEAD, OPTIONS, PATCH, POST' },
  });
}

/** How long a client may take to take such an answer and to close. */
const lingerMs = 1000;

/** Writes a whole response to a socket that Node's HTTP has given up on, and closes it. */
function answerRaw(socket: Duplex, problem: Problem, bodyless = false): void {
  const id = requestId();
  const { status, headers, body } = renderProblem(problem, id);
  const all = {
    ...commonHeaders,
    ...headers,
    'X-Request-Id': id,
    Connection: 'close',
    'Content-Length': String(Buffer.byteLength(body)),
  };
  const lines = Object.entries({ Date: new Date().toUTCString(), ...all }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  );
  endRaw(socket, `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${bodyless ? '' : body}`);
}

/**
 * Writes the last of a socket and closes it. What the client still sends is read and dropped: a socket whose buffer is
 * not read never sees the client's end, and none of Node's time-outs holds for it any more.
 */
function endRaw(socket: Duplex, text = ''): void {
  socket.end(text);
  socket.resume();
  const timer = setTimeout(() => socket.destroy(), lingerMs).unref();
  socket.once('close', () => clearTimeout(timer));
}
