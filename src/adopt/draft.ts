import { parameterNames } from '../definition/filter-kinds.js';
import { logWrite } from './audit-log.js';
import { AdoptRefused, type Column, isMoved } from './catalog.js';
import { alias, deletedPoints, isInteger, isTextual, type SoftDelete, softDeleteOf } from './columns.js';
import { type FieldJson, type Fields, fieldsOf, referredById } from './fields.js';
import { type ListDraft, listOf } from './lists.js';
import { isNamed, namesOf, singular, snakeCase } from './names.js';
import { type PartDraft, partsOf, type SyncDraft, syncDraft } from './parts.js';
import type { Subject, Survey } from './survey.js';
import { idPoints } from './tenant.js';

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
  const columns = new Map(drafted.columns);
  const isByTransaction = write?.version === rowVersion;
  if (isByTransaction)
    columns.set(rowVersion, { select: `${alias}.xmin::text::bigint`, of: { ...subject.id, name: 'xmin' } });
  const versionField = { column: rowVersion, type: 'bigint', description: 'Moves on every change.' };
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
      ...(isByTransaction && { rowVersion: versionField }),
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

/** How a resource is written: parts of its definition, and what its view has for it. */
export interface WriteDraft {
  readonly fields: Fields['fields'];
  readonly write: Readonly<Record<string, unknown>>;
  readonly version: string;
  /** Times and ids that the app sets itself, without a default and without a trigger, which the view sets in its place. */
  readonly stamps: readonly Stamp[];
  readonly open: readonly string[];
}

/** A column of the table that the view has as it is stored beside the form that clients see, or that they see as it is. */
export interface Stamp {
  /** In the view. */
  readonly name: string;
  readonly of: Column;
  /** Whether no field shows it. */
  readonly isAdded: boolean;
  /** SQL of its default in the view. */
  readonly value: string;
}

/** The column of a view that holds the version where the table has none. */
const rowVersion = 'row_version';
const charactersMax = 10_000;
const uuidLength = 36;
const integerBounds: Readonly<Record<string, number>> = { smallint: 2 ** 15, integer: 2 ** 31, bigint: 2 ** 53 };

/** Drafts the writes of a resource. Throws AdoptRefused when nothing can give a new row its id. */
function writeDraft(subject: Subject, survey: Survey, drafted: Fields, entity: string | undefined): WriteDraft {
  const { table, id, tenant, steps } = subject;
  if (steps.length > 0)
    throw new AdoptRefused(
      `${table.quoted} cannot be written: it has no column of the workspace. Give it one, or leave the table out of --write.`,
    );
  const takesUuid = isTextual(id) && (id.length ?? uuidLength) >= uuidLength;
  if (!id.made && id.type !== 'uuid' && !takesUuid)
    throw new AdoptRefused(
      `${table.quoted} cannot be written: its id of type ${id.type} has no default; give it one, or leave the table out of --write.`,
    );
  const ofId = !id.made && takesUuid ? [{ name: 'id', of: id, isAdded: false, value: 'gen_random_uuid()::text' }] : [];
  const stamps = [...ofId, ...stampsOf(subject, drafted)];
  const moved = movedColumns(subject, drafted, stamps);
  if (moved.version === rowVersion && table.partitionKey.length > 0)
    throw new AdoptRefused(
      `${table.quoted} cannot be written: it has no column of its version, and of a table with partitions PostgreSQL returns no xmin in its place. Give it one, such as lock_version integer not null default 0, or leave the table out of --write.`,
    );
  const log = logWrite(survey);
  const logged = log.audit && entity !== undefined;
  const writable = new Map<string, Column>();
  const fields: Record<string, FieldJson> = {};
  for (const [member, field] of Object.entries(drafted.fields)) {
    const name = String(field.column);
    const column = drafted.columns.get(name);
    const target = column && referredById(subject, survey, column.of);
    const rule = column && writeRule(column.of, field);
    const refersAway = column && !target && column.of.refers;
    const isTaken = parameterNames.some((reserved) => reserved.test(member));
    const isOwn =
      isTaken || refersAway || column?.of === id || Object.hasOwn(moved.onChange, name) || isBookkeeping(name);
    if (column === undefined || rule === undefined || isOwn || column.select !== `${alias}.${column.of.quoted}`) {
      fields[member] = field;
      continue;
    }
    const auditName = logged && column.of.name !== name ? { auditName: column.of.name } : {};
    fields[member] = { ...field, write: { ...rule, ...auditName } };
    writable.set(name, column.of);
  }
  if (writable.size === 0) throw new AdoptRefused(`${table.quoted} cannot be written: no column of it can be.`);
  const given = [...writable.values(), ...stamps.map(({ of }) => of), id, tenant];
  const missing = table.columns.filter((column) => column.notNull && !column.made && !given.includes(column));
  const makesIds = !id.made && !takesUuid;
  return {
    fields,
    write: {
      ids: makesIds ? 'gateway' : 'database',
      ...(Object.keys(moved.onChange).length > 0 && { onChange: moved.onChange }),
      audit: logged ? log.audit : false,
    },
    version: moved.version,
    stamps,
    open: [
      `clients may write ${[...writable.keys()].join(', ')}: where they must not, remove "write" there.`,
      ...(ofId.length > 0
        ? [
            'a new record gets a UUID as its id: where the app makes ids of another form, give the view another default.',
          ]
        : []),
      ...Object.entries(moved.onChange)
        .filter(([name, how]) => how === 'increment' && !/_/.test(snakeCase(name)))
        .map(
          ([name]) =>
            `a change raises ${name}, as each change by the app must: where it is a value of the app, such as the version of a document, take xmin in its place (docs/adapting.md).`,
        ),
      ...(missing.length > 0
        ? [
            `a new row needs ${missing.map(({ name }) => name).join(', ')}, which no client gives: add a default, or a field.`,
          ]
        : []),
      ...(logged ? [] : ['writes are not in an audit log of the app, unless a trigger of the app logs them.']),
    ],
  };
}

