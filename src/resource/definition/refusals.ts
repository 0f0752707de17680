import type { ValidateFunction } from 'ajv';
import { toPointer } from '../../base/members.js';
import { type DiffShape, usualDiff } from '../projection/audit-diff.js';
import { getHead, listCodecColumns } from '../projection/codec.js';
import { normalizeSpelling } from '../projection/redact.js';
import { type FieldType, fieldTypes, getType, type JsonSchema } from './field-types.js';
import { getKind, isParameter } from './filter-kinds.js';
import { canFail, makeReadSchema, makeShapeSchema, makeWriteSchema } from './record-schema.js';
import { type DefinitionFile, type Field, getPlace, type JsonShape, listLeaves } from './resource.js';

// Rules that config/resource.schema.json cannot express, such as references to missing names or columns.

export type CompileSchema = (schema: JsonSchema) => ValidateFunction;

interface PlacedField {
  readonly path: readonly string[];
  readonly field: Field;
  readonly at: string;
}

interface NamedColumn {
  readonly column: string;
  readonly at: string;
  readonly role: string;
  readonly types: readonly FieldType[];
  readonly mayBeNull?: boolean;
}

const orderTypes = (Object.keys(fieldTypes) as FieldType[]).filter((type) => getType(type).isPrinted !== undefined);

/** Definitions around a field that its rules consult: the remaining file and the other files. */
interface Surroundings {
  readonly codecs: DefinitionFile['codecs'];
  readonly columns: ReadonlyMap<string, PlacedField>;
  /** Null if not all definitions are known. */
  readonly filesByName: ReadonlyMap<string, DefinitionFile> | null;
  readonly compileSchema: CompileSchema;
}

/** Lists flaws: the place (RFC 6901), the fault, and the remedy. */
export function listContradictions(
  file: DefinitionFile,
  others: Pick<Surroundings, 'filesByName' | 'compileSchema'>,
): string[] {
  const { order, codecs, write, auditFields = {} } = file;
  const placed = listLeaves(file).map(({ path, field }): PlacedField => ({ path, field, at: getPlace(path) }));
  const columns = new Map(placed.toReversed().map((each) => [each.field.column, each]));
  const around: Surroundings = { codecs, columns, ...others };
  return [
    ...findFilterFlaws(file),
    ...listNamedColumns(file, columns).flatMap((each) => listColumnFlaws(each, columns.get(each.column))),
    ...(order.at(-1) === 'id' ? [] : ['/order: it does not end with id; add id: without it the order is not total']),
    ...findWriteFlaws(write, around),
    ...findLogFlaws(Object.keys(auditFields), placed),
    ...findCodecFlaws(around),
    ...placed.flatMap((each) => [
      ...findFieldFlaws(each, around),
      ...findShapeFlaws(each, around),
      ...listSchemaFlaws(each, around),
    ]),
  ];
}

function findWriteFlaws(write: DefinitionFile['write'], { columns }: Surroundings): string[] {
  return (['onChange', 'onCreate'] as const).flatMap((key) =>
    Object.keys(write?.[key] ?? {})
      .filter((column) => columns.get(column)?.field.write)
      .map((column) => `/write/${key}/${column}: the client sets column ${column}; remove it here`),
  );
}

function findLogFlaws(shown: readonly string[], placed: readonly PlacedField[]): string[] {
  const personal = placed.flatMap(({ field, path }) =>
    field.codec || field.personal ? [field.column, path.join('/')].map(normalizeSpelling) : [],
  );
  return shown
    .filter((name) => personal.includes(normalizeSpelling(name)))
    .map((name) => `/auditFields${toPointer([name])}: its values are personal or encoded; remove it`);
}

function findCodecFlaws({ codecs, columns }: Surroundings): string[] {
  return Object.entries(codecs).flatMap(([name, codec]) => {
    const flaws = [codec, codec.older ?? codec].flatMap(listCodecColumns).flatMap((column) => {
      const { codec: encoded, write } = columns.get(column)?.field ?? {};
      const fault = encoded ? 'is encoded' : write ? 'can be written' : null;
      return fault === null ? [] : [`/codecs/${name}: column ${column} ${fault}; use another column`];
    });
    const isAmbiguous = codec.older && getHead(codec) !== '' && getHead(codec.older).startsWith(getHead(codec));
    const flaw = `/codecs/${name}/older: an older value begins as others do; give both another beginning`;
    return isAmbiguous ? [...flaws, flaw] : flaws;
  });
}

