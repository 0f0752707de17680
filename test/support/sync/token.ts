import { makeTokenSeal } from '../../../src/serve/sync/token-seal.js';
import { wallKey } from '../walls.js';

const seal = makeTokenSeal(wallKey);

/** Changes a part of a sync token: 1 system identifier, 2 timeline, 3 position, 4 oldest transaction, 5 moment. */
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
  const context = JSON.stringify([...owner, []]);
  return seal.encode(context, (seal.decode(context, encoded) as string[]).with(at - 1, value));
}
