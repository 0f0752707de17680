import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { Answer } from './client.js';
import type { Stage } from './stage.js';

const bytesRead = 262_144;
/** Enough for the `pagination` of a page. */
const bytesKept = 4096;
/** The end of a chunked body (RFC 9112 §7.1); JSON has no line break within. */
const lastChunk = Buffer.from('\r\n0\r\n\r\n');

/**
 * A client with one keep-alive connection, and the next once the gateway has closed it, that reads pages off a bare socket and drops all but their
 * end. node:http takes four times the processor time for that, and on a machine with two processors the walk would wait for its client, as COPY
 * does not for psql.
 */
export class PageClient {
  readonly #open: () => Socket;
  readonly #head: string;
  #socket: Socket;
  #onPiece: (piece: Buffer) => void = () => undefined;
  #onClose: () => void = () => undefined;

  private constructor({ origin, token }: Pick<Stage, 'origin' | 'token'>) {
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

  static async connect(stage: Pick<Stage, 'origin' | 'token'>): Promise<PageClient> {
    const client = new PageClient(stage);
    await once(client.#socket, 'connect');
    return client;
  }

  /** Reads a page; throws unless it is answered 200 and comes to its end. The body has its end only. */
  get(path: string): Promise<Answer> {
    const startedMs = performance.now();
    return new Promise((resolve, reject) => {
      let [bytes, bytesDue] = [0, Number.POSITIVE_INFINITY];
      let end: Buffer = Buffer.alloc(0);
      let isLast = false;
      this.#onClose = () => reject(new Error(`${path}: the connection ended`));
      this.#onPiece = (piece) => {
        if (bytes === 0) {
          const head = piece.toString('latin1', 0, bytesKept);
          if (!head.startsWith('HTTP/1.1 200 ')) return reject(new Error(`${path} → ${head.slice(9, 12)}`));
          const [, length] = /\r\ncontent-length: (\d+)\r\n/i.exec(head) ?? [];
          if (length !== undefined) bytesDue = head.indexOf('\r\n\r\n') + 4 + Number(length);
          isLast = /\r\nconnection: close\r\n/i.test(head);
        }
        bytes += piece.length;
        end = Buffer.concat([end, piece.subarray(-bytesKept)]).subarray(-bytesKept);
        if (bytes < bytesDue && !end.subarray(-lastChunk.length).equals(lastChunk)) return;
        if (isLast) this.#socket = this.#open();
        const body = end.toString();
        resolve({ ms: performance.now() - startedMs, body: body.slice(0, body.lastIndexOf('}') + 1), bytes });
      };
      this.#socket.write(`GET /api/v1${path}${this.#head}`);
    });
  }

  close(): void {
    this.#socket.destroy();
  }
}
