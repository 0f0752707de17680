import { isNamed, toSnakeCase } from '../../../base/words.js';
import { parameterNames } from '../../../resource/definition/filter-kinds.js';
import { isInteger, isPlain, isTextual } from '../columns/types.js';
import { AdoptRefused, askAbout, type Column, type Subject, type Survey, type Table } from '../schema.js';
import { alias, composeSequenceGrant, nameAs, type Points } from '../sql.js';
import { namesOwner } from '../tables/owners.js';
import type { FieldJson, Fields, ViewColumn } from './fields.js';

/** The words and the view of an entry that the gateway adds to the app's log. */
export type AuditEntry = Readonly<Record<'created' | 'changed' | 'actorType' | 'view', string>>;

/** A time, an id or an author that only the app sets; for writes of clients the view sets it, or "onCreate" does. */
interface Stamp {
  readonly name: string;
  readonly of: Column;
  /** No field shows the column, so the view gets it for writes alone. */
  readonly isAdded: boolean;
  /** The default of the view; if it is absent, "onCreate" sets the owner of the token. */
  readonly value?: string;
}

const rowVersion = 'row_version';
const charactersMax = 10_000; // a text without a length of its own gets some pages
const uuidLength = 36;
/** JSON carries no integer beyond 2^53 without loss, so a bigint has narrower bounds than in PostgreSQL. */
const integerBounds: Readonly<Record<string, readonly [minimum: number, maximum: number]>> = {
  smallint: [-(2 ** 15), 2 ** 15 - 1],
  integer: [-(2 ** 31), 2 ** 31 - 1],
  bigint: [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER],
};

/** Plans "write" of a definition, and what its view needs for it. Throws AdoptRefused when nothing of the table can be written. */
export function planWrite(view: string, subject: Subject, survey: Survey, { columns }: Fields, audit?: AuditEntry) {
  const { table, id, tenant } = subject;
  requireId(subject);
  const stamps = [...listIds(id), ...listStamps(table, columns), ...listAuthors(table, columns, survey)];
  const { version, onChange } = listMovedColumns(columns, stamps);
  if (version === rowVersion && table.partitionKey.length > 0)
    refuseWrite(
      table,
      'it has no column of its version, and of a table with partitions PostgreSQL returns no xmin in its place',
      'Give it one, such as lock_version integer not null default 0',
    );
  const writable = listWritableColumns(columns, id, onChange, audit !== undefined);
  if (writable.length === 0) refuseWrite(table, 'no column of it can be', 'Give it one');
  const givenColumns = [...writable, ...stamps].map(({ of }) => of).concat(tenant, id.type === 'uuid' ? id : []);
  const missing = table.columns.filter(
    (column) => column.notNull && !isAutomatic(column) && !givenColumns.includes(column),
  );
  const creates = missing.length === 0;
  const authors = stamps.filter(({ value }) => value === undefined).map(({ name }) => [name, 'owner']);
  return {
    rules: new Map(writable.map(({ member, rule }) => [member, rule])),
    write: {
      ids: id.isMade || id.type !== 'uuid' ? 'database' : 'gateway',
      ...(!creates && { creates }),
      ...(creates && authors.length > 0 && { onCreate: Object.fromEntries(authors) }),
      ...(Object.keys(onChange).length > 0 && { onChange }),
      audit: audit ?? false,
    },
    version,
    columns: version === rowVersion ? [versionByTransaction(id)] : [],
    items: stamps.filter(({ isAdded }) => isAdded).map(({ name, of }) => nameAs(`${alias}.${of.quoted}`, name)),
    sql: [
      ...stamps.flatMap(({ name, value }) =>
        value ? [`alter view ${view} alter column ${name} set default ${value}; -- as the app does`] : [],
      ),
      ...[...new Set(table.columns.flatMap(({ sequence }) => sequence ?? []))].map(composeSequenceGrant),
    ],
    open: listWritePoints(subject, { writable, stamps, onChange, missing }, audit !== undefined),
  };
}

