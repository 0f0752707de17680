import { createHmac, hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { limitEntries } from '../base/cache-bound.js';
import { deriveKey } from '../base/wall-key.js';
import type { WorkspaceId } from './statement.js';

/** Computes the MAC of a workspace, followed by its hour and id (sql/core/002_workspace.sql). */
export type WorkspaceMac = (workspace: WorkspaceId) => string;

/** The database has only the pads of this key (`derivePads`), from which it computes the MAC. */
const deriveMacKey = (wallKey: string): Buffer => deriveKey(wallKey, 'workspace');

const hourSeconds = 3600;

export function makeWorkspaceMac(wallKey: string, now: () => number = Date.now): WorkspaceMac {
  const key = deriveMacKey(wallKey);
  const ofHour = new LRUCache<string, string>(limitEntries(10_000));
  let hour = 0;
  return (workspace) => {
    const hourNow = Math.floor(now() / 1000 / hourSeconds);
    if (hourNow !== hour) ofHour.clear();
    hour = hourNow;
    const known = ofHour.get(workspace);
    if (known !== undefined) return known;
    const text = `${(hour + 0.5) * hourSeconds}\x1f${workspace}`;
    const mac = `${createHmac('sha256', key).update(text).digest('hex')}\x1f${text}`;
    ofHour.set(workspace, mac);
    return mac;
  };
}

/** Computes the fingerprint by which the database names the key; gateway.wall_keys computes the same. */
export function hashFingerprint(wallKey: string): string {
  return hash('sha256', derivePads(wallKey)[0]).slice(0, 8);
}

/** Computes the pads of RFC 2104 for SHA-256's blocks of 64 bytes. */
export function derivePads(wallKey: string): readonly [inner: Buffer, outer: Buffer] {
  const block = Buffer.concat([deriveMacKey(wallKey), Buffer.alloc(32)]);
  const pad = (mask: number): Buffer => Buffer.from(block.map((byte) => byte ^ mask));
  return [pad(0x36), pad(0x5c)];
}
