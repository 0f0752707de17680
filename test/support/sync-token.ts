import { createHash } from 'node:crypto';

/** Bytes of the digest that a sync token begins with. */
const digestBytes = 12;

/** A sync token of a workspace and a resource of which a part has another value: 1 system identifier, 2 timeline, 3 position, 4 oldest transaction. */
export function changedToken(token: string, owner: { workspace: string; resource: string }, at: number, value: string) {
  const parts = Buffer.from(token, 'base64url').subarray(digestBytes).toString().split('\0');
  const context = JSON.stringify([owner.workspace, `sync token ${owner.resource}`, []]);
  const payload = parts.with(at, value).join('\0');
  const digest = createHash('sha256').update(context).update('\0').update(payload).digest().subarray(0, digestBytes);
  return Buffer.concat([digest, Buffer.from(payload)]).toString('base64url');
}
