/** Bounds that no site needs to turn; together, so that tests can lower them. Times in milliseconds. */
export const tuning = {
  tokenCacheMax: 10_000,
  /** Of all workspaces together, 350 to 600 bytes each. */
  pageMemoryMax: 20_000,
  /** Rows that a page number may skip from the nearest remembered page. */
  skipRowsMax: 1_000_000,
  shortDepth: 32,
  /** In flight per replica; of long ones only one while other workspaces are served too. */
  shortPerWorkspace: 32,
  longPerWorkspace: 2,
  /** Per minute and client address, for documents and unknown paths. */
  publicRequestsPerMinute: 60,
  /** Per minute and client address whose failed authentications are used up. */
  lookUpsPerMinute: 10,
  /** Of a single record, before 503 overloaded. */
  detailWaitMs: 200,
  queueMax: 1000,
  /** A statement without a byte for so long waits on a connection of its own. */
  quietMs: 150,
  /** JSON of a large page's chunk for a fast client. */
  chunkBytes: 1_000_000,
  /** Larger pages are read in chunks. */
  chunkRowsMax: 2000,
  /** How long a begun page looks for another replica. */
  resumeMs: 2500,
  pageTimeMaxMs: 7_200_000,
  writeWaitMs: 4000,
  upkeepIntervalMs: 60_000,
  /** How long a read waits for a replica to replay the workspace's last write. */
  freshnessWaitMs: 200,
  /** Also the time that a probe may take before a replica is ejected. */
  probeIntervalMs: 500,
  probeDeadlineMs: 1000,
  fitnessIntervalMs: 30_000,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 20_000,
  /** Without progress of the client; kernel buffers show progress in leaps. */
  slowClientMs: 180_000,
};

export type Tuning = Readonly<typeof tuning>;
