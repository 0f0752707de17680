import { type DiffShape, usualDiff } from '../projection/audit-diff.js';
import { type Codec, codecColumns, headOf } from '../projection/codec.js';
import { spelling } from '../projection/redact.js';
import { fieldType, idTypes } from './field-types.js';
import { filterKind, parameterNames } from './filter-kinds.js';
import type { CompileSchema, DefinitionFile } from './load.js';
import { canFail, readSchema, writeSchema } from './record-schema.js';
import { type Field, type JsonSchema, type LoggedAs, leaves, type Move, placeOf } from './resource.js';
import { walledWrite } from './walls.js';

// A definition that fits config/resource.schema.json can still contradict itself or another one. Each rule is a flaw and whether the
// definition has it.

/** A flaw is a place (RFC 6901) in the file, what is wrong, and the remedy: "/order: it does not end with id; add id". */
type Rules = Readonly<Record<string, unknown>>;

const together = (rules: readonly Rules[]): Rules => Object.assign({}, ...rules);
const flawsOf = (rules: Rules): string[] => Object.keys(rules).filter((flaw) => rules[flaw]);

/** A definition, indexed for its rules. */
interface Examined {
  readonly file: DefinitionFile;
  /** Fields by column; of two with one column the first. */
  readonly columns: ReadonlyMap<string, PlacedField>;
  /** Definitions by the view they read; null when not all are known. */
  readonly views: ReadonlyMap<string, DefinitionFile> | null;
  readonly compileSchema: CompileSchema;
}

/** A field and where it stands in the file. */
interface PlacedField {
  readonly path: readonly string[];
  readonly field: Field;
  readonly at: string;
}

/** Everything in which a definition contradicts itself or the views of the others. */
export function contradictions(
  file: DefinitionFile,
  { views, compileSchema }: Pick<Examined, 'views' | 'compileSchema'>,
): string[] {
  const placed = leaves(file).map(({ path, field }) => ({ path, field, at: placeOf(path) }));
  const columns = new Map(placed.toReversed().map((each) => [each.field.column, each]));
  const examined: Examined = { file, columns, views, compileSchema };
  return [
    ...ofResource.map((rules) => rules(examined)),
    ...Object.entries(file.codecs).map(([name, codec]) => ofCodec(codec, `/codecs/${name}`, examined)),
    ...placed.flatMap((each) => ofField.map((rules) => rules(each, examined))),
  ].flatMap(flawsOf);
}

/** Rules about a column of the definition, which a field must show. */
function shown({ columns }: Examined, column: string, at: string, rules: (placed: PlacedField) => Rules): Rules {
  const placed = columns.get(column);
  return placed
    ? rules(placed)
    : { [`${at}: no field shows column ${column}; add a field, or correct the name`]: true };
}

/** Columns that identify, order or version a row have a value in every row, which PostgreSQL can compare. */
const plainAndPresent = ({ field: { nullable, codec, pointer }, at }: PlacedField, role: string): Rules => ({
  [`${at}/nullable: ${role} cannot be NULL; use a column that never is`]: nullable,
  [`${at}/codec: ${role} cannot be encoded; use another column`]: codec,
  [`${at}/pointer: ${role} has a column of its own; remove it`]: pointer,
});

