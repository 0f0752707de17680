/** Bounds that no site needs to turn; together, so that tests can lower them. Times in milliseconds. */
export const tuning = {
  tokenCacheMax: 10_000,
  /** Entries that all workspaces share; each takes 350 to 600 bytes. */
  pageMemoryMax: 20_000,
  /** Rows that a page number may skip from the nearest remembered page. */
  skipRowsMax: 1_000_000,
  shortDepth: 32,
  /** Statements in flight of a workspace per replica; only one long one while other workspaces are served too. */
  shortPerWorkspace: 32,
  longPerWorkspace: 2,
  /** Quota of a client address for documents and unknown paths. */
  publicRequestsPerMinute: 60,
  /** Quota of a client address whose failed authentications are used up. */
  lookUpsPerMinute: 10,
  /** Longest wait of a single record before 503 overloaded. */
  detailWaitMs: 200,
  queueMax: 1000,
  /** A statement without a byte for this long waits on a connection of its own. */
  quietMs: 150,
  /** JSON of a large page's chunk for a fast client. */
  chunkBytes: 1_000_000,
  /** Larger pages are read in chunks. */
  chunkRowsMax: 2000,
  /** A begun page looks for another replica for this long. */
  resumeMs: 2500,
  pageTimeMaxMs: 7_200_000,
  writeWaitMs: 4000,
  upkeepIntervalMs: 60_000,
  /** A read waits this long for a replica to replay the workspace's last write. */
  freshnessWaitMs: 200,
  /** A replica that answers no probe within the interval and the deadline is ejected. */
  probeIntervalMs: 500,
  probeDeadlineMs: 1000,
  fitnessIntervalMs: 30_000,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 20_000,
  /** A client may make no progress for this long; kernel buffers show progress in leaps. */
  slowClientMs: 180_000,
};

export type Tuning = Readonly<typeof tuning>;