function findFieldFlaws({ field, at }: PlacedField, { codecs, columns, filesByName }: Surroundings): string[] {
  const { column, pointer, codec, type, references, diff = {}, words = {} } = field;
  const first = columns.get(column) as PlacedField;
  const isShared = pointer !== undefined && first.field.pointer !== undefined;
  const target = filesByName && references !== undefined ? filesByName.get(references) : undefined;
  const idType = (target?.fields.id as Field | undefined)?.type;
  const rules = {
    [`${at}/column: ${first.at} shows it, too; show it once, or give both a pointer`]: first.at !== at && !isShared,
    [`${at}/codec: ${first.at} has another codec for the column; use the same`]:
      isShared && codec !== first.field.codec,
    [`${at}/codec: there is no codec ${codec}; use ${Object.keys(codecs).join(', ')}, or describe it in /codecs`]:
      codec !== undefined && !Object.hasOwn(codecs, codec),
    [`${at}/references: there is no resource ${references}; name another, or remove it`]:
      references !== undefined && filesByName && !target,
    [`${at}/references: the ids of ${references} are of another type than ${type}; use the same type`]:
      target && field.write && idType !== type,
    [`${at}: two parts of a change have the same place or word; give each its own`]: [diff, words].some(
      (members) => new Set(Object.values(members)).size < Object.keys(members).length,
    ),
  };
  return Object.entries(rules).flatMap(([flaw, isSo]) => (isSo ? [flaw] : []));
}

function findShapeFlaws({ field, at: place }: PlacedField, { filesByName }: Surroundings): string[] {
  return listNestedShapes(field, place).flatMap(({ shape, at }) => {
    const names = Object.entries(shape.fields ?? {}).map(([name, { column = name }]) => column);
    const isUnknown =
      shape !== field && filesByName && shape.references !== undefined && !filesByName.has(shape.references);
    return [
      ...(isUnknown ? [`${at}/references: there is no resource ${shape.references}; name another, or remove it`] : []),
      ...(new Set(names).size < names.length ? [`${at}/fields: two have the same column; show it once`] : []),
      ...listFreeJsonFlaws(shape, at),
    ];
  });
}

/** The schema refuses the names that parameters of every list have. */
function findFilterFlaws({ filters, sync }: DefinitionFile): string[] {
  const reserved = Object.keys(filters).filter((name) => isParameter(name, sync !== undefined));
  return reserved.map((name) => `/filters/${name}: it is a parameter of sync; give the filter another name`);
}

/** Refuses free JSON without a list of members, because no member is shown only for looking harmless. */
function listFreeJsonFlaws(shape: JsonShape | Field, at: string): string[] {
  const isListed =
    shape.type !== 'json' || shape.items || shape.fields || shape.show || ('clean' in shape && shape.clean);
  const remedy = 'list its members in show, or describe them by items or fields';
  return isListed ? [] : [`${at}: nothing of this JSON is listed; ${remedy}`];
}

function listNestedShapes(shape: JsonShape, at: string): { readonly shape: JsonShape; readonly at: string }[] {
  const { items, fields = {} } = shape;
  const members = Object.entries(fields).flatMap(([name, each]) =>
    listNestedShapes(each, `${at}/fields${toPointer([name])}`),
  );
  return [{ shape, at }, ...(items === undefined ? [] : listNestedShapes(items, `${at}/items`)), ...members];
}

