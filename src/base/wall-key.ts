import { hkdfSync } from 'node:crypto';

/** How an operator makes a WALL_KEY. */
export const wallKeyAdvice = 'make one with `openssl rand -base64 32`';

/** A key for one purpose, by HKDF-SHA-256 (RFC 5869): the key of one purpose tells nothing of another's, or of WALL_KEY. */
export function deriveKey(wallKey: string, purpose: 'workspace' | 'sync'): Buffer {
  return Buffer.from(hkdfSync('sha256', Buffer.from(wallKey, 'base64'), '', `workspace-data-gateway ${purpose}`, 32));
}
