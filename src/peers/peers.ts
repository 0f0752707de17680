import type { WritePosition } from '../db/wal-position.js';
import { type Limiter, rateLimiter } from '../flow/rate-limiter.js';
import type { RedisState } from './redis-health.js';

/** The state that a gateway shares with the other gateways. */
export interface Peers {
  /** Returns a limiter that counts the requests of all gateways together. */
  limiter(name: string, quota: number): Limiter;
  /** Publishes a write; resolves when the other gateways know it, or after about 250 ms. Never rejects. */
  publishWrite(workspace: string, position: WritePosition): Promise<void>;
  /** The last write that another gateway published; undefined when there is none, or no answer within about 250 ms. */
  lastWrite(workspace: string): Promise<WritePosition | undefined> | undefined;
  /** The state of Redis; null where none is used. */
  redis(): RedisState | null;
  close(): void;
}

/** Peers of a single gateway: nothing is shared. */
export const standalone: Peers = {
  limiter: (_, quota) => rateLimiter(quota),
  publishWrite: async () => {},
  lastWrite: () => undefined,
  redis: () => null,
  close: () => {},
};
