import type { Socket } from 'node:net';

/** After a read of this size more bytes of the same answer are probably waiting. */
const largeReadBytes = 32_768;
/** How long bytes gather, and how long the rows that are to come must take at least: an answer that has ended is not kept waiting. */
const gatherMs = 1;
const remainingMsMin = 1.3;

/** A statement whose rows arrive. */
interface Answer {
  /** Rows so far. */
  readonly rowsRead: number;
}

/**
 * Pauses a socket after a read. After a large one for a turn of the event loop, so that the other sockets are read first: libuv reads up to 32
 * times 64 KB from one socket, and turning that into JSON would delay other clients by half a second.
 *
 * After a small one for a millisecond, while many rows of a chunk are to come: PostgreSQL sends 8 KB at a time, forty entries of the log, and
 * a process that reads each of them is woken three hundred times for 10,000 rows, and costs PostgreSQL the waking.
 */
export class ReadPace {
  #answer: Answer | null = null;
  #rowsExpected = 0;
  /** When the first rows of the answer were read. */
  #startedMs: number | null = null;

  constructor(stream: Socket) {
    stream.on('data', (bytes: Buffer) => {
      if (bytes.length >= largeReadBytes) {
        stream.pause();
        setImmediate(() => stream.resume());
      } else if (this.#isFarFromEnd()) {
        stream.pause();
        setTimeout(() => stream.resume(), gatherMs);
      }
    });
  }

  /** Begins an answer of so many rows; 0 when its bytes must not gather. */
  begin(answer: Answer, rowsExpected: number): void {
    this.#answer = answer;
    this.#rowsExpected = rowsExpected;
    this.#startedMs = null;
  }

  #isFarFromEnd(): boolean {
    if (this.#answer === null || this.#rowsExpected === 0) return false;
    const nowMs = performance.now();
    this.#startedMs ??= nowMs;
    const { rowsRead } = this.#answer;
    return (this.#rowsExpected - rowsRead) * (nowMs - this.#startedMs) > remainingMsMin * rowsRead;
  }
}
