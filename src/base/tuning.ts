/**
 * Constants that bound or pace the gateway. They are no settings, because their best values do not depend on the site; they stand
 * together because tests of a bound set it to a value that a test can reach. Times in milliseconds.
 */
export const tuning = {
  /** Results of token look-ups kept in memory. */
  tokenCacheMax: 10_000,
  /** Page ends kept in memory, of all workspaces together, 350 to 600 bytes each. */
  pageMemoryMax: 20_000,
  /** Rows that a page number may skip from the nearest page that is remembered. */
  skipRowsMax: 1_000_000,
  /** Statements in flight on one short connection. */
  shortDepth: 32,
  /** Statements that one workspace may have in flight per replica; of long ones only one while other workspaces are served too. */
  shortPerWorkspace: 32,
  longPerWorkspace: 2,
  /** Requests that need no token, such as for the OpenAPI document or an unknown path, per minute and client address. */
  publicRequestsPerMinute: 60,
  /** Look-ups of unknown tokens per minute and client address whose failed authentications are used up. */
  lookUpsPerMinute: 10,
  /** Longest wait for a connection, and statements that wait per pool, before 503 overloaded. */
  queueWaitMs: 200,
  queueMax: 1000,
  /** Bytes of JSON that a chunk of a large page aims at for a fast client. */
  chunkBytes: 1_000_000,
  /** Pages up to this number of rows are read by one statement. */
  chunkRowsMax: 2000,
  /** Time for which a page that has begun looks for another replica. */
  resumeMs: 2500,
  /** Longest time that a streamed page may take. */
  pageTimeMaxMs: 7_200_000,
  /** Longest wait of a write for a connection to the primary. */
  writeWaitMs: 4000,
  /** Longest pause between two rounds that delete expired stored answers and note the tokens that were used. */
  upkeepIntervalMs: 60_000,
  /** Time for which a read waits for a replica to replay the workspace's last write. */
  freshnessWaitMs: 200,
  /** Pause between two probes of a server, and the time that one may take before a replica is ejected. */
  probeIntervalMs: 500,
  probeDeadlineMs: 1000,
  /** Pause between two looks whether views, privileges and row-level security still fit. */
  fitnessIntervalMs: 30_000,
  /** Time that a client has to send a request's header, and the whole request. */
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 20_000,
  /** Time for which a client may read nothing of its response: kernel buffers show progress in leaps. */
  slowClientMs: 180_000,
};

export type Tuning = Readonly<typeof tuning>;
