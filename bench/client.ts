import { Agent, get } from 'node:http';
import type { Stage } from './stage.js';

export interface Answer {
  /** From sending the request to the last byte, in milliseconds. */
  readonly ms: number;
  readonly body: string;
  /** Of the whole body. */
  readonly bytes: number;
}

/** One client with one keep-alive connection, as a program that pages through a list has. */
export class Client {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });
  readonly #stage: Pick<Stage, 'origin' | 'token'>;

  constructor(stage: Pick<Stage, 'origin' | 'token'>) {
    this.#stage = stage;
  }

  /** Throws unless the answer is 200. */
  get(path: string): Promise<Answer> {
    const { origin, token } = this.#stage;
    const startedMs = performance.now();
    const options = { agent: this.#agent, headers: { authorization: `Bearer ${token}` } };
    return new Promise((resolve, reject) => {
      get(`${origin}/api/v1${path}`, options, (response) => {
        const pieces: Buffer[] = [];
        response.on('data', (piece: Buffer) => pieces.push(piece));
        response.on('error', reject);
        response.on('end', () => {
          const ms = performance.now() - startedMs;
          const bytes = Buffer.concat(pieces);
          const body = bytes.toString();
          if (response.statusCode === 200) resolve({ ms, body, bytes: bytes.length });
          else reject(new Error(`${path} → ${response.statusCode}: ${body.slice(0, 300)}`));
        });
      }).on('error', reject);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}

/** The members of `pagination` that are used here. */
interface Pagination {
  readonly count: number;
  readonly nextCursor: string | null;
  readonly endCursor: string;
  readonly total?: number;
}

/** The `pagination` of a list, without parsing all of its rows. */
export function paginationOf({ body }: Answer): Pagination {
  const at = body.lastIndexOf(',"pagination":');
  return JSON.parse(`{${body.slice(at + 1)}`).pagination;
}
