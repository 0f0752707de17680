import type { WritePosition } from '../db/wal-position.js';
import { type Limiter, memoryLimiter } from '../http/limits.js';

/** The other gateways: what they share with this one. */
export interface Peers {
  /** A limiter whose counts are those of all gateways together. */
  limiter(name: string, quota: number): Limiter;
  /** Tells the others of a write; resolves when they know, or after 50 ms. Never rejects. */
  publishWrite(workspace: string, position: WritePosition): Promise<void>;
  /** The last write that another gateway told of; undefined when there is none, or nobody can say within 50 ms. */
  lastWrite(workspace: string): Promise<WritePosition | undefined> | undefined;
  close(): void;
}

/** How long a request may wait for what is shared. */
export const peerWaitMs = 50;

/** A gateway by itself. */
export const standalone: Peers = {
  limiter: memoryLimiter,
  publishWrite: async () => {},
  lastWrite: () => undefined,
  close: () => {},
};
