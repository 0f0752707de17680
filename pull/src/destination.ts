import type { Resource } from './document.js';

/** The destination cannot take a copy; the message is meant for the operator. */
export class Unusable extends Error {}

/** The progress of a resource: null where a pass over everything begins. */
export interface Progress {
  readonly since: string | null;
  readonly cursor: string | null;
}

/** The number of the last change file of `--changes` that counts, of all resources. */
export interface Commit extends Progress {
  readonly changeFiles: number;
}

/** A group of records by the first digits of the SHA-256 of their ids: count and hash as the gateway's digest has them. */
export type Groups = ReadonlyMap<string, string>;

/** The copy of one resource. */
export interface Copy {
  readonly progress: Progress;
  /** Stores the records of a page while they come, as they stand in its text, with progress, in one transaction. Returns their number. */
  store(slices: AsyncIterable<readonly string[]>, commit: () => Promise<Commit>): Promise<number>;
  /** Deletes records, with their parts. */
  delete(ids: readonly string[], commit: () => Promise<Commit>): Promise<void>;
  digest(depth: number): Promise<Groups>;
  /** Versions by id of the records in some groups. */
  versions(prefixes: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /**
   * Recomputes the hash of everything that is stored. Records that differ lose their version, so that the digest differs from the
   * gateway's; parts without a record are deleted.
   */
  recheck(): Promise<void>;
  /** Makes what a whole copy has: indexes. */
  finish(): Promise<void>;
}

/** A database that holds copies. */
export interface Destination {
  /** The number of change files that count. */
  readonly changeFiles: number;
  open(resource: Resource): Promise<Copy>;
  /** Records whose reference leads to no record of `resources`. */
  dangling(resources: readonly Resource[]): Promise<number>;
  /** Replaces `folder`/TABLE.FORMAT of each table of the resource in one step. */
  export(resource: Resource, folder: string, format: ExportFormat): Promise<void>;
  close(): Promise<void>;
}

export type ExportFormat = 'parquet' | 'csv' | 'ndjson';
