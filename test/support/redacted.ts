import type { DiffMemberNames, DiffShape } from '../../src/resource/projection/audit-diff.js';
import type { Redaction } from '../../src/resource/projection/redact.js';

/** The shape and the words of the first app. */
export const appDiff: DiffShape = { field: 'veld', old: 'oud', new: 'nieuw' };
const appWords: DiffMemberNames = { field: 'veld', old: 'oud', new: 'nieuw', shielded: 'afgeschermd' };

export function redactedText(redaction: Redaction): (entity: string, diff: string, shape?: DiffShape) => string {
  return (entity, diff, shape = appDiff) => redaction(shape, appWords)(entity, diff);
}
