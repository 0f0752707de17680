import { type Form, formOf } from '../check/forms.js';
import { shortened } from '../migrate/indexes.js';
import type { Codec } from '../projection/codec.js';
import type { Keyring } from '../projection/keyring.js';
import { isState } from './audit-log.js';
import { type Column, type SampleRow, valuesOf } from './catalog.js';
import {
  alias,
  isMoments,
  isTextual,
  momentOf,
  reasonByOrigin,
  reasonToLeaveOut,
  type Shown,
  shown,
  shownId,
} from './columns.js';
import { camelCase, isNamed, namesOf, singular, snakeCase, untaken } from './names.js';
import type { Subject, Survey } from './survey.js';
import { hasPersonal, isPersonal, type Opened, openCells, reasonByValues, type SealedCell } from './values.js';

/** Columns of a view and the fields over them: of one column of the table, or of all. */
export interface Fields {
  /** Name in the view → SQL, and the column of the table that it is made of. */
  readonly columns: ReadonlyMap<string, { readonly select: string; readonly of: Column }>;
  readonly fields: Readonly<Record<string, FieldJson>>;
  readonly codecs: Readonly<Record<string, Codec>>;
  readonly sealed: readonly SealedRead[];
  /** Names of columns without a field, by reason. */
  readonly leftOut: readonly (readonly [reason: string, name: string])[];
  /** Open points for the SQL file. */
  readonly open: readonly string[];
}

const nothing: Fields = { columns: new Map(), fields: {}, codecs: {}, sealed: [], leftOut: [], open: [] };

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
  { type, select, open }: Shown,
  more: FieldJson = {},
  member?: string,
): Fields {
  const nullable = column.notNull ? {} : { nullable: true };
  const field = { column: name, type, ...nullable, description: column.comment ?? `The ${name}.`, ...more };
  return {
    ...nothing,
    columns: new Map([[name, { select, of: column }]]),
    fields: { [member ?? camelCase(name)]: field },
    open: open === undefined ? [] : [open],
  };
}

