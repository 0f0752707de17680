import type { Codec } from '../projection/codec.js';
import type { Keyring } from '../projection/keyring.js';
import type { Column } from './catalog.js';
import { isTextual } from './columns.js';
import type { Form } from './encodings.js';
import { camelCase, isNamed, shortened, singular, snakeCase } from './names.js';
import { hasPersonal, isPersonal } from './personal.js';
import { valuesOf } from './samples.js';
import { type Opened, openCells, type SealedCell } from './sealed-bytes.js';
import type { Subject } from './survey.js';

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
  /** Name of its codec, and the codec unless it is a preset. */
  readonly codecName: string;
  readonly codec?: Codec;
  readonly fields: Readonly<Record<string, FieldJson>>;
  readonly read: SealedRead;
  /** Places of members that hold personal data and are left out. */
  readonly leftOut: readonly string[];
}

type SealedForm = Extract<Form, { kind: 'sealed' }>;

const preset = { name: 'aes-256-gcm', prefix: 'enc:v2:{keyId}:', aad: '{workspace}|{table}|{column}|{id}' };
const usualLayout = ['nonce12', 'data', 'tag16'];

/** Describes a sealed column. With its key at hand layout, AAD and members of the document are found by trying; else they are open. */
export function sealedFields(column: Column, form: SealedForm, subject: Subject, keyring: Keyring): SealedFields {
  const { table, rows } = subject;
  const prefixes = prefixesOf(form.codec);
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
  const codecName = isPreset ? preset.name : shortened(snakeCase(column.inView), 40).replaceAll('_', '-');
  const { fields, leftOut } = fieldsOf(column, codecName, opened, isPreset);
  const read = { column, prefixes, ...(keyColumn ? { keyColumn } : prefixes.length === 0 && { keyId: onlyKeyId }) };
  return { codecName, ...(!isPreset && { codec }), fields, leftOut, read };
}

function prefixesOf({ prefix, legacyPrefix }: SealedForm['codec']): SealedRead['prefixes'] {
  return [prefix, legacyPrefix].flatMap((template) => {
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
  const [head = '', tail] = (form.codec.prefix ?? '').split('{keyId}');
  return rows.flatMap((row): SealedCell[] => {
    const value = row.get(column.name);
    if (value === undefined || value === null || !value.startsWith(head)) return [];
    const inPrefix = tail && value.slice(head.length).split(tail)[0];
    const keyId = inPrefix || (keyColumn && row.get(keyColumn.name));
    const names = {
      workspace: row.get(tenant.name) ?? '',
      table: table.name,
      column: column.name,
      id: row.get(id.name) ?? '',
    };
    return [{ value, names, ...(keyId && { keyId }) }];
  });
}

function fieldsOf(
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
