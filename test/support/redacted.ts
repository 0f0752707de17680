import { Row } from '../../src/db/row.js';
import type { DiffShape } from '../../src/projection/audit-diff.js';
import { JsonBytes } from '../../src/projection/json-bytes.js';
import type { Redaction } from '../../src/projection/redact.js';

/** Redacts the text of a diff, which stands between other bytes in its row. */
export function redactedText(redaction: Redaction): (entity: string, diff: string, shape?: DiffShape) => string {
  return (entity, diff, shape) => {
    const json = new JsonBytes(16);
    redaction(shape)(Row.of([entity, diff, '"}]']), 0, 1, json);
    return json.toString();
  };
}
