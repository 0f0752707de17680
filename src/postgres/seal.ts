import { createHmac } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { atMost } from '../base/cache-bound.js';
import { deriveKey } from '../base/wall-key.js';
import type { WorkspaceId } from './statement.js';

/** The text by which `gateway.workspace()` accepts a workspace: 64 hexadecimal digits of its MAC, and its id (sql/core/002_workspace.sql). */
export type Seal = (workspace: WorkspaceId) => string;

/** SQLSTATE of gateway.workspace() for a workspace that is sealed by a key that the database has not. */
export const wallRefusal = 'WG006';

/** The key of the wall, of which the database has the pads alone. */
const macKey = (wallKey: string): Buffer => deriveKey(wallKey, 'workspace');

/** Seals workspaces by WALL_KEY, and remembers those that were active last. */
export function sealWith(wallKey: string): Seal {
  const key = macKey(wallKey);
  const sealed = new LRUCache<string, string>(atMost(10_000));
  return (workspace) => {
    const known = sealed.get(workspace);
    if (known !== undefined) return known;
    const made = `${createHmac('sha256', key).update(workspace).digest('hex')}${workspace}`;
    sealed.set(workspace, made);
    return made;
  };
}

/** The inner and the outer pad of the key, as RFC 2104 defines them for the blocks of SHA-256, of 64 bytes. */
export function padsOf(wallKey: string): readonly [inner: Buffer, outer: Buffer] {
  const block = Buffer.concat([macKey(wallKey), Buffer.alloc(32)]);
  const pad = (mask: number): Buffer => Buffer.from(block.map((byte) => byte ^ mask));
  return [pad(0x36), pad(0x5c)];
}
