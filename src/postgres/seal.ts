import { createHmac } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { atMost } from '../base/cache-bound.js';
import { deriveKey } from '../base/wall-key.js';
import type { WorkspaceId } from './statement.js';

/** 64 hexadecimal digits of the MAC, U+001F, and the id (sql/core/002_workspace.sql). */
export type Seal = (workspace: WorkspaceId) => string;

/** Sealed by a key that the database does not have. */
export const wallRefusal = 'WG006';

/** The database has its pads alone. */
const macKey = (wallKey: string): Buffer => deriveKey(wallKey, 'workspace');

export function sealWith(wallKey: string): Seal {
  const key = macKey(wallKey);
  const sealed = new LRUCache<string, string>(atMost(10_000));
  return (workspace) => {
    const known = sealed.get(workspace);
    if (known !== undefined) return known;
    const made = `${createHmac('sha256', key).update(workspace).digest('hex')}\x1f${workspace}`;
    sealed.set(workspace, made);
    return made;
  };
}

/** RFC 2104, for SHA-256's blocks of 64 bytes. */
export function padsOf(wallKey: string): readonly [inner: Buffer, outer: Buffer] {
  const block = Buffer.concat([macKey(wallKey), Buffer.alloc(32)]);
  const pad = (mask: number): Buffer => Buffer.from(block.map((byte) => byte ^ mask));
  return [pad(0x36), pad(0x5c)];
}
