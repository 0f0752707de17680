import { once } from 'node:events';
import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { Problem } from '../../base/errors.js';
import { getRequestId } from './exchange.js';
import { renderWhole } from './render.js';

const notImplemented = new Problem('not_implemented', 'The only transfer coding is chunked.');

/** Problems by llhttp's reason or the error's code. */
const parseProblems: Readonly<Record<string, Problem>> = {
  HPE_HEADER_OVERFLOW: new Problem('headers_too_large', 'The request header is too large.'),
  HPE_CHUNK_EXTENSIONS_OVERFLOW: new Problem('payload_too_large', 'The chunk extensions are too large.'),
  'Request has invalid `Transfer-Encoding`': notImplemented,
  'Invalid `Transfer-Encoding` header value': notImplemented,
  ERR_HTTP_REQUEST_TIMEOUT: new Problem('request_timeout', 'The request did not arrive in time.'),
};
const malformed = new Problem('invalid_request', 'This is not a valid HTTP/1.1 request.');

type ParseError = NodeJS.ErrnoException & { reason?: string; rawPacket?: Buffer; bytesParsed?: number };

const waitingMax = 256;
const lingerMs = 1000;

/** The order of the responses on each connection (RFC 9112 §9.3.2), and its end. */
export class ResponseOrder {
  readonly #ended = new WeakSet<Duplex>();
  readonly #open = new WeakMap<Duplex, Set<ServerResponse>>();

  /** Calls `handle` when the earlier responses have ended; never if the connection ends or its body is broken. */
  runInTurn(request: IncomingMessage, response: ServerResponse, handle: () => void): void {
    const { socket } = request;
    if (!socket.writable) return;
    const responses = this.#open.get(socket) ?? this.#begin(socket);
    if (responses.size > waitingMax) return void socket.destroy(); // Node reads on meanwhile
    const before = responses.size === 0 ? undefined : [...responses].at(-1);
    responses.add(response);
    response.on('close', () => responses.delete(response));
    if (before === undefined) return handle();
    before.on('close', () => {
      const isBroken = this.#ended.has(socket) && !request.complete;
      if (response.socket !== null && !socket.destroyed && !isBroken) handle();
    });
  }

  /** Tracks responses, because Node's own close after the last one would lose it if a part of the request is unread. */
  #begin(socket: Socket): Set<ServerResponse> {
    const responses = new Set<ServerResponse>();
    const destroySoon = socket.destroySoon.bind(socket);
    socket.destroySoon = () => {
      const [answered] = responses;
      if (answered?.req.complete === false) endThenDestroy(socket);
      else destroySoon();
    };
    this.#open.set(socket, responses);
    return responses;
  }

  /** Sends the responses in progress on the connection first (RFC 9112 §9.3.2). */
  answerErrors(server: Server): void {
    server.on('clientError', (error: ParseError, socket) => {
      if (error.code === 'ECONNRESET') return void socket.destroy();
      if (this.#ended.has(socket) || socket.writableEnded) return;
      const known = parseProblems[error.reason ?? ''] ?? parseProblems[error.code ?? ''];
      void this.#answer(socket, findUnknownMethod(error) ?? known ?? malformed, isHead(error));
    });
    server.on('connect', (_, socket: Duplex) => {
      // Node has removed its listeners: a reset would end the process, and a response would wait forever.
      socket.on('error', () => socket.destroy());
      socket.on('drain', () => this.#openOn(socket)[0]?.emit('drain'));
      void this.#answer(socket, makeNotAllowed('CONNECT'), false);
    });
  }

  isAnswering(socket: Duplex): boolean {
    return this.#openOn(socket).length > 0;
  }

  #openOn(socket: Duplex): ServerResponse[] {
    return [...(this.#open.get(socket) ?? [])];
  }

  async #answer(socket: Duplex, problem: Problem, isBodyless: boolean): Promise<void> {
    this.#ended.add(socket);
    const before = this.#openOn(socket);
    const latest = before.at(-1);
    const isBroken = latest?.req.complete === false; // its body cannot be parsed: this answer replaces its response, unless it has begun
    const isAnswered = isBroken && latest?.headersSent;
    if (isBroken && !isAnswered) before.pop();
    await Promise.all(before.map((response) => response.closed || once(response, 'close')));
    if (!socket.writable) return;
    if (isAnswered) return endThenDestroy(socket);
    const { status, headers, body } = renderWhole(problem, getRequestId());
    const all = { Date: new Date().toUTCString(), ...headers, Connection: 'close' };
    const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.write(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${isBodyless ? '' : body}`);
    endThenDestroy(socket);
  }
}

/** Follows RFC 9112 §9.6: closing with unread bytes resets the connection and loses the answer. */
function endThenDestroy(socket: Duplex): void {
  socket.end();
  socket.resume();
  const timer = setTimeout(() => socket.destroy(), lingerMs).unref();
  socket.once('close', () => clearTimeout(timer));
}

/** Returns a 405 if Node's parser does not know the method of a well-formed request. */
function findUnknownMethod({ code, rawPacket, bytesParsed = 0 }: ParseError): Problem | undefined {
  if (code !== 'HPE_INVALID_METHOD' || rawPacket === undefined) return undefined;
  const text = rawPacket.toString('latin1');
  const lineStart = bytesParsed === 0 ? 0 : text.lastIndexOf('\n', bytesParsed - 1) + 1;
  const line = /^([!#$%&'*+.^_`|~0-9A-Za-z-]{1,40}) \S+ HTTP\/1\.[01]\r?\n/.exec(text.slice(lineStart));
  return line ? makeNotAllowed(line[1] as string) : undefined;
}

/** Recognizes a HEAD, whose answer has no body; the packet can begin with the body of the request before. */
function isHead({ rawPacket }: ParseError): boolean {
  return rawPacket !== undefined && /^HEAD |HEAD \S+ HTTP\/1\.[01]\r?\n/.test(rawPacket.toString('latin1'));
}

function makeNotAllowed(method: string): Problem {
  const headers = { Allow: 'GET, HEAD, OPTIONS, PATCH, POST' };
  return new Problem('method_not_allowed', `${method} is not allowed on this path.`, { headers });
}
