import { compileRedaction, type Redaction, type RedactionRules } from '../projection/redact.js';
import { canFail } from './record-schema.js';
import { codecsInUse, leaves, type Resource } from './resource.js';

/** Redaction by the rules of all definitions, which hides values that any of their codecs stores, too. */
export function redactionOf(resources: readonly Resource[]): Redaction {
  return compileRedaction(redactionRules(resources), resources.flatMap(codecsInUse));
}

/**
 * The fields of the audit log that a reader of it may see: of each resource that the log knows the columns that are
 * neither encoded nor JSON, by their names in the view, in the API and in the log, and the fields it lists besides. A resource is none of
 * the others, whatever a log lists for it.
 */
function redactionRules(resources: readonly Resource[]): RedactionRules {
  const rules: Record<string, readonly string[]> = {};
  for (const { auditFieldsOfOthers } of resources) Object.assign(rules, auditFieldsOfOthers);
  for (const resource of resources) {
    if (resource.auditEntity === undefined) continue;
    const own = leaves(resource)
      .filter(({ field, path }) => !canFail(field) && field.type !== 'json' && path.length === 1)
      .flatMap(({ field, path }) => [field.column, path[0] as string, field.write?.auditName ?? []].flat());
    rules[resource.auditEntity] = [...own, ...(resource.auditFields ?? [])];
  }
  return rules;
}