/** Times and versions that the app keeps itself. */
function isBookkeeping(name: string): boolean {
  return isNamed('created', name) || isNamed('updated', name) || isNamed('version', name);
}

/** The rule of a field that clients can write; undefined for others. */
function writeRule(column: Column, field: FieldJson): FieldJson | undefined {
  if (column.made) return undefined; // a POST that leaves it out would write NULL, and a generated column takes no value
  const required = column.notNull ? { required: true } : {};
  if (field.references !== undefined) return required;
  if (field.codec !== undefined || field.pointer !== undefined) return undefined;
  if (field.type === 'text') {
    const lengths = { ...(column.notNull && { minLength: 1 }), maxLength: column.length ?? charactersMax };
    return { ...required, schema: lengths };
  }
  if (field.type === 'integer' && isInteger(column)) {
    const bound = integerBounds[column.type] as number;
    return { ...required, schema: { minimum: -bound + (bound === 2 ** 53 ? 1 : 0), maximum: bound - 1 } };
  }
  return ['enum', 'date', 'boolean'].includes(String(field.type)) ? required : undefined;
}

/**
 * The version, and the columns that no trigger of the app moves. Without a version column it is xmin, which each update moves:
 * so it is where a column is named version_number or revision and no trigger moves it, because that is a value of the app.
 */
function movedColumns(
  { table }: Subject,
  { columns }: Fields,
  stamps: readonly Stamp[],
): Pick<WriteDraft, 'version'> & { onChange: Record<string, 'increment' | 'now'> } {
  const plain = [...columns].filter(
    ([, { select, of }]) => select === `${alias}.${of.quoted}` && of.notNull && !of.computed,
  );
  const versions = plain.filter(([, { of }]) => isNamed('version', of.name) && isInteger(of));
  const version =
    versions.find(([, { of }]) => isMoved(table, of)) ??
    versions.find(([, { of }]) => isNamed('movedVersion', of.name));
  const updated = plain.find(([, { of }]) => isNamed('updated', of.name) && of.type === 'timestamp with time zone');
  const stamp = stamps.find(({ of, isAdded }) => isAdded && isNamed('updated', of.name))?.name;
  const onChange = {
    ...(version && !isMoved(table, version[1].of) && { [version[0]]: 'increment' as const }),
    ...(updated && !isMoved(table, updated[1].of) && { [updated[0]]: 'now' as const }),
    ...(stamp && { [stamp]: 'now' as const }),
  };
  return { version: version?.[0] ?? rowVersion, onChange };
}

/** The times of creation and of change that neither a default nor a trigger of the app sets. */
function stampsOf({ table }: Subject, { columns }: Fields): Stamp[] {
  const ofApp = table.columns.filter(
    (column) =>
      (isNamed('created', column.name) || isNamed('updated', column.name)) &&
      /^timestamp/.test(column.type) &&
      !column.isArray &&
      !column.computed,
  );
  return ofApp.flatMap((of): Stamp[] => {
    const [shown] = [...columns].filter(([, { select }]) => select === `${alias}.${of.quoted}`);
    const isSet = of.made || isMoved(table, of);
    const movesItself = isNamed('updated', of.name) && !isMoved(table, of) && !(shown && of.notNull);
    if (isSet && !movesItself) return [];
    const name = movesItself || !shown ? `stored_${of.inView}` : shown[0];
    return [{ name, of, isAdded: name !== shown?.[0], value: now(of) }];
  });
}

/** The time, as the column holds it; a time without a zone is taken as UTC. */
function now({ type }: Column): string {
  return type === 'timestamp with time zone' ? 'clock_timestamp()' : `clock_timestamp() at time zone 'UTC'`;
}
