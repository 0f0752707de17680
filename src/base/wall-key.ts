import { hkdfSync } from 'node:crypto';

export const wallKeyAdvice = 'make one with `openssl rand -base64 32`';

/** Derives by HKDF-SHA-256 (RFC 5869): the key of one purpose reveals no other. */
export function deriveKey(wallKey: string, purpose: 'workspace' | 'sync'): Buffer {
  return Buffer.from(hkdfSync('sha256', Buffer.from(wallKey, 'base64'), '', `workspace-data-gateway ${purpose}`, 32));
}
