import type { Resource } from './document.js';

/** The destination cannot take a copy; the message is for the operator. */
export class UnusableDestination extends Error {
  constructor(
    message: string,
    /** The destination can take a copy later, once another process has ended or the server runs. */
    readonly canPass = false,
  ) {
    super(message);
  }
}

/** The database has no memory for a step; fewer records at once can succeed. */
export class OutOfMemory extends Error {
  constructor(
    message: string,
    /** The database must be opened again. */
    readonly isBroken: boolean,
  ) {
    super(message);
  }
}

/** A column got a wider kind for a value, so everything is read again. The message is a sentence without its end. */
export class ColumnWidened extends Error {}

/** `since` is null when a pass over everything begins. */
export interface Progress {
  readonly since: string | null;
  readonly cursor: string | null;
}

/** Number of the last change file of `--changes` that counts, of all resources. */
export interface Commit extends Progress {
  readonly changeFiles: number;
}

/** Digests of records by the first digits of the SHA-256 of their ids: count and hash are as in the gateway's digest. */
export type Groups = ReadonlyMap<string, string>;

export interface Freshness {
  /** The copy has every commit before this moment; null: the gateway did not say. */
  readonly dataAsOf: string | null;
  /** True if the content of each record was compared with the gateway's text. */
  readonly isVerified: boolean;
}

export interface Copy {
  readonly progress: Progress;
  /** Tables and columns of the copy that the document no longer has. */
  readonly gone: readonly string[];
  /** Stores the records of a page as they come, with progress, in one transaction. Returns their number. Throws Widened, OutOfMemory. */
  store(slices: AsyncIterable<readonly string[]>, commit: () => Promise<Commit>): Promise<number>;
  /** Deletes records, with their parts. */
  delete(ids: readonly string[], commit: () => Promise<Commit>): Promise<void>;
  readDigest(depth: number): Promise<Groups>;
  /** Versions by id of the records in some groups. */
  readVersions(prefixes: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /** Recomputes the stored hashes. A record that differs loses its version, so the digest differs; parts without a record are deleted. */
  verifyHashes(): Promise<void>;
  /** Notes that all changes are stored. */
  noteUpdated(): Promise<void>;
  /** Adds indexes and `not null` to a whole copy, and notes its freshness. */
  finish(freshness: Freshness): Promise<void>;
}

/** The workspace of a copy, and the gateway that it came from. */
export interface Origin {
  readonly workspaceId: string;
  readonly base: string;
  readonly tokenExpiresAt: string | null;
  /** Zone in which the days of the API begin. */
  readonly timeZone: string | null;
}

/** Notes of the runs before about a resource. */
export interface ResourceNotes {
  /** Digest of the references that led nowhere. */
  readonly dangling: string;
  readonly tables: readonly string[];
}

/** References whose targets are not in the copy. */
export interface DanglingReferences {
  readonly count: number;
  readonly digest: string;
}

export interface Destination {
  readonly changeFiles: number;
  /** Takes the destination for this origin. Throws Unusable if it has copies of another; with `isReplaced` these are replaced. */
  claim(origin: Origin, isReplaced: boolean): Promise<void>;
  open(resource: Resource): Promise<Copy>;
  /** Finds references between the `resources` that lead nowhere, by resource. */
  findDangling(resources: readonly Resource[]): Promise<ReadonlyMap<string, DanglingReferences>>;
  readNotes(): Promise<ReadonlyMap<string, ResourceNotes>>;
  noteDangling(found: ReadonlyMap<string, DanglingReferences>): Promise<void>;
  noteFailure(resource: string, failure: string): Promise<void>;
  /** Replaces `folder`/TABLE.FORMAT of each table of the resource in one step. */
  export(resource: Resource, folder: string, format: ExportFormat): Promise<void>;
  close(): Promise<void>;
}

export const exportFormats = ['parquet', 'csv', 'excel-csv', 'ndjson'] as const;
export type ExportFormat = (typeof exportFormats)[number];