function listNamedColumns(file: DefinitionFile, fields: ReadonlyMap<string, unknown>): NamedColumn[] {
  const { order, version, filters, sync, write } = file;
  const namedColumns = order.map((column, i): NamedColumn => {
    return { column, at: `/order/${i}`, role: 'a column of the order', types: orderTypes };
  });
  const versions: readonly FieldType[] = ['integer', 'bigint'];
  if (version !== undefined)
    namedColumns.push({ column: version, at: '/version', role: 'the version', types: versions });
  for (const [name, { column, kind, nearlyUnique }] of Object.entries(filters)) {
    const types = getKind(kind).columnTypes.filter((type) => type !== 'enum' || !nearlyUnique);
    const role = nearlyUnique ? 'nearly unique' : `compared by ${kind}`;
    namedColumns.push({ column, at: `/filters/${name}/column`, role, types, mayBeNull: true });
  }
  for (const [column, move] of Object.entries(write?.onChange ?? {})) {
    // A time in another form for clients has a column of its own in the write view, which `check` looks for.
    if (move === 'now' && !fields.has(column)) continue;
    const types: readonly FieldType[] = move === 'now' ? ['timestamp'] : versions;
    namedColumns.push({ column, at: `/write/onChange/${column}`, role: `moved by ${move}`, types });
  }
  const [column = ''] = order;
  const role = 'the moment of the addition';
  if (sync?.appendOnly) namedColumns.push({ column, at: '/sync/appendOnly', role, types: ['timestamp'] });
  return namedColumns;
}

/** Requires that a field shows the compared column as it is, and that it is NULL only if `mayBeNull`. */
function listColumnFlaws({ column, at, role, types, mayBeNull = false }: NamedColumn, placed?: PlacedField): string[] {
  if (placed === undefined) return [`${at}: no field shows column ${column}; add a field, or correct the name`];
  const { type, nullable } = placed.field;
  return [
    types.includes(type) ? [] : `${at}: column ${column} of type ${type} cannot be ${role}; use ${types.join(', ')}`,
    canFail(placed.field) ? `${at}: column ${column} is encoded or JSON, so it cannot be ${role}; use another` : [],
    nullable && !mayBeNull ? `${at}: column ${column} can be NULL, so it cannot be ${role}; use another` : [],
  ].flat();
}

function listSchemaFlaws({ field, at }: PlacedField, { compileSchema }: Surroundings): string[] {
  const flaws: string[] = [];
  const tryCompile = (schema: JsonSchema, pointer: string) => {
    try {
      return compileSchema(schema);
    } catch (error) {
      flaws.push(`${pointer}: it is not a JSON Schema: ${(error as Error).message}; correct it`);
      return undefined;
    }
  };
  for (const { shape, at: pointer } of listNestedShapes(field, at)) {
    // A type's own schema needs no test, and compiling it costs a start some milliseconds.
    if (shape.schema === undefined && shape.example === undefined) continue;
    const fits = tryCompile(shape === field ? makeReadSchema(field) : makeShapeSchema(shape), `${pointer}/schema`);
    if (shape.example !== undefined && fits?.(shape.example) === false)
      flaws.push(`${pointer}/example: it does not fit the field; correct the example`);
  }
  if (field.write?.schema) tryCompile(makeWriteSchema(field), `${at}/write/schema`);
  return flaws;
}

/** Compares the definitions: names that several have, and logs of different shapes. */
export function listSharedNames(files: ReadonlyMap<string, DefinitionFile>): [path: string, flaw: string][] {
  const entries = [...files];
  const twice = (['name', 'record', 'view', 'auditEntity'] as const).flatMap((key) =>
    entries.flatMap(([path, file], i): [string, string][] => {
      const first = entries.slice(0, i).find(([, other]) => file[key] !== undefined && other[key] === file[key]);
      return first ? [[path, `/${key}: ${first[0]} uses ${file[key]}, too; give it another one`]] : [];
    }),
  );
  const isOneLog =
    new Set(listLogs(files.values()).map(({ diff }) => JSON.stringify([diff.field, diff.old, diff.new]))).size < 2;
  const flaw = '/write/audit: the definitions store changes in different shapes of diff; use one, or set it to false';
  const unclear = entries.filter(([, { write }]) => write?.audit && !isOneLog);
  return [...twice, ...unclear.map(([path]): [string, string] => [path, flaw])];
}

export function listLogs(files: Iterable<DefinitionFile>): { readonly view: string; readonly diff: DiffShape }[] {
  return [...files].flatMap((file) =>
    listLeaves(file).flatMap(({ field: { clean, diff = usualDiff } }) =>
      clean === 'audit-diff' ? [{ view: file.view, diff }] : [],
    ),
  );
}
