import type { ReadContent } from './read-register.js';

export interface PageSize {
  readonly perPage: number;
  /** Null until the last piece. */
  readonly rows: number | null;
}

/** Content of a response until now, for the log and the register of reads. */
export interface SentContent {
  /** Absent: no list. */
  readonly page?: PageSize;
  /** Absent: no record. */
  readonly content?: ReadContent;
}

/** The response has sent so much with this piece. Its bytes may be overwritten when the next piece is requested. */
export interface Piece extends SentContent {
  readonly bytes: Buffer;
}

export interface Reply extends SentContent {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Null for a response without a body (304). */
  readonly body: string | Buffer | AsyncGenerator<Piece> | null;
  /** Gives the buffer of the body to the next page. Is called when the response is closed. */
  readonly release?: () => void;
  /** Wait for the database before the first byte. */
  readonly databaseMs: number;
}

export function makeDataAsOf(asOfMs: number | null): Record<string, string> {
  return asOfMs === null ? {} : { 'Data-As-Of': new Date(asOfMs).toISOString() };
}
