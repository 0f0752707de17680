import { spelling } from '../projection/redact.js';
import { contradictionsOfCodecs } from './codec-contradictions.js';
import { contradictionsOfField } from './field-contradictions.js';
import { fieldType, idTypes } from './field-types.js';
import { filterKind, parameterNames } from './filter-kinds.js';
import type { DefinitionFile } from './load.js';
import { canFail } from './record-schema.js';
import { type Field, leaves, type Move, placeOf } from './resource.js';
import type { CompileSchema } from './schema-compiler.js';

/** A flaw of a definition. */
export interface Flaw {
  /** JSON pointer (RFC 6901) in the file. */
  readonly at: string;
  readonly wrong: string;
  readonly remedy: string;
}

/** A definition, indexed for its rules. */
export interface Examined {
  readonly file: DefinitionFile;
  /** Fields by column; of two with one column the first. */
  readonly columns: ReadonlyMap<string, PlacedField>;
  /** Definitions by the view they read; null when not all are known. */
  readonly views: ReadonlyMap<string, DefinitionFile> | null;
  readonly compileSchema: CompileSchema;
}

/** A field and where it stands in the file. */
export interface PlacedField {
  readonly path: readonly string[];
  readonly field: Field;
  readonly at: string;
}

/** Everything in which a definition that fits the schema contradicts itself or the views of the others. */
export function contradictions(
  file: DefinitionFile,
  { views, compileSchema }: Pick<Examined, 'views' | 'compileSchema'>,
): Flaw[] {
  const placed = leaves(file).map(({ path, field }) => ({ path, field, at: placeOf(path) }));
  const columns = new Map<string, PlacedField>();
  for (const each of placed) if (!columns.has(each.field.column)) columns.set(each.field.column, each);
  const examined: Examined = { file, columns, views, compileSchema };
  return [
    ...[identifier, order, version, filters, sync, writes, moves, audit, contradictionsOfCodecs].flatMap((rule) =>
      rule(examined),
    ),
    ...placed.flatMap((each) => contradictionsOfField(each, examined)),
  ];
}

function identifier({ columns }: Examined): Flaw[] {
  const id = columns.get('id');
  if (id === undefined) {
    return [{ at: '/fields', wrong: 'no field shows the column id', remedy: 'add one: each record has an identifier' }];
  }
  const { field, at } = id;
  const isType = (idTypes as readonly string[]).includes(field.type);
  const type = {
    at: `${at}/type`,
    wrong: `an id cannot be of type ${field.type}`,
    remedy: `use ${idTypes.join(', ')}`,
  };
  return [...(isType ? [] : [type]), ...plainAndPresent(id, 'the id')];
}

function order({ file, columns }: Examined): Flaw[] {
  const flaws = file.order.flatMap((column, i): Flaw[] => {
    const at = `/order/${i}`;
    const shown = columns.get(column);
    if (shown === undefined) return [notShown(at, column)];
    const { type } = shown.field;
    const unordered = `a list cannot be ordered by column ${column} of type ${type}`;
    const isOrdered = fieldType(type).isPrinted !== undefined;
    return [
      ...(isOrdered ? [] : [{ at, wrong: unordered, remedy: 'use a column of another type' }]),
      ...plainAndPresent(shown, `column ${column} of the order`),
    ];
  });
  if (file.order.at(-1) === 'id') return flaws;
  return [
    ...flaws,
    { at: '/order', wrong: 'it does not end with id', remedy: 'add id: without it the order is not total' },
  ];
}

function version({ file, columns }: Examined): Flaw[] {
  if (file.version === undefined) return [];
  const at = '/version';
  const shown = columns.get(file.version);
  if (shown === undefined) return [notShown(at, file.version)];
  const { type } = shown.field;
  const wrong = `column ${file.version} is of type ${type}, which cannot be a version`;
  return [
    ...(type === 'integer' || type === 'bigint' ? [] : [{ at, wrong, remedy: 'use integer or bigint' }]),
    ...(file.detail ? [] : [{ at, wrong: 'nothing shows the version', remedy: 'set detail to true, or remove it' }]),
    ...plainAndPresent(shown, 'the version'),
  ];
}

function filters({ file, columns }: Examined): Flaw[] {
  return Object.entries(file.filters).flatMap(([name, { column, kind, nearlyUnique }]): Flaw[] => {
    const at = `/filters/${name}`;
    const taken = parameterNames.some((reserved) => reserved.test(name));
    const flaws: Flaw[] = taken
      ? [{ at, wrong: `${name} is a parameter of every list or statement`, remedy: 'give it another name' }]
      : [];
    const shown = columns.get(column);
    if (shown === undefined) return [...flaws, notShown(`${at}/column`, column)];
    const { type } = shown.field;
    const { columnTypes } = filterKind(kind);
    if (!columnTypes.includes(type)) {
      const wrong = `${kind} does not fit column ${column} of type ${type}`;
      flaws.push({ at: `${at}/kind`, wrong, remedy: `it fits ${columnTypes.join(', ')}` });
    }
    if (nearlyUnique && type === 'enum') {
      const wrong = `many rows have the same label in column ${column}`;
      flaws.push({ at: `${at}/nearlyUnique`, wrong, remedy: 'remove it' });
    }
    if (canFail(shown.field)) {
      const wrong = `column ${column} is encoded or JSON, so its stored values cannot be compared`;
      flaws.push({ at: `${at}/column`, wrong, remedy: 'filter on another column' });
    }
    return flaws;
  });
}