const ofResource: readonly ((examined: Examined) => Rules)[] = [
  (examined) =>
    shown(examined, 'id', '/fields', (id) => ({
      [`${id.at}/type: an id cannot be of type ${id.field.type}; use ${idTypes.join(', ')}`]: !(
        idTypes as readonly string[]
      ).includes(id.field.type),
      ...plainAndPresent(id, 'the id'),
    })),
  (examined) => ({
    ...together(
      examined.file.order.map((column, i) =>
        shown(examined, column, `/order/${i}`, (placed) => ({
          [`/order/${i}: a list cannot be ordered by column ${column} of type ${placed.field.type}; use another column`]:
            fieldType(placed.field.type).isPrinted === undefined,
          ...plainAndPresent(placed, `column ${column} of the order`),
        })),
      ),
    ),
    '/order: it does not end with id; add id: without it the order is not total': examined.file.order.at(-1) !== 'id',
  }),
  (examined) => {
    const { version, detail } = examined.file;
    if (version === undefined) return {};
    return shown(examined, version, '/version', (placed) => ({
      [`/version: column ${version} is of type ${placed.field.type}, which cannot be a version; use integer or bigint`]:
        !movedTypes.increment.includes(placed.field.type),
      '/version: nothing shows the version; set detail to true, or remove it': !detail,
      ...plainAndPresent(placed, 'the version'),
    }));
  },
  (examined) =>
    together(
      Object.entries(examined.file.filters).map(([name, { column, kind, nearlyUnique }]) => ({
        [`/filters/${name}: ${name} is a parameter of every list or statement; give it another name`]:
          isParameter(name),
        ...shown(examined, column, `/filters/${name}/column`, ({ field }) => ({
          [`/filters/${name}/kind: ${kind} does not fit column ${column} of type ${field.type}; it fits ${filterKind(kind).columnTypes.join(', ')}`]:
            !filterKind(kind).columnTypes.includes(field.type),
          [`/filters/${name}/nearlyUnique: many rows have the same label in column ${column}; remove it`]:
            nearlyUnique && field.type === 'enum',
          [`/filters/${name}/column: column ${column} is encoded or JSON, so its stored values cannot be compared; filter on another column`]:
            canFail(field),
        })),
      })),
    ),
  ({ file, columns }) => {
    const type = columns.get(file.order[0] as string)?.field.type ?? 'timestamp';
    return {
      [`/sync/appendOnly: the order begins with a column of type ${type}, not with the moment of the addition; put a timestamp first, or remove it`]:
        file.sync?.appendOnly && type !== 'timestamp',
    };
  },
  ({ file: { write, version, detail }, columns }) => {
    const writable = [...columns.values()].filter(({ field }) => field.write !== undefined);
    const readOnly = writable.map(
      ({ at }) => `${at}/write: the resource is only read; add \`write\` to it, or remove it here`,
    );
    if (write === undefined) return Object.fromEntries(readOnly.map((flaw) => [flaw, true]));
    const idType = columns.get('id')?.field.type ?? 'uuid';
    return {
      '/write: writes need a version to compare; set /version, such as to a column with xmin::text::bigint':
        version === undefined,
      '/write: no field can be written; add `write` to a field': writable.length === 0,
      '/write: Location would name a path that does not exist; set detail to true': !detail,
      [`/write/ids: the gateway makes UUIDs, and the id is of type ${idType}; set it to database`]:
        write.ids !== 'database' && idType !== 'uuid',
    };
  },
  (examined) =>
    together(
      Object.entries(examined.file.write?.onChange ?? {}).map(([column, move]) => {
        const at = `/write/onChange/${column}`;
        // A time that clients see in another form has a column of its own in the write view, which `check` looks for.
        if (move === 'now' && !examined.columns.has(column)) return {};
        return shown(examined, column, at, (placed) => ({
          [`${at}: ${move} does not fit column ${column} of type ${placed.field.type}; it fits ${movedTypes[move].join(', ')}`]:
            !movedTypes[move].includes(placed.field.type),
          [`${at}: the client sets column ${column}; remove it here`]: placed.field.write,
          [`${at}: the id cannot move; remove it`]: column === 'id',
          ...plainAndPresent(placed, `column ${column}, which a PATCH moves,`),
        }));
      }),
    ),
  ({ file }) => {
    const { auditEntity, auditFields = [], write } = file;
    const encoded = leaves(file).filter(({ field }) => field.codec !== undefined);
    const personal = encoded.flatMap(({ field, path }) => [field.column, path.join('/')]).map(spelling);
    return {
      '/write/audit: the log has no name for the resource; set /auditEntity': write?.audit && !auditEntity,
      '/auditFields: the log has no name for the resource; set /auditEntity': auditFields.length > 0 && !auditEntity,
      ...together(
        auditFields.map((name, i) => ({
          [`/auditFields/${i}: ${name} is encoded: its values are personal; remove it`]: personal.includes(
            spelling(name),
          ),
        })),
      ),
    };
  },
];

/** Types of the columns that each move fits. */
const movedTypes: Readonly<Record<Move, readonly string[]>> = { increment: ['integer', 'bigint'], now: ['timestamp'] };

const isParameter = (name: string): boolean => parameterNames.some((reserved) => reserved.test(name));

/** Types whose written values must be bounded: PostgreSQL refuses a number that does not fit its column. */
const boundedTypes: readonly string[] = ['integer', 'number'];

