import { setTimeout as sleep } from 'node:timers/promises';
import { isSameHistory, marksAloneStatement } from '../../postgres/wal-position.js';
import type { RawRequest } from '../read/parse.js';
import { type ReadDeps, Reader } from '../read/routing.js';
import type { Pass } from './pass.js';
import { makeExpired } from './token-seal.js';

const pauseMs = 20;

/** Throws sync_expired at once for a position that no replica will reach, as after a restore. */
export async function requireHistory(reads: ReadDeps, request: RawRequest, pass: Pass): Promise<void> {
  const { before } = pass;
  const healthyReplicas = reads.replicas.filter(({ state }) => state.healthy);
  const isReached = (): boolean =>
    before === null || healthyReplicas.some(({ state }) => state.healthy && state.replayed >= before.lsn);
  const [pageServer] = healthyReplicas;
  if (before === null || pageServer === undefined || isReached()) return;
  const startedMs = performance.now();
  await Promise.all(healthyReplicas.map((replica) => replica.probe()));
  if (isReached()) return;
  await new Reader(reads, request, pass.compare).readRows(marksAloneStatement, {}, { replicasOnly: true, pageServer });
  while (!isReached() && reads.primaryReachable() && performance.now() - startedMs < reads.resumeMs) {
    const { newest } = reads.heartbeat;
    if (newest !== undefined && newest.tickMs >= startedMs) {
      if (isSameHistory(before, newest) && newest.insertLsn < before.lsn) throw makeExpired(); // although the sample is newer
      return;
    }
    await sleep(pauseMs);
  }
}
