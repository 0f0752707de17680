import { get, type IncomingMessage } from 'node:http';

export interface PageRead {
  /** It is 0 if the connection broke before an answer. */
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
  /** The body ended in an orderly way. */
  readonly complete: boolean;
  readonly longestGapMs: number;
  readonly totalMs: number;
}

export interface ReadOptions {
  readonly token: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly onFirstBytes?: () => void;
  readonly onPiece?: (piece: Buffer) => Promise<unknown> | undefined;
  readonly signal?: AbortSignal;
  /** Count the bytes only: `body` stays empty. */
  readonly discard?: boolean;
}

export function withoutCursors(body: string): string {
  const at = body.lastIndexOf('],"pagination":');
  return body.slice(0, at) + body.slice(at).replaceAll(/"(?:nextCursor|endCursor|next)":"[^"]*",/g, '');
}

export function readPage(url: string, options: ReadOptions): Promise<PageRead> {
  const startedMs = performance.now();
  let lastMs = startedMs;
  let longestGapMs = 0;
  const alive = (): void => {
    longestGapMs = Math.max(longestGapMs, performance.now() - lastMs);
    lastMs = performance.now();
  };
  return new Promise((resolve) => {
    const pieces: Buffer[] = [];
    const over = (message: IncomingMessage | null): void => {
      alive();
      resolve({
        status: message?.statusCode ?? 0,
        headers: message?.headers ?? {},
        body: Buffer.concat(pieces).toString(message?.headers['content-encoding'] ? 'latin1' : 'utf8'),
        complete: message?.complete ?? false,
        longestGapMs,
        totalMs: performance.now() - startedMs,
      });
    };
    let answered = false;
    const receive = async (message: IncomingMessage): Promise<void> => {
      answered = true;
      alive();
      let begun = false;
      try {
        for await (const piece of message as AsyncIterable<Buffer>) {
          alive();
          if (!options.discard) pieces.push(piece);
          if (!begun && message.statusCode === 200) options.onFirstBytes?.();
          begun = true;
          await options.onPiece?.(piece);
        }
      } catch {
        // `complete` tells
      }
      over(message);
    };
    const request = get(
      url,
      {
        agent: false,
        headers: { authorization: `Bearer ${options.token}`, ...options.headers },
        ...(options.signal && { signal: options.signal }),
      },
      (message) => void receive(message),
    );
    request.on('error', () => answered || over(null));
  });
}
