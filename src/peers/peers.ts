import type { WritePosition } from '../db/wal-position.js';
import { type Limiter, memoryLimiter } from '../http/limits.js';

/** The other gateways, and the state that is shared with them. */
export interface Peers {
  /** A limiter whose counts are those of all gateways together. */
  limiter(name: string, quota: number): Limiter;
  /** Publishes a write; resolves when the others know of it, or after about 50 ms. Never rejects. */
  publishWrite(workspace: string, position: WritePosition): Promise<void>;
  /** The last write that another gateway published; undefined when there is none, or no answer within about 50 ms. */
  lastWrite(workspace: string): Promise<WritePosition | undefined> | undefined;
  close(): void;
}

/** A gateway by itself. */
export const standalone: Peers = {
  limiter: memoryLimiter,
  publishWrite: async () => {},
  lastWrite: () => undefined,
  close: () => {},
};
