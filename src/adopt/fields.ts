import type { Codec } from '../projection/codec.js';
import { isState } from './audit-log.js';
import type { Column } from './catalog.js';
import { alias, isTextual, reasonByOrigin, reasonToLeaveOut, type Shown, shown, shownId } from './columns.js';
import { type Form, formOf } from './encodings.js';
import { isMoments, momentOf } from './moments.js';
import { camelCase, isNamed, untaken } from './names.js';
import { reasonByValues } from './personal.js';
import { valuesOf } from './samples.js';
import { type FieldJson, type SealedRead, sealedFields } from './sealed-fields.js';
import type { Subject, Survey } from './survey.js';

/** Columns of a view and the fields over them: of one column of the table, or of all. */
export interface Fields {
  /** Name in the view → SQL, and the column of the table that it is made of. */
  readonly columns: ReadonlyMap<string, { readonly select: string; readonly of: Column }>;
  readonly fields: Readonly<Record<string, FieldJson>>;
  readonly codecs: Readonly<Record<string, Codec>>;
  readonly sealed: readonly SealedRead[];
  /** Names of columns without a field, by reason. */
  readonly leftOut: readonly (readonly [reason: string, name: string])[];
  /** Names of columns whose times have no zone. */
  readonly takenAsUtc: readonly string[];
  /** Open points for the SQL file. */
  readonly open: readonly string[];
}

const nothing: Fields = {
  columns: new Map(),
  fields: {},
  codecs: {},
  sealed: [],
  leftOut: [],
  takenAsUtc: [],
  open: [],
};

/** The fields of a subject, the id first, then column by column. */
export function fieldsOf(subject: Subject, survey: Survey, skipped: readonly (Column | undefined)[]): Fields {
  const { table, id, tenant } = subject;
  const others = table.columns.filter((column) => column !== id && column !== tenant && !skipped.includes(column));
  const identifier = one(id, 'id', shownId(id), { nullable: undefined, description: 'Opaque identifier.' });
  const ownReasons = others.map((column) => fieldsOfColumn(column, subject, survey));
  const left = ownReasons.flatMap(({ leftOut }) => leftOut.map(([, name]) => name));
  const drafted = others.map((column, i) => {
    const own = ownReasons[i] as Fields;
    const reason = own.columns.size === 0 ? undefined : reasonByOrigin(column, left);
    return reason === undefined ? own : { ...nothing, leftOut: [[reason, column.name] as const] };
  });
  const keyColumns = drafted.flatMap(({ sealed }) => sealed.flatMap(({ keyColumn }) => keyColumn ?? []));
  const shownOnes = drafted.filter((_, i) => !keyColumns.includes(others[i] as Column)); // key ids are not the clients' business
  return [identifier, ...shownOnes].reduce((all, each) => ({
    columns: new Map([...all.columns, ...each.columns]),
    fields: { ...all.fields, ...renamed(each.fields, all.fields) },
    codecs: { ...all.codecs, ...each.codecs },
    sealed: [...all.sealed, ...each.sealed],
    leftOut: [...all.leftOut, ...each.leftOut],
    takenAsUtc: [...all.takenAsUtc, ...each.takenAsUtc],
    open: [...all.open, ...each.open],
  }));
}

/** Members of a sealed document can have the name of a column, and two columns the same name in camel case. */
function renamed(fields: Fields['fields'], others: Fields['fields']): Fields['fields'] {
  const taken = new Set(Object.keys(others));
  return Object.fromEntries(Object.entries(fields).map(([name, field]) => [untaken(name, taken, ''), field]));
}

/** A column of the view and its field. */
function one(
  column: Column,
  name: string,
  { type, select, takenAsUtc, open }: Shown,
  more: FieldJson = {},
  member?: string,
): Fields {
  const nullable = column.notNull ? {} : { nullable: true };
  const field = { column: name, type, ...nullable, description: column.comment ?? `The ${name}.`, ...more };
  return {
    ...nothing,
    columns: new Map([[name, { select, of: column }]]),
    fields: { [member ?? camelCase(name)]: field },
    takenAsUtc: takenAsUtc === undefined ? [] : [takenAsUtc],
    open: open === undefined ? [] : [open],
  };
}

