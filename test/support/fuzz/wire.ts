import { connect, type Socket } from 'node:net';

export interface WireResponse {
  readonly status: number;
  readonly head: string;
  /** Names in lower case; a header that came several times is joined with ", ". */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  readonly excess: number;
}

/** The connection ended, or nothing came, before the response was whole. */
export class NoResponse extends Error {
  constructor(
    reason: string,
    readonly received: number,
  ) {
    super(`${reason} after ${received} bytes`);
  }
}

const patienceMs = 10_000;

/**
 * Sends the bytes as they are and reads the response by RFC 9112 §6.3, which Node's client would refuse. It sends one request at a time.
 */
export class Wire {
  readonly #host: string;
  readonly #port: number;
  #socket: Socket | null = null;

  constructor(origin: string) {
    const { hostname, port } = new URL(origin);
    this.#host = hostname;
    this.#port = Number(port);
  }

  async exchange(request: Buffer, method: string): Promise<WireResponse> {
    const isFresh = this.#socket === null;
    try {
      return await this.#once(request, method);
    } catch (error) {
      // A kept connection may have been closed meanwhile; a client that gets no answer at all can try again (RFC 9112 §9.3.1).
      if (isFresh || !(error instanceof NoResponse) || error.received > 0) throw error;
      return this.#once(request, method);
    }
  }

  close(): void {
    this.#socket?.destroy();
    this.#socket = null;
  }

  #once(request: Buffer, method: string): Promise<WireResponse> {
    const socket = this.#connected();
    return new Promise((resolve, reject) => {
      let received: Buffer = Buffer.alloc(0);
      const settle = (outcome: () => void, keep: boolean): void => {
        clearTimeout(timer);
        socket.off('data', take).off('end', end).off('close', closed);
        if (!keep && this.#socket === socket) this.close();
        outcome();
      };
      const fail = (reason: string) => () => settle(() => reject(new NoResponse(reason, received.length)), false);
      const timer = setTimeout(fail('no whole response'), patienceMs);
      const look = (ended: boolean): void => {
        const response = parse(received, method, ended);
        if (response !== null)
          settle(() => resolve(response), !/\bclose\b/i.test(response.headers.connection ?? '') && !ended);
      };
      const take = (chunk: Buffer): void => {
        received = received.length === 0 ? chunk : Buffer.concat([received, chunk]);
        look(false);
      };
      const end = (): void => look(true);
      const closed = fail('the connection was closed');
      socket.on('data', take).on('end', end).on('close', closed);
      socket.write(request);
    });
  }

  #connected(): Socket {
    if (this.#socket !== null) return this.#socket;
    const socket = connect(this.#port, this.#host).setNoDelay();
    socket.on('error', () => {}); // its close follows
    socket.on('close', () => {
      if (this.#socket === socket) this.#socket = null;
    });
    this.#socket = socket;
    return socket;
  }
}

/** Parses the response at the beginning of the bytes; null while it is not whole. */
function parse(bytes: Buffer, method: string, ended: boolean): WireResponse | null {
  const headEnd = bytes.indexOf('\r\n\r\n');
  if (headEnd < 0) return null;
  const head = bytes.toString('latin1', 0, headEnd);
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(head)?.[1] ?? 0);
  const rest = bytes.subarray(headEnd + 4);
  if (status >= 100 && status < 200) return parse(rest, method, ended);
  const headers = headersOf(head);
  const whole = (body: Buffer, excess: number): WireResponse => ({ status, head, headers, body, excess });
  if (method === 'HEAD' || status === 204 || status === 304) return whole(Buffer.alloc(0), rest.length);
  const length = headers['content-length'];
  if (headers['transfer-encoding'] === 'chunked') {
    const chunked = dechunked(rest);
    return chunked && whole(chunked.body, rest.length - chunked.end);
  }
  if (length !== undefined)
    return rest.length < Number(length) ? null : whole(rest.subarray(0, Number(length)), rest.length - Number(length));
  return ended ? whole(rest, 0) : null;
}

function headersOf(head: string): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const line of head.split('\r\n').slice(1)) {
    const colon = line.indexOf(':');
    const name = line.slice(0, colon).toLowerCase();
    const value = line.slice(colon + 1).trim();
    headers[name] = headers[name] === undefined ? value : `${headers[name]}, ${value}`;
  }
  return headers;
}

/** Parses a chunked body (RFC 9112 §7.1) without trailers, and finds its end; null while it is not whole. */
function dechunked(bytes: Buffer): { body: Buffer; end: number } | null {
  if (bytes.indexOf('0\r\n\r\n', Math.max(0, bytes.length - 5)) < 0) return null;
  const chunks: Buffer[] = [];
  for (let at = 0; ; ) {
    const lineEnd = bytes.indexOf('\r\n', at);
    if (lineEnd < 0) return null;
    const size = Number.parseInt(bytes.toString('latin1', at, lineEnd), 16);
    const start = lineEnd + 2;
    if (start + size + 2 > bytes.length) return null;
    if (size === 0) return { body: Buffer.concat(chunks), end: start + 2 };
    chunks.push(bytes.subarray(start, start + size));
    at = start + size + 2;
  }
}
