import { type IncomingMessage, type Server, ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { Problem } from '../errors.js';
import { requestId } from './exchange.js';
import { commonHeaders, renderProblem } from './render.js';

const notImplemented = new Problem('not_implemented', 'The only transfer coding is chunked.');

/** Errors of HTTP parsing, by llhttp's reason or by its or Node's code → the problem the client is told. */
const parseProblems: Readonly<Record<string, Problem>> = {
  HPE_HEADER_OVERFLOW: new Problem('headers_too_large', 'The request header is too large.'),
  HPE_CHUNK_EXTENSIONS_OVERFLOW: new Problem('payload_too_large', 'The chunk extensions are too large.'),
  'Request has invalid `Transfer-Encoding`': notImplemented,
  'Invalid `Transfer-Encoding` header value': notImplemented,
  ERR_HTTP_REQUEST_TIMEOUT: new Problem('request_timeout', 'The request did not arrive in time.'),
};
const malformed = new Problem('invalid_request', 'This is not a valid HTTP/1.1 request.');

/** `bytesParsed` of the bytes that arrived last were read before the error. */
type ParseError = NodeJS.ErrnoException & { reason?: string; rawPacket?: Buffer; bytesParsed?: number };

/** Time for a client to take the last answer of its connection and to close. */
const lingerMs = 1000;

/**
 * The end of connections: after a request that cannot be parsed, and after a response that was sent before its request
 * body had arrived. What follows on such a connection is read and dropped.
 */
export class ConnectionEnds {
  /** Connections whose last answer is decided. */
  readonly #ended = new WeakSet<Duplex>();
  /** Requests whose response has not ended, in the order of their arrival. */
  readonly #open = new WeakMap<Duplex, Set<ServerResponse>>();

  /** A response that closes its connection when it begins before the request body has arrived (RFC 9112 §9.3). */
  responseClass(): typeof ServerResponse {
    const end = (socket: Duplex): unknown => this.#ended.add(socket);
    return class<R extends IncomingMessage> extends ServerResponse<R> {
      override writeHead(statusCode: number, ...rest: unknown[]): this {
        const { socket, complete } = this.req;
        if (!complete) {
          end(socket);
          this.shouldKeepAlive = false;
          socket.destroySoon = () => endInStages(socket);
        }
        return super.writeHead(statusCode, ...(rest as []));
      }
    } as typeof ServerResponse;
  }

  /** Whether the request is to be answered: it came before the end of its connection. */
  admit({ socket }: IncomingMessage, response: ServerResponse): boolean {
    if (this.#ended.has(socket)) return false;
    const open = this.#open.get(socket) ?? new Set();
    this.#open.set(socket, open.add(response));
    response.once('close', () => open.delete(response));
    return true;
  }

  /** Answers requests that Node's parser refuses, after the responses in progress on the connection (RFC 9112 §9.3.2). */
  answerErrors(server: Server): void {
    server.on('clientError', (error: ParseError, socket) => {
      if (error.code === 'ECONNRESET') return void socket.destroy();
      if (this.#ended.has(socket)) return;
      if (!socket.writable) return void socket.destroy();
      const known = parseProblems[error.reason ?? ''] ?? parseProblems[error.code ?? ''];
      void this.#answer(socket, unknownMethod(error) ?? known ?? malformed, isHead(error));
    });
    server.on('connect', (_, socket: Duplex) => void this.#answer(socket, notHere('CONNECT'), false));
  }

  async #answer(socket: Duplex, problem: Problem, isBodyless: boolean): Promise<void> {
    this.#ended.add(socket);
    const before = [...(this.#open.get(socket) ?? [])];
    const latest = before.at(-1);
    const broken = latest?.req.complete === false ? before.pop() : undefined;
    await Promise.all(before.map((response) => response.closed || new Promise((end) => response.once('close', end))));
    if (!socket.writable || broken?.headersSent) return; // closed, or the broken request has its answer
    const id = requestId();
    const { status, headers, body } = renderProblem(problem, id);
    const all = {
      Date: new Date().toUTCString(),
      ...commonHeaders,
      ...headers,
      'X-Request-Id': id,
      Connection: 'close',
      'Content-Length': Buffer.byteLength(body),
    };
    const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.write(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${isBodyless ? '' : body}`);
    endInStages(socket);
  }
}

/**
 * Ends the sending side, and reads and drops what the client still sends (RFC 9112 §9.6): closed at once, a connection with
 * unread bytes is reset, and the client may lose the answer. None of Node's time-outs holds any more, hence the timer.
 */
function endInStages(socket: Duplex): void {
  socket.end();
  socket.resume();
  const timer = setTimeout(() => socket.destroy(), lingerMs).unref();
  socket.once('close', () => clearTimeout(timer));
}

/** A method Node's parser does not know is a method that is not allowed, not a malformed request. */
function unknownMethod({ code, rawPacket, bytesParsed = 0 }: ParseError): Problem | undefined {
  if (code !== 'HPE_INVALID_METHOD' || rawPacket === undefined) return undefined;
  const text = rawPacket.toString('latin1');
  const lineStart = bytesParsed === 0 ? 0 : text.lastIndexOf('\n', bytesParsed - 1) + 1;
  const line = /^([!#$%&'*+.^_`|~0-9A-Za-z-]{1,40}) \S+ HTTP\/1\.[01]\r?\n/.exec(text.slice(lineStart));
  return line ? notHere(line[1] as string) : undefined;
}

/**
 * Whether the request that cannot be parsed is a HEAD, to which no answer has a body (RFC 9110 §9.3.2). The end of the body
 * before it may have come with it.
 */
function isHead({ rawPacket }: ParseError): boolean {
  return rawPacket !== undefined && /^HEAD |HEAD \S+ HTTP\/1\.[01]\r?\n/.test(rawPacket.toString('latin1'));
}

function notHere(method: string): Problem {
  return new Problem('method_not_allowed', `${method} is not possible here.`, {
    headers: { Allow: 'GET, HEAD, OPTIONS, PATCH, POST' },
  });
}
