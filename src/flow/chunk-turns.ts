/** A statement for which a turn is taken. */
export interface TurnTaker {
  /** Whether it reads a part of a large page. */
  readonly takesTurns?: boolean;
  /** Whether its page has begun. */
  readonly isContinuation?: boolean;
}

/** Decides when statements begin, beside the limits of their pool. */
export interface Turns {
  readonly admits: (statement: TurnTaker) => boolean;
  /** Notes that a statement begins; returns the function to call when it has ended. */
  readonly enter: (workspace: string | null, statement: TurnTaker) => () => void;
}

/** How long after the last short statement the chunks still take turns. */
const recentMs = 1000;
/**
 * How long a chunk keeps the next one waiting, so that slow statements of one workspace do not stop all large pages. Less than queueWaitMs
 * by default, for which a page that begins waits.
 */
const chunkMsMax = 100;
/** How long short statements that were sent during a chunk keep the next chunk waiting. */
const shortMsMax = 25;

/**
 * Turns of the statements on a replica: while short statements come, `atATime` chunks of large pages run at a time, and after each
 * the short statements that were sent meanwhile are answered first. One more may run where it begins a page, which is refused after
 * a short wait; no other chunk begins beside it. Without turns eight pages keep four processors of the replica busy, and where it has
 * fewer, each detail waits for them.
 */
export class ChunkTurns {
  /** Turns of the short pool: every statement may begin, and those of workspaces are noted. */
  readonly short: Turns = {
    admits: () => true,
    enter: (workspace) => (workspace === null ? leaveNothing : this.#enterShort()),
  };
  /** Turns of the long pool: skips and totals pass. */
  readonly long: Turns = {
    admits: ({ takesTurns, isContinuation }) =>
      !takesTurns ||
      this.#isOpen ||
      (!isContinuation && this.#chunksRunning <= this.#atATime) ||
      performance.now() - this.#sentMs > recentMs,
    enter: (_, { takesTurns }) => (takesTurns ? this.#enterChunk() : leaveNothing),
  };
  readonly #atATime: number;
  readonly #onTurn: () => void;
  #sent = 0;
  #answered = 0;
  #sentMs = Number.NEGATIVE_INFINITY;
  #chunksRunning = 0;
  /** Number of answers to short statements after which the next chunk may begin. */
  #answersDue = 0;
  #isOpen = true;
  #timer: NodeJS.Timeout | undefined;

  /** `onTurn` is called when the next chunk may begin. */
  constructor(atATime: number, onTurn: () => void) {
    this.#atATime = atATime;
    this.#onTurn = onTurn;
  }

  #enterShort(): () => void {
    this.#sent++;
    this.#sentMs = performance.now();
    return this.#leaveShort;
  }

  readonly #leaveShort = (): void => {
    this.#answered++;
    this.#openIfAnswered();
  };

  #enterChunk(): () => void {
    this.#chunksRunning++;
    if (this.#chunksRunning >= this.#atATime) {
      this.#isOpen = false;
      this.#openIn(chunkMsMax);
    }
    return this.#leaveChunk;
  }

  readonly #leaveChunk = (): void => {
    this.#chunksRunning--;
    if (this.#chunksRunning >= this.#atATime) return;
    this.#isOpen = false;
    this.#answersDue = this.#sent;
    this.#openIn(shortMsMax);
    this.#openIfAnswered();
  };

  #openIfAnswered(): void {
    if (!this.#isOpen && this.#chunksRunning < this.#atATime && this.#answered >= this.#answersDue) this.#open();
  }

  #openIn(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#open(), ms).unref();
  }

  #open(): void {
    clearTimeout(this.#timer);
    this.#isOpen = true;
    this.#onTurn();
  }
}

function leaveNothing(): void {}