function fieldsOfColumn(column: Column, subject: Subject, survey: Survey): Fields {
  const { log, rows, documents } = subject;
  const name = column.inView;
  const isReference = column !== log?.entityId && referredTo(subject, survey, column) !== undefined;
  if (isReference && referredById(subject, survey, column) !== undefined) return one(column, name, shownId(column));
  const reason = reasonToLeaveOut(column);
  if (reason !== undefined) return { ...nothing, leftOut: [[reason, column.name]] };
  if (column === log?.entityId) return one(column, name, shownId(column), {}, 'entityId');
  if (column === log?.diff) return one(column, name, shown(column), diffField(subject));
  if (column === log?.entity) return one(column, name, shown(column), {}, 'entity');
  if (documents.includes(column))
    return { ...nothing, leftOut: [['documents of an audit log, which hold values of any field', column.name]] };
  if (isState(column, rows)) return { ...nothing, leftOut: [['states of other records, by the name', column.name]] };
  const values = valuesOf(rows, column.name);
  const personal = reasonByValues(values);
  if (personal !== undefined) return { ...nothing, leftOut: [[personal, column.name]] };
  if (isReference) return one(column, name, shownId(column));
  if (!isTextual(column) && column.type !== 'bytea') {
    const as = shown(column);
    return one(column, name, as, as.type === 'json' ? { clean: 'json-images' } : {});
  }
  const form = formOf(values, column.type === 'bytea');
  if (form.kind === 'sealed') return sealedColumn(column, form, subject, survey);
  if (form.kind === 'base64')
    return one(column, name, shown(column), {
      codec: 'base64',
      description: 'OPEN: its values look like base64 of texts; if they are not, remove codec.',
    });
  if (form.kind !== 'plain') return { ...nothing, leftOut: [[`${form.kind}, by the values`, column.name]] };
  if (!isMoments(values))
    return one(
      column,
      name,
      shown(column),
      form.isLong || isNamed('prose', column.name) ? { clean: 'text-images' } : {},
    );
  const open = `${column.name} holds times as texts: a value of another form than 2026-01-31T12:00:00Z would fail the whole page.`;
  return one(column, name, { type: 'timestamp', select: momentOf(shown(column).select), open });
}

function sealedColumn(
  column: Column,
  form: Extract<Form, { kind: 'sealed' }>,
  subject: Subject,
  survey: Survey,
): Fields {
  const found = sealedFields(column, form, subject, survey.keyring);
  const { keyColumn } = found.read;
  const cells = [column, ...(keyColumn ? [keyColumn] : [])];
  return {
    columns: new Map(
      cells.map((of) => [
        of.inView,
        { select: `${alias}.${of.quoted}${of !== keyColumn || isTextual(of) ? '' : '::text'}`, of },
      ]),
    ),
    fields: found.fields,
    codecs: found.codec ? { [found.codecName]: found.codec } : {},
    sealed: [found.read],
    leftOut: found.leftOut.map((pointer) => ['personal data, by the name', `${pointer} of ${column.name}`]),
    takenAsUtc: [],
    open: [],
  };
}

/** The subject that the column refers to by a foreign key, of one column or with the workspace. */
export function referredTo({ table, tenant }: Subject, { subjects }: Survey, column: Column): Subject | undefined {
  const key = table.foreignKeys.find(
    ({ columns, table: to }) =>
      columns.includes(column.name) &&
      columns.every((name) => name === column.name || name === tenant.name) &&
      subjects.some((subject) => subject.table.name === to),
  );
  return subjects.find((subject) => subject.table.name === key?.table);
}

/** The subject to whose id the column refers. Of any other record nothing tells the gateway whether it is of the same workspace. */
export function referredById(subject: Subject, survey: Survey, column: Column): Subject | undefined {
  const target = referredTo(subject, survey, column);
  const isById = subject.table.foreignKeys.some(
    ({ table, columns, references }) =>
      table === target?.table.name && references[columns.indexOf(column.name)] === target.id.name,
  );
  return isById ? target : undefined;
}

function diffField({ log }: Subject): FieldJson {
  const { shape } = log ?? {};
  const unknown =
    'OPEN: no sampled value has a shape that the gateway reads, so no change is shown; describe it with the key diff.';
  const isUsual = shape?.field === 'field' && shape.old === 'old' && shape.new === 'new';
  return {
    clean: 'audit-diff',
    ...(shape && !isUsual && { diff: shape }),
    description: shape ? 'Fields that changed, with old and new value.' : unknown,
  };
}
