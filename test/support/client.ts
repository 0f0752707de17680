import { Agent, request as httpRequest, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http';
import { connect } from 'node:net';
import type { Exchange } from './contract.js';
import { decompressed } from './decompressed.js';

export interface ClientOptions {
  readonly token?: string;
  /** Holds every response against the document of the API: a contractValidator. */
  readonly validate?: (exchange: Exchange) => void;
}

export interface RequestOptions {
  readonly headers?: OutgoingHttpHeaders;
  /** Text and bytes are sent as they are; anything else as JSON. A content type is added unless one is given. */
  readonly body?: unknown;
  readonly token?: string | null;
  readonly unchecked?: boolean;
}

export interface ApiReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  readonly bytes: Buffer;
  json<T>(): T;
}

export interface ApiClient {
  get(path: string, options?: RequestOptions): Promise<ApiReply>;
  request(method: string, path: string, options?: RequestOptions): Promise<ApiReply>;
  close(): void;
}

/** Sends what it is told, byte for byte. Rejects when the connection breaks, and with ContractViolation for an undocumented response. */
export function apiClient(baseUrl: string, { token, validate }: ClientOptions = {}): ApiClient {
  const { hostname, port, pathname } = new URL(baseUrl);
  const agent = new Agent({ keepAlive: true });

  async function request(method: string, path: string, options: RequestOptions = {}): Promise<ApiReply> {
    const target = `${pathname.replace(/\/$/, '')}${path}`;
    const bearer = options.token === undefined ? token : options.token;
    const body = encoded(options.body);
    const headers: OutgoingHttpHeaders = {
      ...(bearer ? { authorization: `Bearer ${bearer}` } : {}),
      ...(body === undefined ? {} : { 'content-type': 'application/json', 'content-length': body.length }),
      ...lowerCased(options.headers),
    };
    const reply = await new Promise<ApiReply>((done, fail) => {
      const sent = httpRequest({ agent, hostname, port, method, path: target, headers }, (message) => {
        receive(message).then(done, fail);
      });
      sent.on('error', fail);
      sent.end(body);
    });
    if (!options.unchecked)
      validate?.({ method, path: target, status: reply.status, headers: reply.headers, body: reply.text });
    return reply;
  }

  return { request, get: (path, options) => request('GET', path, options), close: () => agent.destroy() };
}

/** Sends HTTP that no client would send, and resolves with all that came until the server closed, or `timeoutMs` passed. */
export function rawRequest(port: number, text: string, timeoutMs = 30_000, host = '127.0.0.1'): Promise<string> {
  return new Promise((done, fail) => {
    let received = '';
    const socket = connect(port, host, () => socket.write(text, 'latin1'));
    const timer = setTimeout(() => socket.destroy(), timeoutMs);
    socket.setEncoding('utf8');
    socket.on('data', (chunk) => {
      received += chunk;
    });
    // A reset behind an answer is the server refusing to read on; without one it is an outcome as well.
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNREFUSED') fail(error);
    });
    socket.on('close', () => {
      clearTimeout(timer);
      done(received);
    });
  });
}

async function receive(message: IncomingMessage): Promise<ApiReply> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk as Buffer);
  const bytes = Buffer.concat(chunks);
  const headers = Object.fromEntries(
    Object.entries(message.headersDistinct).map(([name, values]) => [name, (values ?? []).join(', ')]),
  );
  const text = decompressed(bytes, headers['content-encoding']).toString('utf8');
  return { status: message.statusCode ?? 0, headers, bytes, text, json: <T>() => JSON.parse(text) as T };
}

function encoded(body: unknown): Buffer | undefined {
  if (body === undefined || Buffer.isBuffer(body)) return body;
  return Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
}

function lowerCased(headers: OutgoingHttpHeaders = {}): OutgoingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}