const ofField: readonly ((placed: PlacedField, examined: Examined) => Rules)[] = [
  /** Two fields share a column only where both are members of the JSON in it. */
  ({ field, at }, { columns }) => {
    const first = columns.get(field.column) as PlacedField;
    const isShared = field.pointer !== undefined && first.field.pointer !== undefined;
    return {
      [`${at}/column: ${first.at} shows it, too; show it once, or give both a pointer`]: first.at !== at && !isShared,
      [`${at}/codec: ${first.at} has another codec for the column; use the same`]:
        isShared && field.codec !== first.field.codec,
    };
  },
  ({ field: { codec, clean, pointer, type, nullable, references }, at }, { file, views }) => {
    const isWhole = codec !== undefined && pointer === undefined;
    const names = Object.keys(file.codecs);
    return {
      [`${at}/type: a member of a JSON cell cannot be of type ${type}; use text`]:
        pointer !== undefined && fieldType(type).isMember === undefined,
      [`${at}/pointer: there may be nothing at it; make the field nullable`]: pointer !== undefined && !nullable,
      [`${at}/clean: an audit diff is a whole column; remove the pointer`]:
        pointer !== undefined && clean === 'audit-diff',
      [`${at}/codec: there is no codec ${codec}; use ${names.join(', ')}, or describe it in /codecs`]:
        codec !== undefined && !names.includes(codec),
      [`${at}/codec: decoded values are texts or JSON, not of type ${type}; set type to text or json`]:
        isWhole && type !== 'text' && type !== 'json',
      [`${at}/clean: an encoded value cannot be cleaned; remove clean or codec`]:
        isWhole && clean !== undefined && clean !== 'json-images',
      [`${at}/clean: audit-diff decides by the field entity, which is not there; add a field named entity`]:
        clean === 'audit-diff' && !('column' in (file.fields.entity ?? {})),
      [`${at}/references: there is no resource ${references}; name another, or remove it`]:
        references !== undefined && views && ![...views.values()].some(({ name }) => name === references),
    };
  },
  /** The parts of a change stand at different places, and are shown under different names. */
  ({ field: { diff = {}, words = {} }, at }) =>
    together(
      Object.entries({ diff, words }).map(([key, parts]) => ({
        [`${at}/${key}: two parts of a change have the same place; give each its own`]:
          new Set(Object.values(parts)).size < Object.keys(parts).length,
      })),
    ),
  /** JSON Schemas that cannot be compiled, and an example that does not fit its own. */
  ({ field, at }, { compileSchema }) => {
    const flaws: Record<string, boolean> = {};
    const compiled = (schema: JsonSchema, place: string) => {
      try {
        return compileSchema(schema);
      } catch (error) {
        flaws[`${place}: it is not a JSON Schema: ${(error as Error).message}; correct it`] = true;
        return undefined;
      }
    };
    // Otherwise the schema is that of the type, and compiling it costs a start some milliseconds.
    const isOwn = field.schema !== undefined || field.example !== undefined;
    const fits = isOwn ? compiled(readSchema(field), `${at}/schema`) : undefined;
    if (field.write?.schema) compiled(writeSchema(field), `${at}/write/schema`);
    const isMisfit = field.example !== undefined && fits?.(field.example) === false;
    return { ...flaws, [`${at}/example: it does not fit the field; correct the example`]: isMisfit };
  },
  ({ field, path, at: place }, { views }) => {
    const { type, column, write } = field;
    if (write === undefined) return {};
    const at = `${place}/write`;
    const bounds = { ...field.schema, ...write.schema };
    const { references } = write;
    const target = references === undefined ? undefined : views?.get(references);
    const idType = target && leaves(target).find((each) => each.field.column === 'id')?.field.type;
    return {
      [`${at}: a member of a group cannot be written; take it out of the group`]: path.length > 1,
      [`${at}: column ${column} is not the client's to set; remove it`]: column === 'id' || column === 'workspace_id',
      [`${at}: ${path[0]} is a parameter of every statement; give the field another name`]: isParameter(
        path[0] as string,
      ),
      [`${at}: type ${type} cannot be written; remove it`]: fieldType(type).writeSchema === undefined,
      [`${at}: a value inside an encoded or JSON cell cannot be written; remove it`]: canFail(field),
      [`${at}/schema: a written ${type} has no bounds; set minimum and maximum to what the column holds`]:
        boundedTypes.includes(type) && !('minimum' in bounds && 'maximum' in bounds),
      [`${at}: POST may leave it out, and it cannot be NULL; set required, or make the field nullable`]:
        !field.nullable && !write.required,
      [`${at}/references: no resource reads view ${references}; use the view of another resource's definition`]:
        references !== undefined && views && target === undefined,
      [`${at}/references: the ids of ${target?.name} are of another type than ${type}; use the same type`]:
        target && idType !== type,
    };
  },
];