function fieldsOfColumn(column: Column, subject: Subject, survey: Survey): Fields {
  const { log, rows, documents } = subject;
  const name = column.inView;
  const isReference = column !== log?.entityId && referredTo(subject, survey, column) !== undefined;
  const target = isReference ? referredById(subject, survey, column) : undefined;
  if (target !== undefined) return one(column, name, shownId(column), { references: namesOf(target, survey).name });
  const isOfLog = column === log?.entityId || column === log?.diff || column === log?.entity;
  const reason = isOfLog ? reasonToLeaveOut(column) : reasonNotToShow(column, rows, documents);
  if (reason !== undefined) return { ...nothing, leftOut: [[reason, column.name]] };
  if (column === log?.entityId) return one(column, name, shownId(column), {}, 'entityId');
  if (column === log?.diff) return one(column, name, shown(column), diffField(subject));
  if (column === log?.entity) return one(column, name, shown(column), {}, 'entity');
  if (isReference) return one(column, name, shownId(column));
  if (!isTextual(column) && column.type !== 'bytea') {
    const as = shown(column);
    return one(column, name, as, as.type === 'json' ? { clean: 'json-images' } : {});
  }
  const values = valuesOf(rows, column.name);
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

/** Why no field shows the column of a table with these rows, by its name, its type and its values; undefined: one does. */
export function reasonNotToShow(
  column: Column,
  rows: readonly SampleRow[],
  documents: readonly Column[],
): string | undefined {
  const reason = reasonToLeaveOut(column);
  if (reason !== undefined) return reason;
  if (documents.includes(column)) return 'documents of an audit log, which hold values of any field';
  if (isState(column, rows)) return 'states of other records, by the name';
  return reasonByValues(valuesOf(rows, column.name));
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
    codecs: found.codecs,
    sealed: [found.read],
    leftOut: found.leftOut.map((pointer) => ['personal data, by the name', `${pointer} of ${column.name}`]),
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

/** A member of the definition's `fields`. */
export type FieldJson = Readonly<Record<string, unknown>>;

/** A sealed column, and where the ids of its keys stand: in a column, behind one of the prefixes, or, for its only key, in neither. */
export interface SealedRead {
  readonly column: Column;
  readonly keyColumn?: Column;
  readonly keyId?: string;
  readonly prefixes: readonly { readonly head: string; readonly end: string }[];
}

/** A sealed column in a definition. */
interface SealedFields {
  /** Its codec and that of its older values, unless they are presets. */
  readonly codecs: Readonly<Record<string, Codec>>;
  readonly fields: Readonly<Record<string, FieldJson>>;
  readonly read: SealedRead;
  /** Places of members that hold personal data and are left out. */
  readonly leftOut: readonly string[];
}

type SealedForm = Extract<Form, { kind: 'sealed' }>;

const preset = { name: 'aes-256-gcm', prefix: 'enc:v2:{keyId}:', aad: '{workspace}|{table}|{column}|{id}' };
const usualLayout = ['nonce12', 'data', 'tag16'];

/** Describes a sealed column. With its key at hand layout, AAD and members of the document are found by trying; else they are open. */
function sealedFields(column: Column, form: SealedForm, subject: Subject, keyring: Keyring): SealedFields {
  const { table, rows } = subject;
  const prefixes = prefixesOf(form);
  const keyColumns = table.columns.filter(
    ({ name, type, isArray }) =>
      !isArray && type !== 'bytea' && isNamed('keyId', name) && valuesOf(rows, name).length > 0,
  );
  const keyColumn = prefixes.length > 0 ? undefined : (keyColumns.find(isTextual) ?? keyColumns[0]);
  const opened = openCells(cellsOf(column, form, subject, keyColumn), form.codec, keyring, singular(table.name));
  const isPreset = form.codec.prefix === preset.prefix && (opened?.codec.aad ?? preset.aad) === preset.aad;
  const onlyKeyId = opened?.keyId ?? 'unknown';
  const keyId = keyColumn ? { column: keyColumn.inView } : onlyKeyId;
  const codec: Codec = {
    cipher: 'aes-256-gcm',
    ...form.codec,
    ...(prefixes.length === 0 && { keyId }),
    layout: usualLayout,
    ...opened?.codec,
  };
  const codecName = isPreset ? preset.name : shortened(snakeCase(column.inView), 34).replaceAll('_', '-');
  const { fields, leftOut } = cellFieldsOf(column, codecName, opened, isPreset);
  const read = { column, prefixes, ...(keyColumn ? { keyColumn } : prefixes.length === 0 && { keyId: onlyKeyId }) };
  return { codecs: isPreset ? {} : codecsOf(codecName, codec, form.olderPrefix), fields, leftOut, read };
}

/** The codec, and where there are older values that of them: without associated data. */
function codecsOf(name: string, codec: Codec, olderPrefix?: string): Readonly<Record<string, Codec>> {
  if (olderPrefix === undefined) return { [name]: codec };
  const { aad: _, ...unbound } = codec;
  return { [name]: { ...codec, older: { ...unbound, prefix: olderPrefix } } };
}

function prefixesOf({ codec: { prefix }, olderPrefix }: SealedForm): SealedRead['prefixes'] {
  return [prefix, olderPrefix].flatMap((template) => {
    const [head, end] = template?.split('{keyId}') ?? [];
    return head !== undefined && end !== undefined ? [{ head, end }] : [];
  });
}

function cellsOf(
  column: Column,
  form: SealedForm,
  { table, rows, id, tenant }: Subject,
  keyColumn?: Column,
): SealedCell[] {
  const [head = ''] = (form.codec.prefix ?? '').split('{keyId}');
  const text = (row: SampleRow, of: Column): string => row.get(of.name) ?? '';
  return rows
    .filter((row) => row.get(column.name)?.startsWith(head))
    .map((row) => ({
      value: text(row, column),
      ...(keyColumn && { keyId: text(row, keyColumn) }),
      names: { workspace: text(row, tenant), table: table.name, column: column.name, id: text(row, id) },
    }));
}

function cellFieldsOf(
  column: Column,
  codec: string,
  opened: Opened | undefined,
  isPreset: boolean,
): Pick<SealedFields, 'fields' | 'leftOut'> {
  const base = { column: column.inView, codec, nullable: true };
  const member = camelCase(column.name);
  const documents = (opened?.texts ?? []).map(documentOf);
  if (opened !== undefined && documents.every((document) => document !== undefined)) {
    const leftOut: string[] = [];
    const fields = membersOf(documents as Document[], base, '', leftOut);
    return { fields, leftOut };
  }
  const place = isPreset ? 'config/codecs.json has' : `/codecs/${codec} has`;
  const description =
    opened === undefined
      ? `OPEN: it looks encrypted, and no key of DATA_KEYS opens it; ${place} a guess of its layout and aad.`
      : (column.comment ?? `The ${column.name}.`);
  return { fields: { [member]: { ...base, type: 'text', description } }, leftOut: [] };
}

type Document = Readonly<Record<string, unknown>>;

function documentOf(text: string): Document | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Document) : undefined;
  } catch {
    return undefined;
  }
}

/** The members of sealed documents as fields; an object in them becomes a group, deeper ones stay JSON. */
function membersOf(
  documents: readonly Document[],
  base: FieldJson,
  path: string,
  leftOut: string[],
): Record<string, FieldJson> {
  const fields: Record<string, FieldJson> = {};
  for (const name of new Set(documents.flatMap(Object.keys))) {
    const pointer = `${path}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
    const values = documents.map((document) => document[name] ?? null).filter((value) => value !== null);
    const isGroup = path === '' && values.length > 0 && values.every(isDocument);
    if (isPersonal(name) || (!isGroup && values.some(hasPersonal))) leftOut.push(pointer);
    else if (isGroup) {
      const group = membersOf(values, base, pointer, leftOut);
      if (Object.keys(group).length > 0) fields[camelCase(name)] = { description: `The ${name}.`, group };
    } else
      fields[camelCase(name)] = { ...base, pointer, type: memberType(values), description: `The ${camelCase(name)}.` };
  }
  return fields;
}

const isDocument = (value: unknown): value is Document =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function memberType(values: readonly unknown[]): 'text' | 'number' | 'boolean' | 'json' {
  const [type, ...others] = new Set(values.map((value) => typeof value));
  if (type === undefined || others.length > 0) return type === undefined ? 'text' : 'json';
  return ({ string: 'text', number: 'number', boolean: 'boolean' } as const)[type as 'string'] ?? 'json';
}
