import type { ReadContent } from '../postgres/read-register.js';

export interface PageSize {
  readonly perPage: number;
  rows: number | null;
}

export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Null for a response without a body (304). A piece's bytes may be overwritten when the next piece is requested. */
  readonly body: string | Buffer | AsyncGenerator<Buffer> | null;
  /** Must be called when the response is closed. */
  readonly release?: () => void;
  readonly page?: PageSize;
  /** Content for the register of reads; absent: no record. */
  readonly content?: ReadContent;
  /** Wait for the database before the first byte. */
  readonly databaseMs: number;
}

export function makeDataAsOf(asOfMs: number | null): Record<string, string> {
  return asOfMs === null ? {} : { 'Data-As-Of': new Date(asOfMs).toISOString() };
}