/** A column that a codec reads holds its value as it stands, for good; the older values of a codec can be told from the others. */
function ofCodec(codec: Codec, at: string, { file: { codecs }, columns }: Examined): Rules {
  const read = codecColumns(codec).map((column) => {
    const { codec: encoded, write } = columns.get(column)?.field ?? {};
    const place = `${at}/${typeof codec.keyId === 'object' && codec.keyId.column === column ? 'keyId/column' : 'aad'}`;
    return {
      [`${place}: column ${column} is encoded; use another column`]: encoded,
      [`${place}: column ${column} can be written, which breaks its values; use another column`]: write,
    };
  });
  if (codec.older === undefined) return together(read);
  const older = Object.hasOwn(codecs, codec.older) ? codecs[codec.older] : undefined;
  const isOtherColumn = (older?.encoding === 'bytea') !== (codec.encoding === 'bytea');
  const [head, olderHead] = [headOf(codec), older ? headOf(older) : ''];
  return {
    ...together(read),
    [`${at}/older: there is no codec ${codec.older}; use ${Object.keys(codecs).join(', ')}`]: !older,
    [`${at}/older: ${codec.older} has older values, too; remove one of them`]: older?.older,
    [`${at}/older: a column is either a bytea or a text; use a codec of the same kind of column`]:
      older && isOtherColumn,
    [`${at}/older: no prefix tells older values from others; set a prefix`]:
      older && !isOtherColumn && head + olderHead === '',
    [`${at}/older: an older value begins as others do; give both another beginning`]:
      head !== '' && olderHead.startsWith(head),
  };
}

/** Flaws between the definitions, each with the path of its file. */
export function sharedNames(files: ReadonlyMap<string, DefinitionFile>): [path: string, flaw: string][] {
  const entries = [...files];
  return (['name', 'record', 'view', 'auditEntity'] as const).flatMap((key) =>
    entries.flatMap(([path, file], i): [string, string][] => {
      const first = entries.slice(0, i).find(([, other]) => file[key] !== undefined && other[key] === file[key]);
      return first ? [[path, `/${key}: ${file[key]} is that of ${first[0]}, too; give it another one`]] : [];
    }),
  );
}

/** The operator's view that entries are inserted through where neither the definition nor a log names one. */
const usualRecords = 'records.logboeken_write';

/**
 * Finds the shape in which each resource logs its writes, by path of the file: that of the log which `write.audit.log` names, else the one shape of all
 * logs, else the usual one. A resource for which this is not unambiguous has a flaw.
 */
export function resolveAuditLogs(files: ReadonlyMap<string, DefinitionFile>): {
  readonly resolved: ReadonlyMap<string, LoggedAs>;
  readonly flaws: readonly (readonly [path: string, flaw: string])[];
} {
  const logs = [...files.values()].flatMap((file) =>
    leaves(file).flatMap(({ field: { clean, diff = usualDiff } }) =>
      clean === 'audit-diff' ? [{ name: file.name, view: file.view, diff }] : [],
    ),
  );
  const resolved = new Map<string, LoggedAs>();
  const flaws = [...files].flatMap(([path, { write }]) => {
    if (!write?.audit) return [];
    const { log } = write.audit;
    const possible = logs.filter(({ name }) => log === undefined || name === log);
    const { view, diff } = possible[0] ?? { view: usualRecords, diff: usualDiff };
    const records = write.audit.view ?? view;
    resolved.set(path, { ...write.audit, view: walledWrite(records), records, diff });
    const names = [...new Set(possible.map(({ name }) => name))].join(' and ');
    const rules = {
      [`/write/audit/log: ${log} is no resource with a field of clean audit-diff; name another, or define the log`]:
        log !== undefined && possible.length === 0,
      [`/write/audit: ${names} store changes in different shapes, and nothing says which of them logs the writes; name it in /write/audit/log`]:
        new Set(possible.map((each) => shapeOf(each.diff))).size > 1,
    };
    return flawsOf(rules).map((flaw) => [path, flaw] as const);
  });
  return { resolved, flaws };
}

const shapeOf = (diff: DiffShape): string => JSON.stringify([diff.field, diff.old, diff.new]);