function sync({ file, columns }: Examined): Flaw[] {
  if (!file.sync?.appendOnly) return [];
  const type = columns.get(file.order[0] as string)?.field.type;
  const wrong = `the order begins with a column of type ${type}, not with the moment of the addition`;
  return type === 'timestamp' || type === undefined
    ? []
    : [{ at: '/sync/appendOnly', wrong, remedy: 'put a timestamp first, or remove it' }];
}

function writes({ file, columns }: Examined): Flaw[] {
  const writable = [...columns.values()].filter(({ field }) => field.write !== undefined);
  if (file.write === undefined) {
    return writable.map(({ at }) => ({
      at: `${at}/write`,
      wrong: 'the resource is only read',
      remedy: 'add `write` to the resource, or remove it here',
    }));
  }
  const at = '/write';
  const idType = columns.get('id')?.field.type;
  const notUuid = `the gateway makes UUIDs, and the id is of type ${idType}`;
  return [
    ...(file.version === undefined
      ? [
          {
            at,
            wrong: 'writes need a version to compare',
            remedy: 'set /version, such as to a column with xmin::text::bigint',
          },
        ]
      : []),
    ...(writable.length === 0 ? [{ at, wrong: 'no field can be written', remedy: 'add `write` to a field' }] : []),
    ...(file.detail
      ? []
      : [{ at, wrong: 'Location would name a path that does not exist', remedy: 'set detail to true' }]),
    ...(file.write.ids !== 'database' && idType !== undefined && idType !== 'uuid'
      ? [{ at: `${at}/ids`, wrong: notUuid, remedy: 'set it to database' }]
      : []),
  ];
}

/** Types of the columns that each move fits. */
const movedTypes: Readonly<Record<Move, readonly string[]>> = { increment: ['integer', 'bigint'], now: ['timestamp'] };

function moves({ file, columns }: Examined): Flaw[] {
  return Object.entries(file.write?.onChange ?? {}).flatMap(([column, move]): Flaw[] => {
    const at = `/write/onChange/${column}`;
    const shown = columns.get(column);
    // A time that clients see in another form has a column of its own in the write view, which `check` looks for.
    if (shown === undefined) return move === 'now' ? [] : [notShown(at, column)];
    const types = movedTypes[move];
    const misfit = `${move} does not fit column ${column} of type ${shown.field.type}`;
    return [
      ...(types.includes(shown.field.type) ? [] : [{ at, wrong: misfit, remedy: `it fits ${types.join(', ')}` }]),
      ...(shown.field.write ? [{ at, wrong: `the client sets column ${column}`, remedy: 'remove it here' }] : []),
      ...(column === 'id' ? [{ at, wrong: 'the id cannot move', remedy: 'remove it' }] : []),
      ...plainAndPresent(shown, `column ${column}, which a PATCH moves,`),
    ];
  });
}

function audit({ file }: Examined): Flaw[] {
  const { auditEntity, auditFields = [], write } = file;
  const unnamed = write?.audit && auditEntity === undefined;
  const flaws: Flaw[] = unnamed
    ? [{ at: '/write/audit', wrong: 'the log has no name for the resource', remedy: 'set /auditEntity' }]
    : [];
  if (auditEntity === undefined && auditFields.length > 0) {
    flaws.push({ at: '/auditFields', wrong: 'the log has no name for the resource', remedy: 'set /auditEntity' });
  }
  const encoded = leaves(file).filter(({ field }) => field.codec !== undefined);
  const personal = new Set(encoded.flatMap(({ field, path }) => [field.column, path.join('/')]).map(spelling));
  for (const [i, name] of auditFields.entries()) {
    if (!personal.has(spelling(name))) continue;
    flaws.push({ at: `/auditFields/${i}`, wrong: `${name} is encoded: its values are personal`, remedy: 'remove it' });
  }
  return flaws;
}

/** Names that two resources cannot share. */
const unique = ['name', 'record', 'view', 'auditEntity'] as const;
/** Names that the gateway uses itself: path segments, links of the index, paths and schemas of OpenAPI. */
const reserved: Readonly<Partial<Record<(typeof unique)[number], readonly string[]>>> = {
  name: ['sync', 'self', 'openapi', 'token', 'v1'],
  record: ['problem', 'pagination'],
};

/** Flaws between the definitions, each with the path of its file. */
export function sharedNames(files: ReadonlyMap<string, DefinitionFile>): [path: string, flaw: Flaw][] {
  const entries = [...files];
  return unique.flatMap((key) =>
    entries.flatMap(([path, file], i): [string, Flaw][] => {
      const at = `/${key}`;
      const value = file[key];
      if (value === undefined) return [];
      const first = entries.slice(0, i).find(([, other]) => other[key] === value);
      const remedy = 'give it another one';
      if (first) return [[path, { at, wrong: `${value} is that of ${first[0]}, too`, remedy }]];
      return reserved[key]?.includes(value) ? [[path, { at, wrong: `${value} is the gateway's own`, remedy }]] : [];
    }),
  );
}

function notShown(at: string, column: string): Flaw {
  return { at, wrong: `no field shows column ${column}`, remedy: 'add a field, or correct the name' };
}

/** Columns that identify, order or version a row have a value in every row, which PostgreSQL can compare. */
function plainAndPresent({ field, at }: PlacedField, role: string): Flaw[] {
  return [
    ...(field.nullable
      ? [{ at: `${at}/nullable`, wrong: `${role} cannot be NULL`, remedy: 'use a column that never is' }]
      : []),
    ...(field.codec ? [{ at: `${at}/codec`, wrong: `${role} cannot be encoded`, remedy: 'use another column' }] : []),
    ...(field.pointer ? [{ at: `${at}/pointer`, wrong: `${role} has a column of its own`, remedy: 'remove it' }] : []),
  ];
}
