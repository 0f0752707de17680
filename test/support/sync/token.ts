import { createHash } from 'node:crypto';

/** Bytes of the digest that a sync token begins with. */
const digestBytes = 12;

/** A sync token of a workspace and a resource of which a part has another value: 1 system identifier, 2 timeline, 3 position, 4 oldest transaction, 5 moment. */
export function changedToken(token: string, owner: { workspace: string; resource: string }, at: number, value: string) {
  return changedParts(token, [owner.workspace, `sync token ${owner.resource}`], at, value);
}

/** A cursor of a pass, likewise: 1 to 5 as in a token, 6 moment, 7 and 8 transaction and moment of the pass before, 9 section. */
export function changedPlace(
  cursor: string,
  owner: { workspace: string; resource: string },
  at: number,
  value: string,
) {
  return changedParts(cursor, [owner.workspace, `sync ${owner.resource}`], at, value);
}

function changedParts(encoded: string, owner: readonly string[], at: number, value: string): string {
  const parts = Buffer.from(encoded, 'base64url').subarray(digestBytes).toString().split('\0');
  const context = JSON.stringify([...owner, []]);
  const payload = parts.with(at - 1, value).join('\0');
  const digest = createHash('sha256').update(context).update('\0').update(payload).digest().subarray(0, digestBytes);
  return Buffer.concat([digest, Buffer.from(payload)]).toString('base64url');
}
