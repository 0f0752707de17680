import { setMaxListeners } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** Clients that each read page after page. */
export interface Streams {
  /** A page, and the tokens of the clients: as many clients as tokens. */
  readonly url: string;
  readonly tokens: readonly string[];
  readonly seconds: number;
}

/** Result of streams: bytes that arrived in the time, and pages that ended in it. */
export interface StreamsResult {
  readonly megabytesPerSecond: number;
  readonly pages: number;
  /** Requests that were answered 503; they are made again after the time of Retry-After. */
  readonly refused: number;
}

/** Not counted: from the start of the process until all clients read. */
const warmUpMs = 500;

// Process of the clients: the streams as JSON in its argument, the result as JSON on its stdout.
const { url, tokens, seconds } = JSON.parse(process.argv[2] as string) as Streams;
const { hostname, port, pathname, search } = new URL(url);
const startMs = performance.now() + warmUpMs;
const endMs = startMs + seconds * 1000;
let [bytes, pages, refused] = [0, 0, 0];
const stop = new AbortController();
setMaxListeners(0, stop.signal);
setTimeout(() => stop.abort(), endMs - performance.now());
await Promise.all(tokens.map(readPages));
process.stdout.write(
  JSON.stringify({ megabytesPerSecond: bytes / 1e6 / seconds, pages, refused } satisfies StreamsResult),
);

async function readPages(token: string): Promise<void> {
  while (!stop.signal.aborted) {
    const { head, end } = await readPage(token);
    if (stop.signal.aborted) return;
    const [, waitSeconds] = /^HTTP\/1\.1 503 .*\r\nretry-after: (\d+)\r\n/is.exec(head) ?? [];
    if (waitSeconds !== undefined) {
      refused++;
      await sleep(Number(waitSeconds) * 1000, undefined, { signal: stop.signal }).catch(() => {});
    } else if (end.endsWith('"complete":true}}\r\n0\r\n\r\n')) pages++;
    else throw new Error(`A page broke off: ${head.slice(0, 100)} … ${end}`);
  }
}

/** Reads one page off a bare socket, so that the client costs next to nothing; resolves with its first and last bytes. */
function readPage(token: string): Promise<{ head: string; end: string }> {
  const socket = connect({ host: hostname, port: Number(port), noDelay: true, signal: stop.signal } as never);
  socket.write(
    `GET ${pathname}${search} HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n\r\n`,
  );
  let [head, end] = ['', ''];
  socket.on('data', (piece: Buffer) => {
    const nowMs = performance.now();
    if (nowMs >= startMs && nowMs < endMs) bytes += piece.length;
    if (head === '') head = piece.toString('latin1', 0, 4096);
    end = (end + piece.toString('latin1', Math.max(0, piece.length - 64))).slice(-64);
  });
  return new Promise((resolve, reject) => {
    socket.once('close', () => resolve({ head, end }));
    socket.once('error', (error) => (stop.signal.aborted ? resolve({ head, end }) : reject(error)));
  });
}
