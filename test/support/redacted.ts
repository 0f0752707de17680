import { Row } from '../../src/postgres/row.js';
import type { DiffShape, DiffWords } from '../../src/projection/audit-diff.js';
import { JsonBytes } from '../../src/projection/json-bytes.js';
import type { Redaction } from '../../src/projection/redact.js';

/** The shape and the words of the first app. */
export const appDiff: DiffShape = { field: 'veld', old: 'oud', new: 'nieuw' };
export const appWords: DiffWords = { field: 'veld', old: 'oud', new: 'nieuw', shielded: 'afgeschermd' };

/** Redacts the text of a diff, which stands between other bytes in its row. */
export function redactedText(redaction: Redaction): (entity: string, diff: string, shape?: DiffShape) => string {
  return (entity, diff, shape = appDiff) => {
    const json = new JsonBytes(16);
    redaction(shape, appWords)(Row.of([entity, diff, '"}]']), 0, 1, json);
    return json.toString();
  };
}
