import { isNamed } from '../../../base/words.js';
import type { DiffShape } from '../../../resource/projection/audit-diff.js';
import { parseJson } from '../columns/sampled-values.js';
import { holdsDocuments, isDocument, isInteger } from '../columns/types.js';
import type { AuditLog, Column, Table } from '../schema.js';

/** Recognizes an audit log by the names of its columns, and finds its diff: the first JSON column with a shape that the gateway reads. */
export function findAuditLog({ columns }: Table): AuditLog | undefined {
  const entityId = columns.find(({ name }) => isNamed('entityId', name));
  const entity = columns.find(
    (column) => column !== entityId && isNamed('entity', column.name) && !isInteger(column) && !isDocument(column),
  );
  const action = columns.find((column) => isNamed('action', column.name) && !isDocument(column));
  const documents = columns.filter(({ type }) => type === 'json' || type === 'jsonb');
  if (entity === undefined || entityId === undefined || action === undefined || documents[0] === undefined)
    return undefined;
  const diff = documents.find(({ values }) => findShape(values)) ?? documents[0];
  const shape = findShape(diff.values);
  return { entity, entityId, action, diff, ...(shape && { shape }), entities: [...new Set(entity.values)] };
}

/** Finds the documents of a log beside its diff, such as a copy of the row before: they hold values of fields that clients must not see. */
export function listDocuments({ columns }: Table, log?: AuditLog): Column[] {
  const isLog = (['entity', 'entityId', 'action'] as const).every((purpose) =>
    columns.some(({ name }) => isNamed(purpose, name)),
  );
  if (!isLog) return [];
  const knownColumns = [log?.entity, log?.entityId, log?.action, log?.diff];
  return columns.filter((column) => !knownColumns.includes(column) && holdsDocuments(column));
}

/** Finds the shape that at least nine tenths of the diffs have, because a log of years also has some of other forms. */
function findShape(texts: readonly string[]): DiffShape | undefined {
  const diffs = texts
    .flatMap(parseJson)
    .filter((value): value is object => Object.keys(Object(value)).length > 0 && typeof value === 'object');
  const isList = isMost(diffs.filter(Array.isArray), diffs);
  const changes: unknown[] = diffs.flatMap((diff) => (Array.isArray(diff) === isList ? Object.values(diff) : []));
  const pairs = changes.filter((change) => Array.isArray(change) && change.length === 2);
  if (!isList && isMost(pairs, changes)) return { old: 0, new: 1 };
  const objects = changes.filter((change) => typeof change === 'object' && change !== null && !Array.isArray(change));
  const names = [...new Set((objects as object[]).flatMap(Object.keys))];
  const findNamedMember = (purpose: 'changedField' | 'before' | 'after'): string | undefined =>
    names.find((name) => isNamed(purpose, name));
  const [field, before, after] = [findNamedMember('changedField'), findNamedMember('before'), findNamedMember('after')];
  if (!isMost(objects, changes) || !before || !after || (isList && !field)) return undefined;
  return { ...(isList && field && { field }), old: before, new: after };
}

function isMost(some: readonly unknown[], all: readonly unknown[]): boolean {
  return some.length > 0 && some.length >= all.length * 0.9;
}
