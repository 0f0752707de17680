/** The progress of a resource: the cursor of a pass under way, the token of the last whole pass. */
export interface PullState {
  readonly since: string | null;
  readonly cursor: string | null;
}

/** A column of a record: the name of the member, and its type in PostgreSQL. */
export interface Column {
  readonly name: string;
  readonly type: string;
}

/** Number of ids with a prefix, and the XOR of their hashes, as one text. */
export type Groups = ReadonlyMap<string, string>;

/** A place for copies of resources; one process at a time has it. */
export interface Destination {
  /** The copy of a resource, made when it is absent. Only the copy that was opened last is in use. */
  open(resource: string, columns: readonly Column[]): Promise<Copy>;
  /** Commits what is stored and gives the place up. */
  close(): Promise<void>;
}

/** The copy of a resource. Every change counts from `commit` at the latest, in the order of the calls. */
export interface Copy {
  /** The progress when the copy was opened. */
  readonly state: PullState;
  /** Stores the records of a page, the body as the gateway sent it, and the progress: both or neither. Returns the number of records. */
  store(body: string, state: PullState): Promise<number>;
  delete(ids: readonly string[]): Promise<void>;
  /** The digest of the copy; `depth` is at most 3. */
  digest(depth: number): Promise<Groups>;
  /** Ids whose SHA-256 begins with one of the prefixes. */
  ids(prefixes: readonly string[]): Promise<readonly string[]>;
  /** Makes all changes so far last. */
  commit(): Promise<void>;
}

/** A destination that cannot be used; the message is meant for the operator. */
export class DestinationUnusable extends Error {}
