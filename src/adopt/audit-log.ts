import type { DiffShape } from '../projection/audit-diff.js';
import type { Column, Table } from './catalog.js';
import { isInteger, isTextual, typeName } from './columns.js';
import { isNamed } from './names.js';
import { type SampleRow, valuesOf } from './samples.js';

/** The columns of an audit log. */
export interface AuditLog {
  readonly entity: Column;
  readonly entityId: Column;
  readonly action: Column;
  readonly diff: Column;
  /** Absent: no value of the sample has a shape that the gateway reads. */
  readonly shape?: DiffShape;
  /** The words of the log for its entities. */
  readonly entities: readonly string[];
}

/** The audit log in a table, by the names of its columns and the shape of a JSON value; undefined: it is none. */
export function auditLogIn({ columns }: Table, rows: readonly SampleRow[]): AuditLog | undefined {
  const entityId = columns.find(({ name }) => isNamed('entityId', name));
  const entity = columns.find(
    (column) => column !== entityId && isNamed('entity', column.name) && !isInteger(column) && !isDocument(column),
  );
  const action = columns.find((column) => isNamed('action', column.name) && !isDocument(column));
  const documents = columns.filter(({ type }) => type === 'json' || type === 'jsonb');
  if (entity === undefined || entityId === undefined || action === undefined || documents[0] === undefined)
    return undefined;
  const entities = [...new Set(valuesOf(rows, entity.name))];
  for (const diff of documents) {
    const shape = shapeOf(valuesOf(rows, diff.name));
    if (shape !== undefined) return { entity, entityId, action, diff, shape, entities };
  }
  return { entity, entityId, action, diff: documents[0], entities };
}

/** How a text begins that is JSON, YAML, XML or a printed hstore. */
const documentText = /^\s*(?:\{\s*["}]|\[\s*[[{"\]]|---\s|<\?xml|"[^"]*"=>)/;

/** Whether a text is a document. */
function isDocumentText(text: string): boolean {
  return documentText.test(text);
}

/**
 * The columns of a log that hold documents beside its diff, such as the row before and after: no list of fields shields them. Names
 * alone make it a log here, because one that keeps all documents as texts has no diff that the gateway reads.
 */
export function documentsIn(table: Table, rows: readonly SampleRow[], log?: AuditLog): Column[] {
  const { columns } = table;
  const isLog = (['entity', 'entityId', 'action'] as const).every((purpose) =>
    columns.some(({ name }) => isNamed(purpose, name)),
  );
  if (!isLog) return [];
  const known = [log?.entity, log?.entityId, log?.action, log?.diff];
  const isText = (column: Column): boolean => isTextual(column) && valuesOf(rows, column.name).some(isDocumentText);
  return columns.filter((column) => !known.includes(column) && (isDocument(column) || isText(column)));
}

/** Whether the column holds other records as they were, in a table that is no log by its other columns. */
export function isState(column: Column, rows: readonly SampleRow[]): boolean {
  return (
    isNamed('state', column.name) &&
    (isDocument(column) || (isTextual(column) && valuesOf(rows, column.name).some(isDocumentText)))
  );
}

/** Whether its type is one of documents or lists. */
function isDocument(column: Column): boolean {
  return column.isArray || ['json', 'jsonb', 'hstore', 'xml'].includes(typeName(column));
}

type Json = Readonly<Record<string, unknown>>;
const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The shape that nearly all diffs have: a log of years has some of other forms. */
function shapeOf(texts: readonly string[]): DiffShape | undefined {
  const values = texts.flatMap(parsed).filter((value) => Object.keys(value).length > 0);
  const lists = values.filter((value) => Array.isArray(value));
  if (isMost(lists, values)) {
    const [field, before, after] = keysOf(lists.flat(), ['changedField', 'before', 'after']) ?? [];
    return field && before && after ? { field, old: before, new: after } : undefined;
  }
  const changes = values.filter(isObject).flatMap((value): unknown[] => Object.values(value));
  const pairs = changes.filter((change) => Array.isArray(change) && change.length === 2);
  if (isMost(pairs, changes)) return { old: 0, new: 1 };
  const [before, after] = keysOf(changes, ['before', 'after']) ?? [];
  return before && after ? { old: before, new: after } : undefined;
}

function isMost(some: readonly unknown[], all: readonly unknown[]): boolean {
  return some.length > 0 && some.length >= all.length * 0.9;
}

/** The name of the member of each purpose in the changes; undefined unless nearly all are objects with these. */
function keysOf(
  changes: readonly unknown[],
  wanted: readonly ('changedField' | 'before' | 'after')[],
): string[] | undefined {
  const objects = changes.filter(isObject);
  if (!isMost(objects, changes)) return undefined;
  const names = [...new Set(objects.flatMap(Object.keys))];
  const keys = wanted.flatMap((purpose) => names.find((name) => isNamed(purpose, name)) ?? []);
  return keys.length === wanted.length ? keys : undefined;
}

/** Values that the sample has cut are left out. */
function parsed(text: string): object[] {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? [value] : [];
  } catch {
    return [];
  }
}
