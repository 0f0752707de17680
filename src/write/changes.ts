import type { Values } from '../db/statement.js';
import type { CompiledWrite } from '../definition/compiled.js';
import { type FieldType, fieldType } from '../definition/field-types.js';
import { diffOf, type NewChange } from '../projection/audit-diff.js';

/** The writable members of a record, in PostgreSQL's text form. */
export type Members = Readonly<Record<string, string | null>>;

/** The members that differ, by their names in the audit log; `before` is null for a new record. */
export function diffOfMembers({ validators }: CompiledWrite, before: Members | null, after: Members): NewChange[] {
  const changes: NewChange[] = [];
  for (const { name, type, auditName } of validators.writable) {
    const texts = [before?.[name] ?? null, after[name] ?? null] as const;
    if (texts[0] === texts[1]) continue;
    const change = { name: auditName, before: auditValue(type, texts[0]), after: auditValue(type, texts[1]) };
    if (change.before !== change.after) changes.push(change);
  }
  return changes;
}

/** The parameters of an audit entry. */
export function changesOf({ audit }: CompiledWrite, action: 'created' | 'changed', entries: NewChange[]): Values {
  if (audit === null) return {};
  const { entity, actorType, diff, [action]: name } = audit;
  return {
    'log.entity': entity,
    'log.action': name,
    'log.actorType': actorType,
    'log.changes': diffOf(entries, diff),
  };
}

/** A value in PostgreSQL's text form → its value in an audit diff. */
function auditValue(type: FieldType, text: string | null): unknown {
  return text === null ? null : (fieldType(type).auditValue?.(text) ?? text);
}
