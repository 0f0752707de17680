/** Bounds that no site needs to turn; together, so that tests can lower them. Times in milliseconds. */
export const tuning = {
  tokenCacheMax: 10_000,
  /** All workspaces share it; each entry takes 350 to 600 bytes. */
  pageMemoryMax: 20_000,
  /** A page number may skip so many rows from the nearest remembered page. */
  skipRowsMax: 1_000_000,
  shortDepth: 32,
  /** So many statements are in flight per replica; only one long one while other workspaces are served too. */
  shortPerWorkspace: 32,
  longPerWorkspace: 2,
  /** The quota is of a minute and a client address, for documents and unknown paths. */
  publicRequestsPerMinute: 60,
  /** A client address whose failed authentications are used up has so many a minute. */
  lookUpsPerMinute: 10,
  /** A single record waits so long before 503 overloaded. */
  detailWaitMs: 200,
  queueMax: 1000,
  /** A statement without a byte for so long waits on a connection of its own. */
  quietMs: 150,
  /** A large page's chunk for a fast client has so much JSON. */
  chunkBytes: 1_000_000,
  /** Larger pages are read in chunks. */
  chunkRowsMax: 2000,
  /** A begun page looks for another replica for so long. */
  resumeMs: 2500,
  pageTimeMaxMs: 7_200_000,
  writeWaitMs: 4000,
  upkeepIntervalMs: 60_000,
  /** A read waits so long for a replica to replay the workspace's last write. */
  freshnessWaitMs: 200,
  /** A probe may take as long before a replica is ejected. */
  probeIntervalMs: 500,
  probeDeadlineMs: 1000,
  fitnessIntervalMs: 30_000,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 20_000,
  /** The client may make no progress for so long; kernel buffers show progress in leaps. */
  slowClientMs: 180_000,
};

export type Tuning = Readonly<typeof tuning>;
