/** The progress of a resource: the cursor of a pass under way, the token of the last whole pass. */
export interface PullState {
  readonly since: string | null;
  readonly cursor: string | null;
}

/** A column of a record's table: the name of the member, and its type in PostgreSQL. */
export interface Column {
  readonly name: string;
  readonly type: string;
}

/** Number of ids with a prefix, and the XOR of their hashes, as one text. */
export type Groups = ReadonlyMap<string, string>;

/** A copy of some resources. */
export interface Destination {
  /** Makes room for a resource, and returns its progress. */
  prepare(resource: string, columns: readonly Column[]): Promise<PullState>;
  /** Stores the records of a page, the body as the gateway sent it, and the progress: both or neither. Returns the number of records. */
  store(resource: string, body: string, state: PullState): Promise<number>;
  delete(resource: string, ids: readonly string[]): Promise<void>;
  /** The digest of the copy. */
  digest(resource: string, depth: number): Promise<Groups>;
  /** Ids whose SHA-256 begins with one of the prefixes. */
  ids(resource: string, prefixes: readonly string[]): Promise<readonly string[]>;
  close(): Promise<void>;
}

/** A destination that cannot be used; the message is meant for the operator. */
export class DestinationUnusable extends Error {}