function refuseWrite({ quoted }: Table, reason: string, remedy: string): never {
  throw new AdoptRefused(`${quoted} cannot be written: ${reason}. ${remedy}, or leave the table out of --write.`);
}

const isAutomatic = ({ isMade, isFilled }: Column): boolean => isMade || isFilled;

function requireId({ table, id, steps }: Subject): void {
  if (steps.length > 0) refuseWrite(table, 'it has no column of the workspace', 'Give it one');
  if (id.composedOf) refuseWrite(table, `its key has ${id.composedOf.length} columns`, 'Give it an id of its own');
}

type WritableColumn = Pick<ViewColumn, 'of' | 'name' | 'member'> & { readonly rule: FieldJson };

function listWritableColumns(
  columns: readonly ViewColumn[],
  id: Column,
  onChange: object,
  isLogged: boolean,
): WritableColumn[] {
  return columns.flatMap((column) => {
    const { of, name, member } = column;
    const refersAway = of.refers && column.field.references === undefined;
    // The app sets its times and versions itself.
    const isKept = (['created', 'updated', 'version'] as const).some((purpose) => isNamed(purpose, name));
    const isOwn = of === id || Object.hasOwn(onChange, name) || isKept || refersAway;
    const isTaken = parameterNames.some((reserved) => reserved.test(member));
    if (isOwn || isTaken || !isPlain(column)) return [];
    const rule = chooseWriteRule(column);
    const renamed = isLogged && of.name !== name && { auditName: of.name };
    return rule ? [{ of, name, member, rule: { ...rule, ...renamed } }] : [];
  });
}

interface WriteDraft {
  readonly writable: readonly WritableColumn[];
  readonly stamps: readonly Stamp[];
  readonly onChange: Readonly<Record<string, unknown>>;
  /** A new row needs these columns, and neither a client nor a default gives them. */
  readonly missing: readonly Column[];
}

function listWritePoints({ table, id }: Subject, written: WriteDraft, isLogged: boolean): Points {
  const { writable, stamps, onChange, missing } = written;
  const creates = missing.length === 0;
  const authors = stamps.flatMap(({ name, value }) => (value === undefined ? [name] : []));
  const ofApp = Object.keys(onChange).filter((name) => onChange[name] === 'increment' && !/_/.test(toSnakeCase(name)));
  return [
    askAbout(
      'Clients may write these columns: where they must not, remove "write" there.',
      table,
      writable.map(({ name }) => name),
    ),
    creates &&
      authors.length > 0 &&
      `a new record has the owner of the token in ${authors.join(', ')}: where another user must be there, give the column a default in place of "onCreate".`,
    creates &&
      stamps.some(({ of }) => of === id) &&
      'a new record gets a UUID as its id: where the app makes ids of another form, give the view another default.',
    ...ofApp.map(
      (name) =>
        `a change raises ${name}, as each change by the app must: where it is a value of the app, such as the version of a document, take xmin in its place (docs/adopt/drafts.md).`,
    ),
    missing.length > 0 &&
      `there is no POST ("creates" is false), because a new row needs ${missing.map(({ name }) => name).join(', ')}, which no client gives: add a default, or a field.`,
    ...table.triggers.flatMap(({ name, runsAsCaller, parameters }) => [
      runsAsCaller &&
        `the trigger function ${name} uses tables as gateway_writer, which has no right to them: make it SECURITY DEFINER, with its search_path set.`,
      parameters.length > 0 &&
        `the trigger function ${name} reads ${parameters.join(', ')}, which the gateway does not set: let it read by current_setting(name, true).`,
    ]),
    !isLogged && 'writes are not in an audit log of the app, unless a trigger of the app logs them.',
  ];
}

/** Each row has xmin, the transaction that wrote it: it is a version where the table has none. */
function versionByTransaction(of: Column): ViewColumn {
  const field = { column: rowVersion, type: 'bigint', description: 'Moves on every change.' };
  return { of, name: rowVersion, select: `${alias}.xmin::text::bigint`, member: 'rowVersion', field };
}

