import { isNamed } from '../../../base/words.js';
import type { DiffShape } from '../../../resource/projection/audit-diff.js';
import { holdsDocuments, isDocument, isInteger, isMoments, isTextual, parseJson } from '../columns/columns.js';
import type { AuditLog, Column, Survey, Table } from '../schema.js';
import { composePolicies, composeSequenceGrant, type DraftFile, nameAs } from '../sql.js';

/** Recognizes a log by the names of its columns and the shape of a JSON value. */
export function findAuditLog({ columns }: Table): AuditLog | undefined {
  const entityId = columns.find(({ name }) => isNamed('entityId', name));
  const entity = columns.find(
    (column) => column !== entityId && isNamed('entity', column.name) && !isInteger(column) && !isDocument(column),
  );
  const action = columns.find((column) => isNamed('action', column.name) && !isDocument(column));
  const documents = columns.filter(({ type }) => type === 'json' || type === 'jsonb');
  if (entity === undefined || entityId === undefined || action === undefined || documents[0] === undefined)
    return undefined;
  const entities = [...new Set(entity.values)];
  for (const diff of documents) {
    const shape = findShape(diff.values);
    if (shape !== undefined) return { entity, entityId, action, diff, shape, entities };
  }
  return { entity, entityId, action, diff: documents[0], entities };
}

/** No list of fields shields documents beside the diff, such as the row before. A log of documents as texts has no readable diff. */
export function listDocuments({ columns }: Table, log?: AuditLog): Column[] {
  const isLog = (['entity', 'entityId', 'action'] as const).every((purpose) =>
    columns.some(({ name }) => isNamed(purpose, name)),
  );
  if (!isLog) return [];
  const known = [log?.entity, log?.entityId, log?.action, log?.diff];
  return columns.filter((column) => !known.includes(column) && holdsDocuments(column));
}

/** Nine tenths of the diffs must have the shape: a log of years has some of other forms. */
function findShape(texts: readonly string[]): DiffShape | undefined {
  const diffs = texts
    .flatMap(parseJson)
    .filter((value): value is object => Object.keys(Object(value)).length > 0 && typeof value === 'object');
  const isList = isMost(diffs.filter(Array.isArray), diffs);
  const changes: unknown[] = diffs.flatMap((diff) => (Array.isArray(diff) === isList ? Object.values(diff) : []));
  if (
    !isList &&
    isMost(
      changes.filter((change) => Array.isArray(change) && change.length === 2),
      changes,
    )
  )
    return { old: 0, new: 1 };
  const objects = changes.filter((change) => typeof change === 'object' && change !== null && !Array.isArray(change));
  const names = [...new Set((objects as object[]).flatMap(Object.keys))];
  const named = (purpose: 'changedField' | 'before' | 'after'): string | undefined =>
    names.find((name) => isNamed(purpose, name));
  const [field, before, after] = [named('changedField'), named('before'), named('after')];
  if (!isMost(objects, changes) || !before || !after || (isList && !field)) return undefined;
  return { ...(isList && field && { field }), old: before, new: after };
}

function isMost(some: readonly unknown[], all: readonly unknown[]): boolean {
  return some.length > 0 && some.length >= all.length * 0.9;
}

export interface LogWrite {
  /** If it is absent, the gateway cannot write the log. */
  readonly audit?: Readonly<Record<'created' | 'changed' | 'actorType' | 'view', string>>;
  readonly file?: DraftFile;
}

// Whole words: a stored sentence must not get into a file, or into other workspaces.
const created = /^(created?|insert|inserted|add|added|new|aangemaakt|toegevoegd)$/i;
const changed = /^(updated?|changed?|edit|edited|modify|modified|gewijzigd|bijgewerkt)$/i;
const view = 'records.logboeken_write';
const momentNow = `to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;

export function planLogWrite({ subjects }: Survey): LogWrite {
  const subject = subjects.find(({ log, steps }) => log?.shape !== undefined && steps.length === 0);
  const log = subject?.log;
  if (subject === undefined || log === undefined) return {};
  const { table, tenant, id } = subject;
  const named = (purpose: 'actorType' | 'actorId'): Column | undefined =>
    table.columns.find((column) => isNamed(purpose, column.name) && isTextual(column));
  const [type, actor] = [named('actorType'), named('actorId')];
  if (type === undefined || actor === undefined) return {};
  const entry: readonly (readonly [Column, string])[] = [
    [tenant, 'workspace_id'],
    [log.entity, 'entity'],
    [log.entityId, 'entity_id'],
    [log.action, 'action'],
    [type, 'actor_type'],
    [actor, 'actor_id'],
    [log.diff, 'changes'],
  ];
  const given = new Set([...entry.map(([column]) => column), id]);
  const others = table.columns.filter((column) => column.notNull && !column.made && !given.has(column));
  const moment = others.find((column) => isTextual(column) && isMoments(column.values));
  if (!id.made || others.some((column) => column !== moment)) return {};
  const items = [...entry.map(([{ quoted }, name]) => nameAs(quoted, name)), ...(moment ? [moment.quoted] : [])];
  const words = log.action.values;
  return {
    audit: {
      created: words.find((word) => created.test(word)) ?? 'create',
      changed: words.find((word) => changed.test(word)) ?? 'update',
      actorType: 'api_token',
      view,
    },
    file: {
      path: 'logboeken_write.sql',
      about: ["The app's own audit log: entries are added, never changed and never read here."],
      sql: [
        ...(id.sequence ? [composeSequenceGrant(id.sequence)] : []),
        `create view ${view} as\n  select ${items.join(', ')}\n  from ${table.quoted};`,
        ...composePolicies([table], ['insert']),
        ...[moment].flatMap((of) =>
          of ? `alter view ${view} alter column ${of.quoted}\n  set default ${momentNow};` : [],
        ),
      ].join('\n'),
    },
  };
}
