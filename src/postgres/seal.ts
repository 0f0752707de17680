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

const blockBytes = 64;

/** The inner and the outer pad of the key, as RFC 2104 defines them for SHA-256. */
export function padsOf(wallKey: string): readonly [inner: Buffer, outer: Buffer] {
  const block = Buffer.alloc(blockBytes);
  macKey(wallKey).copy(block);
  return [block.map((byte) => byte ^ 0x36), block.map((byte) => byte ^ 0x5c)].map((pad) => Buffer.from(pad)) as [
    Buffer,
    Buffer,
  ];
}
