import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

const bytesRead = 262_144;
/** Characters that hold the `pagination` of a page. */
const bytesKept = 4096;
/** The end of a chunked body (RFC 9112 §7.1); JSON has no line break within. */
const lastChunk = Buffer.from('\r\n0\r\n\r\n');

export interface Answer {
  readonly status: number;
  /** Milliseconds from sending the request to the first and to the last byte. */
  readonly firstByteMs: number;
  readonly ms: number;
  readonly bytes: number;
  readonly head: string;
  /** The end of the body, up to 4 KB. */
  readonly end: string;
}

/**
 * A client with one keep-alive connection, and the next once the gateway has closed it, that reads answers off a bare socket and drops all
 * but their end. node:http takes four times the processor time for that, and on a machine with two processors the gateway would wait for
 * its client, as COPY does not for psql.
 */
export class Client {
  readonly #open: () => Socket;
  readonly #head: string;
  #socket: Socket;
  #onPiece: (piece: Buffer) => void = () => undefined;
  #onClose: () => void = () => undefined;

  private constructor(origin: string, token: string) {
    const { hostname, port, host } = new URL(origin);
    const buffer = Buffer.allocUnsafe(bytesRead);
    const callback = (length: number): boolean => {
      this.#onPiece(buffer.subarray(0, length));
      return true;
    };
    this.#head = ` HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${token}\r\n\r\n`;
    this.#open = () => {
      const socket = connect({ host: hostname, port: Number(port), noDelay: true, onread: { buffer, callback } });
      return socket.on('error', () => {}).on('close', () => socket === this.#socket && this.#onClose());
    };
    this.#socket = this.#open();
  }

  static async connect({ origin, token }: { origin: string; token: string }): Promise<Client> {
    const client = new Client(origin, token);
    await once(client.#socket, 'connect');
    return client;
  }

  /** Reads an answer to its end; rejects when the connection ends before. */
  get(path: string): Promise<Answer> {
    if (this.#socket.destroyed) this.#socket = this.#open(); // it was closed for its idleness
    const startedMs = performance.now();
    return new Promise((resolve, reject) => {
      let [bytes, bytesDue, firstByteMs, isLast] = [0, Number.POSITIVE_INFINITY, 0, false];
      let head = '';
      let end: Buffer = Buffer.alloc(0);
      this.#onClose = () => reject(new Error(`${path}: the connection ended`));
      this.#onPiece = (piece) => {
        if (bytes === 0) {
          firstByteMs = performance.now() - startedMs;
          head = piece.toString('latin1', 0, bytesKept);
          const [, length] = /\r\ncontent-length: (\d+)\r\n/i.exec(head) ?? [];
          if (length !== undefined) bytesDue = head.indexOf('\r\n\r\n') + 4 + Number(length);
          isLast = /\r\nconnection: close\r\n/i.test(head);
        }
        bytes += piece.length;
        end = Buffer.concat([end, piece.subarray(-bytesKept)]).subarray(-bytesKept);
        if (bytes < bytesDue && !end.subarray(-lastChunk.length).equals(lastChunk)) return;
        if (isLast) this.#socket = this.#open();
        const text = end.toString();
        const status = Number(head.slice(9, 12));
        resolve({
          status,
          firstByteMs,
          ms: performance.now() - startedMs,
          bytes,
          head,
          end: text.slice(0, text.lastIndexOf('}') + 1),
        });
      };
      this.#socket.write(`GET ${path}${this.#head}`);
    });
  }

  /** Reads a whole page of a list; throws unless it is answered 200 and complete. */
  async page(path: string): Promise<Answer & { readonly pagination: Pagination }> {
    const answer = await this.get(path);
    const at = answer.end.lastIndexOf(',"pagination":');
    if (answer.status !== 200 || at < 0) throw new Error(`${path} → ${answer.status}: ${answer.end}`);
    const { pagination } = JSON.parse(`{${answer.end.slice(at + 1)}`) as { pagination: Pagination };
    if (!pagination.complete) throw new Error(`${path} broke off: ${answer.end.slice(at)}`);
    return { ...answer, pagination };
  }

  close(): void {
    this.#socket.destroy();
  }
}

/** The members of `pagination` that are used here. */
interface Pagination {
  readonly count: number;
  readonly nextCursor: string | null;
  readonly since: string;
  readonly complete: boolean;
}