/** Chooses the rule by which values are validated; undefined for a field that clients cannot write. */
function chooseWriteRule({ of, field }: ViewColumn): FieldJson | undefined {
  if (of.isMade) return undefined; // a POST that leaves it out would write NULL, and a generated column takes no value
  const required = of.notNull ? { required: true } : {};
  if (field.references !== undefined) return required;
  if (field.codec !== undefined) return undefined;
  if (field.type === 'text')
    return { ...required, schema: { ...(of.notNull && { minLength: 1 }), maxLength: of.length ?? charactersMax } };
  if (field.type === 'integer' && isInteger(of)) {
    const [minimum, maximum] = integerBounds[of.type] ?? [];
    return { ...required, schema: { minimum, maximum } };
  }
  return ['enum', 'date', 'boolean'].includes(String(field.type)) ? required : undefined;
}

/** Finds what a change has to move. Without a column that is surely a version, xmin is it: a version_number can be a value of the app. */
function listMovedColumns(
  columns: readonly ViewColumn[],
  stamps: readonly Stamp[],
): { version: string; onChange: Readonly<Record<string, 'increment' | 'now'>> } {
  const plain = columns.filter((column) => isPlain(column) && column.of.notNull && !column.of.isComputed);
  const versions = plain.filter(({ of }) => isNamed('version', of.name) && isInteger(of));
  const version = versions.find(({ of }) => of.isMoved) ?? versions.find(({ of }) => isNamed('movedVersion', of.name));
  const updated = plain.find(({ of }) => isNamed('updated', of.name) && of.type === 'timestamp with time zone');
  const stamp = stamps.find(({ of, isAdded }) => isAdded && isNamed('updated', of.name))?.name;
  const onChange = {
    ...(version && !version.of.isMoved && { [version.name]: 'increment' as const }),
    ...(updated && !updated.of.isMoved && { [updated.name]: 'now' as const }),
    ...(stamp && { [stamp]: 'now' as const }),
  };
  return { version: version?.name ?? rowVersion, onChange };
}

/** An id that is a text gets a UUID, if the database makes none. */
function listIds(id: Column): Stamp[] {
  const canHoldUuid = isTextual(id) && (id.length ?? uuidLength) >= uuidLength;
  return !id.isMade && canHoldUuid ? [{ name: 'id', of: id, isAdded: false, value: 'gen_random_uuid()::text' }] : [];
}

/** Finds the times that the app sets itself, because neither a default nor a trigger does. */
function listStamps(table: Table, columns: readonly ViewColumn[]): Stamp[] {
  const ofApp = table.columns.filter(
    ({ name, type, isArray, isComputed }) =>
      (isNamed('created', name) || isNamed('updated', name)) && /^timestamp/.test(type) && !isArray && !isComputed,
  );
  return ofApp.flatMap((of): Stamp[] => {
    const shownColumn = columns.find((column) => column.of === of && isPlain(column));
    const movesItself = isNamed('updated', of.name) && !of.isMoved && !(shownColumn && of.notNull);
    if ((of.isMade || of.isMoved) && !movesItself) return [];
    const name = movesItself || !shownColumn ? `stored_${of.inView}` : shownColumn.name;
    // The draft takes times without a zone as UTC.
    const value = of.type === 'timestamp with time zone' ? 'clock_timestamp()' : `clock_timestamp() at time zone 'UTC'`;
    return [{ name, of, isAdded: name !== shownColumn?.name, value }];
  });
}

/** Finds required authors: a foreign key leads from them to the users whose ids tokens have. */
function listAuthors(table: Table, columns: readonly ViewColumn[], survey: Survey): Stamp[] {
  return table.columns.flatMap((of) => {
    const shownColumn = columns.find((column) => column.of === of && isPlain(column));
    const isAuthor = of.notNull && !isAutomatic(of) && isNamed('author', of.name) && namesOwner(of, table, survey);
    if (!isAuthor || shownColumn?.field.references !== undefined) return [];
    return [{ name: shownColumn?.name ?? `stored_${of.inView}`, of, isAdded: shownColumn === undefined }];
  });
}
