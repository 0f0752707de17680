import { type Column, isMoved } from './catalog.js';
import { alias } from './columns.js';
import { type Fields, fieldsOf } from './fields.js';
import { idPoints } from './ids.js';
import { type ListDraft, listOf } from './lists.js';
import { isNamed, singular, snakeCase } from './names.js';
import { type PartDraft, partsOf } from './parts.js';
import { namesOf } from './resource-names.js';
import { deletedPoints, type SoftDelete, softDeleteOf } from './soft-delete.js';
import type { Subject, Survey } from './survey.js';
import { type SyncDraft, syncDraft } from './sync.js';
import { type WriteDraft, writeDraft } from './writes.js';

/** The id of the transaction that wrote the row (PostgreSQL, 5.6, System Columns). */
const xmin: Column = {
  name: 'xmin',
  quoted: 'xmin',
  inView: 'xmin',
  type: 'xid',
  length: null,
  notNull: true,
  made: true,
  computed: true,
  isVirtual: false,
  madeOf: [],
  refers: false,
  sequence: null,
  isArray: false,
  comment: null,
};

/** A resource as it is drafted: its view and its definition. */
export interface Draft extends Pick<Fields, 'columns' | 'sealed'> {
  readonly subject: Subject;
  /** Name of the view in the schema records, and of the SQL file. */
  readonly view: string;
  readonly softDelete: SoftDelete | undefined;
  readonly list: ListDraft;
  readonly parts: readonly PartDraft[];
  readonly sync: SyncDraft;
  /** The content of the JSON file, without $schema. */
  readonly definition: Readonly<Record<string, unknown>>;
  /** Absent: the resource is only read. */
  readonly write?: WriteDraft;
  /** Open points for the SQL file. */
  readonly open: readonly string[];
}

/** Drafts the resource of a table. */
export function draftOf(subject: Subject, survey: Survey, isWritten: boolean): Draft {
  const { table, log } = subject;
  const softDelete = softDeleteOf(table);
  const drafted = fieldsOf(subject, survey, [softDelete?.column]);
  const list = listOf(subject, survey, drafted);
  const parts = partsOf(subject, survey, drafted);
  const { view, name, record } = namesOf(subject, survey);
  const version = parts.length === 0 && !log ? versionOf(subject, drafted) : undefined;
  const entity = log ? undefined : wordsOfLog(survey).find((word) => isSameThing(word, table.name));
  const { sealed, codecs } = drafted;
  const sync = syncDraft(view, subject, survey, list, drafted, parts);
  const write = isWritten ? writeDraft(subject, survey, drafted, entity) : undefined;
  const { versionColumn } = write ?? {};
  const columns = new Map([
    ...drafted.columns,
    ...(versionColumn ? ([[versionColumn.name, { select: versionColumn.select, of: xmin }]] as const) : []),
  ]);
  const versionField = { column: 'row_version', type: 'bigint', description: 'Moves on every change.' };
  const definition = {
    name,
    record,
    description: table.comment ?? `The ${name.replaceAll('-', ' ')} of the workspace.`,
    view: `records.${view}`,
    ...(table.name !== name && /^[a-z_][a-z0-9_]*$/.test(table.name) && { table: table.name }),
    detail: log === undefined,
    ...((write ?? version) !== undefined && { version: write?.version ?? version }),
    order: list.order,
    ...(Object.keys(codecs).length > 0 && { codecs }),
    ...(sync.sync && { sync: sync.sync }),
    filters: list.filters,
    ...(entity !== undefined && { auditEntity: entity }),
    ...(write && { write: write.write }),
    fields: {
      ...(write?.fields ?? drafted.fields),
      ...(versionColumn && { rowVersion: versionField }),
      ...Object.fromEntries(parts.map(({ member, field }) => [member, field])),
    },
  };
  const open = [
    ...idPoints(table, subject.id, survey.tenant),
    ...reasons(drafted.leftOut),
    ...(subject.tenant.name === survey.tenant.column
      ? []
      : [`its workspace is that of ${subject.tenant.name}: is that the workspace of the row?`]),
    ...(subject.steps.length > 0 ? [stepsPoint(subject)] : []),
    ...(drafted.takenAsUtc.length > 0
      ? [
          `times without a zone are taken as UTC: ${drafted.takenAsUtc.join(', ')}; name the app's zone in the view if it is another one.`,
        ]
      : []),
    ...drafted.open,
    ...deletedPoints('rows', table),
    ...parts.flatMap((part) => part.open),
    ...(write?.open ?? []),
    ...sync.open,
    ...(list.order.length > 1
      ? []
      : ['no column tells when a row was created, so the list is in the order of the id.']),
  ];
  return { subject, view, columns, sealed, softDelete, list, parts, sync, definition, open, ...(write && { write }) };
}

/** The open point of a table whose workspace another one tells. */
function stepsPoint({ steps }: Subject): string {
  const way = steps.map(({ from, table }) => `${from.name} of ${table.quoted}`).join(', ');
  return `its workspace is that of ${way}, so a list sorts all rows of a workspace: where they are many, give the table a column of the workspace.`;
}

/** A version that a trigger of the app moves on every change. */
function versionOf({ table }: Subject, { columns }: Fields): string | undefined {
  const [found] = [...columns].find(
    ([, { of, select }]) => isNamed('version', of.name) && select === `${alias}.${of.quoted}` && isMoved(table, of),
  ) ?? [undefined];
  return found;
}

function wordsOfLog({ subjects }: Survey): readonly string[] {
  return subjects.flatMap(({ log }) => log?.entities ?? []);
}

/** "WorkOrder", "work_order" and "werkbon" of the log, and the names of their tables. */
function isSameThing(word: string, table: string): boolean {
  const [thing, name] = [snakeCase(word), snakeCase(table)];
  return thing === name || thing === singular(name) || singular(thing) === singular(name);
}

/** "email, phone are left out: …", a sentence per reason. */
function reasons(leftOut: Fields['leftOut']): string[] {
  return [...new Set(leftOut.map(([reason]) => reason))].map((reason) => {
    const names = leftOut.filter(([each]) => each === reason).map(([, name]) => name);
    return `left out: ${names.join(', ')} (${reason}). Where clients may see them, add them to view and definition.`;
  });
}
