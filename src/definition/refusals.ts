import { sealLayout } from '../projection/aes-gcm/gcm-key.js';
import { type DiffShape, usualDiff } from '../projection/audit-diff.js';
import { aadPlaceholders, type Codec, headsOf, templatePieces } from '../projection/codec.js';
import { spelling } from '../projection/redact.js';
import { fieldType, idTypes } from './field-types.js';
import { filterKind, parameterNames } from './filter-kinds.js';
import type { CompileSchema, DefinitionFile } from './load.js';
import { canFail, readSchema, writeSchema } from './record-schema.js';
import { type Field, type JsonSchema, type LoggedAs, leaves, type Move, placeOf } from './resource.js';
import { walledWrite } from './walls.js';

/** A flaw of a definition. */
export interface Flaw {
  /** JSON pointer (RFC 6901) in the file. */
  readonly at: string;
  readonly wrong: string;
  readonly remedy: string;
}

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

/** A flaw where a condition holds: a rule is a list of these. */
const refuse = (holds: boolean, at: string, wrong: string, remedy: string): Flaw[] =>
  holds ? [{ at, wrong, remedy }] : [];

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
    ...ofResource.flatMap((rule) => rule(examined)),
    ...Object.entries(file.codecs).flatMap(([name, codec]) =>
      ofCodec.flatMap((rule) => rule(codec, examined)).map((flaw) => ({ ...flaw, at: `/codecs/${name}${flaw.at}` })),
    ),
    ...placed.flatMap((each) => ofField.flatMap((rule) => rule(each, examined))),
  ];
}

const ofResource: readonly ((examined: Examined) => Flaw[])[] = [
  function identifier({ columns }) {
    const id = columns.get('id');
    if (id === undefined)
      return refuse(true, '/fields', 'no field shows the column id', 'add one: each record has an identifier');
    const { field, at } = id;
    const isType = (idTypes as readonly string[]).includes(field.type);
    return [
      ...refuse(!isType, `${at}/type`, `an id cannot be of type ${field.type}`, `use ${idTypes.join(', ')}`),
      ...plainAndPresent(id, 'the id'),
    ];
  },
  function order({ file, columns }) {
    const flaws = file.order.flatMap((column, i): Flaw[] => {
      const at = `/order/${i}`;
      const shown = columns.get(column);
      if (shown === undefined) return notShown(at, column);
      const { type } = shown.field;
      const unordered = `a list cannot be ordered by column ${column} of type ${type}`;
      return [
        ...refuse(fieldType(type).isPrinted === undefined, at, unordered, 'use a column of another type'),
        ...plainAndPresent(shown, `column ${column} of the order`),
      ];
    });
    const endsWithId = file.order.at(-1) === 'id';
    const remedy = 'add id: without it the order is not total';
    return [...flaws, ...refuse(!endsWithId, '/order', 'it does not end with id', remedy)];
  },
  function version({ file, columns }) {
    if (file.version === undefined) return [];
    const at = '/version';
    const shown = columns.get(file.version);
    if (shown === undefined) return notShown(at, file.version);
    const { type } = shown.field;
    const wrong = `column ${file.version} is of type ${type}, which cannot be a version`;
    return [
      ...refuse(type !== 'integer' && type !== 'bigint', at, wrong, 'use integer or bigint'),
      ...refuse(!file.detail, at, 'nothing shows the version', 'set detail to true, or remove it'),
      ...plainAndPresent(shown, 'the version'),
    ];
  },
  function filters({ file, columns }) {
    return Object.entries(file.filters).flatMap(([name, { column, kind, nearlyUnique }]): Flaw[] => {
      const at = `/filters/${name}`;
      const taken = parameterNames.some((reserved) => reserved.test(name));
      const isReserved = `${name} is a parameter of every list or statement`;
      const flaws = refuse(taken, at, isReserved, 'give it another name');
      const shown = columns.get(column);
      if (shown === undefined) return [...flaws, ...notShown(`${at}/column`, column)];
      const { type } = shown.field;
      const { columnTypes } = filterKind(kind);
      const misfit = `${kind} does not fit column ${column} of type ${type}`;
      const stored = `column ${column} is encoded or JSON, so its stored values cannot be compared`;
      const many = `many rows have the same label in column ${column}`;
      return [
        ...flaws,
        ...refuse(!columnTypes.includes(type), `${at}/kind`, misfit, `it fits ${columnTypes.join(', ')}`),
        ...refuse(nearlyUnique === true && type === 'enum', `${at}/nearlyUnique`, many, 'remove it'),
        ...refuse(canFail(shown.field), `${at}/column`, stored, 'filter on another column'),
      ];
    });
  },
  function sync({ file, columns }) {
    const type = columns.get(file.order[0] as string)?.field.type;
    const wrong = `the order begins with a column of type ${type}, not with the moment of the addition`;
    const isMoment = type === 'timestamp' || type === undefined;
    const at = '/sync/appendOnly';
    return refuse(file.sync?.appendOnly != null && !isMoment, at, wrong, 'put a timestamp first, or remove it');
  },
  function writes({ file, columns }) {
    const writable = [...columns.values()].filter(({ field }) => field.write !== undefined);
    if (file.write === undefined) {
      const remedy = 'add `write` to the resource, or remove it here';
      return writable.flatMap(({ at }) => refuse(true, `${at}/write`, 'the resource is only read', remedy));
    }
    const at = '/write';
    const idType = columns.get('id')?.field.type;
    const notUuid = file.write.ids !== 'database' && idType !== undefined && idType !== 'uuid';
    const version = 'set /version, such as to a column with xmin::text::bigint';
    return [
      ...refuse(file.version === undefined, at, 'writes need a version to compare', version),
      ...refuse(writable.length === 0, at, 'no field can be written', 'add `write` to a field'),
      ...refuse(!file.detail, at, 'Location would name a path that does not exist', 'set detail to true'),
      ...refuse(notUuid, `${at}/ids`, `the gateway makes UUIDs, and the id is of type ${idType}`, 'set it to database'),
    ];
  },
  function moves({ file, columns }) {
    return Object.entries(file.write?.onChange ?? {}).flatMap(([column, move]): Flaw[] => {
      const at = `/write/onChange/${column}`;
      const shown = columns.get(column);
      // A time that clients see in another form has a column of its own in the write view, which `check` looks for.
      if (shown === undefined) return move === 'now' ? [] : notShown(at, column);
      const { type, write } = shown.field;
      const types = movedTypes[move];
      const misfit = `${move} does not fit column ${column} of type ${type}`;
      return [
        ...refuse(!types.includes(type), at, misfit, `it fits ${types.join(', ')}`),
        ...refuse(write !== undefined, at, `the client sets column ${column}`, 'remove it here'),
        ...refuse(column === 'id', at, 'the id cannot move', 'remove it'),
        ...plainAndPresent(shown, `column ${column}, which a PATCH moves,`),
      ];
    });
  },
  function audit({ file }) {
    const { auditEntity, auditFields = [], write } = file;
    const isNamed = auditEntity !== undefined;
    const wrong = 'the log has no name for the resource';
    const encoded = leaves(file).filter(({ field }) => field.codec !== undefined);
    const personal = new Set(encoded.flatMap(({ field, path }) => [field.column, path.join('/')]).map(spelling));
    return [
      ...refuse(Boolean(write?.audit) && !isNamed, '/write/audit', wrong, 'set /auditEntity'),
      ...refuse(auditFields.length > 0 && !isNamed, '/auditFields', wrong, 'set /auditEntity'),
      ...auditFields.flatMap((name, i) =>
        refuse(
          personal.has(spelling(name)),
          `/auditFields/${i}`,
          `${name} is encoded: its values are personal`,
          'remove it',
        ),
      ),
    ];
  },
];

/** Types of the columns that each move fits. */
const movedTypes: Readonly<Record<Move, readonly string[]>> = { increment: ['integer', 'bigint'], now: ['timestamp'] };

function notShown(at: string, column: string): Flaw[] {
  return refuse(true, at, `no field shows column ${column}`, 'add a field, or correct the name');
}

/** Columns that identify, order or version a row have a value in every row, which PostgreSQL can compare. */
function plainAndPresent({ field, at }: PlacedField, role: string): Flaw[] {
  const { nullable, codec, pointer } = field;
  return [
    ...refuse(nullable === true, `${at}/nullable`, `${role} cannot be NULL`, 'use a column that never is'),
    ...refuse(codec !== undefined, `${at}/codec`, `${role} cannot be encoded`, 'use another column'),
    ...refuse(pointer !== undefined, `${at}/pointer`, `${role} has a column of its own`, 'remove it'),
  ];
}

/** Names that two resources cannot share. */
const unique = ['name', 'record', 'view', 'auditEntity'] as const;
/** Names that the gateway uses itself: path segments, links of the index, paths and schemas of OpenAPI. */
const reserved: Readonly<Partial<Record<(typeof unique)[number], readonly string[]>>> = {
  name: ['sync', 'self', 'openapi', 'v1'],
  record: ['problem', 'pagination'],
};

/** Flaws between the definitions, each with the path of its file. */
export function sharedNames(files: ReadonlyMap<string, DefinitionFile>): [path: string, flaw: Flaw][] {
  const entries = [...files];
  return unique.flatMap((key) =>
    entries.flatMap(([path, file], i): [string, Flaw][] => {
      const value = file[key];
      if (value === undefined) return [];
      const first = entries.slice(0, i).find(([, other]) => other[key] === value);
      const isReserved = reserved[key]?.includes(value) === true;
      const wrong = first ? `${value} is that of ${first[0]}, too` : `${value} is the gateway's own`;
      const flaws = refuse(first !== undefined || isReserved, `/${key}`, wrong, 'give it another one');
      return flaws.map((flaw) => [path, flaw]);
    }),
  );
}

/** Cleaners and the type whose values they read. */
const cleanedType = { 'text-images': 'text', 'json-images': 'json', 'audit-diff': 'json' } as const;
/** Types whose written values must be bounded: PostgreSQL refuses a number that does not fit its column. */
const boundedTypes: readonly string[] = ['integer', 'number'];

const ofField: readonly ((placed: PlacedField, examined: Examined) => Flaw[])[] = [
  /** Two fields share a column only where both are members of the JSON in it. */
  function sharing({ field, at }, { columns }) {
    const first = columns.get(field.column) as PlacedField;
    if (first.at === at) return [];
    const isShared = field.pointer !== undefined && first.field.pointer !== undefined;
    const remedy = 'show it once, or give both a pointer';
    return [
      ...refuse(!isShared, `${at}/column`, `${first.at} shows it, too`, remedy),
      ...refuse(
        isShared && field.codec !== first.field.codec,
        `${at}/codec`,
        `${first.at} has another codec for the column`,
        'use the same',
      ),
    ];
  },
  function naming({ path, at }) {
    const [name = ''] = path;
    return refuse(
      ['decodeErrors', 'syncVersion'].includes(name),
      at,
      `${name} is the gateway's own member`,
      'rename it',
    );
  },
  function pointing({ field: { pointer, type, nullable, clean }, at }) {
    if (pointer === undefined) return [];
    const isMember = fieldType(type).isMember !== undefined;
    return [
      ...refuse(!isMember, `${at}/type`, `a member of a JSON cell cannot be of type ${type}`, 'use text'),
      ...refuse(!nullable, `${at}/pointer`, 'there may be nothing at it', 'make the field nullable'),
      ...refuse(clean === 'audit-diff', `${at}/clean`, 'an audit diff is a whole column', 'remove the pointer'),
    ];
  },
  function decoding({ field: { codec, clean, pointer, type }, at }, { file }) {
    const isWhole = codec !== undefined && pointer === undefined;
    const isUnknown = codec !== undefined && !Object.hasOwn(file.codecs, codec);
    const known = `use ${Object.keys(file.codecs).join(', ')}, or describe it in /codecs`;
    const isText = type === 'text' || type === 'json';
    const decoded = `decoded values are texts or JSON, not of type ${type}`;
    const fit = clean && cleanedType[clean];
    const isCleaned = clean !== undefined && clean !== 'json-images';
    const lacksEntity = clean === 'audit-diff' && !('column' in (file.fields.entity ?? {}));
    const needed = 'audit-diff decides by the field entity, which is not there';
    return [
      ...refuse(isUnknown, `${at}/codec`, `there is no codec ${codec}`, known),
      ...refuse(isWhole && !isText, `${at}/codec`, decoded, 'set type to text or json'),
      ...refuse(isWhole && isCleaned, `${at}/clean`, 'an encoded value cannot be cleaned', 'remove clean or codec'),
      ...refuse(
        fit !== undefined && fit !== type,
        `${at}/clean`,
        `${clean} does not fit type ${type}`,
        `it fits ${fit}`,
      ),
      ...refuse(lacksEntity, `${at}/clean`, needed, 'add a field named entity'),
    ];
  },
  function referring({ field: { references }, at }, { views }) {
    if (references === undefined || views === null) return [];
    const isUnknown = ![...views.values()].some(({ name }) => name === references);
    return refuse(isUnknown, `${at}/references`, `there is no resource ${references}`, 'name another, or remove it');
  },
  /** The parts of a change stand at different places of one array or of one object, and are shown under different names. */
  function changes({ field: { diff, words, clean }, at: place }) {
    return Object.entries({ diff, words }).flatMap(([key, parts]): Flaw[] => {
      if (parts === undefined) return [];
      const at = `${place}/${key}`;
      const places = Object.values(parts);
      const isMixed = new Set(places.map((each) => typeof each)).size > 1;
      const isRepeated = new Set(places).size < places.length;
      const oneKind = 'use numbers only, or names only';
      return [
        ...refuse(clean !== 'audit-diff', at, 'only audit-diff reads it', 'set clean, or remove it'),
        ...refuse(isRepeated, at, 'two parts of a change have the same place', 'give each its own'),
        ...refuse(isMixed, at, 'a change is an array or an object, not both', oneKind),
      ];
    });
  },
  /** JSON Schemas that cannot be compiled, and an example that does not fit its own. */
  function schemas({ field, at }, { compileSchema }) {
    const flaws: Flaw[] = [];
    const compiled = (schema: JsonSchema, place: string) => {
      try {
        return compileSchema(schema);
      } catch (error) {
        flaws.push({ at: place, wrong: `it is not a JSON Schema: ${(error as Error).message}`, remedy: 'correct it' });
        return undefined;
      }
    };
    // Otherwise the schema is that of the type, and compiling it costs a start some milliseconds.
    const isOwn = field.schema !== undefined || field.example !== undefined;
    const isShown = isOwn ? compiled(readSchema(field), `${at}/schema`) : undefined;
    const isMisfit = field.example !== undefined && isShown?.(field.example) === false;
    flaws.push(...refuse(isMisfit, `${at}/example`, 'it does not fit the field', 'correct the example'));
    if (field.write?.schema) compiled(writeSchema(field), `${at}/write/schema`);
    return flaws;
  },
  function writing({ field, path, at }, { views }) {
    const { type, column, write: rule } = field;
    if (rule === undefined) return [];
    const place = `${at}/write`;
    const bounds = { ...field.schema, ...rule.schema };
    const lacksBounds = boundedTypes.includes(type) && !('minimum' in bounds && 'maximum' in bounds);
    const { references } = rule;
    const target = references === undefined ? undefined : views?.get(references);
    const isUnknown = references !== undefined && views !== null && target === undefined;
    const isMisfit = target !== undefined && idTypeOf(target) !== type;
    const isMade = column === 'id' || column === 'workspace_id';
    const isReserved = parameterNames.some((name) => name.test(path[0] as string));
    const isLeftOut = !field.nullable && !rule.required;
    const bound = 'set minimum and maximum to what the column holds';
    const present = 'set required, or make the field nullable';
    const otherType = `the ids of ${target?.name} are of another type than ${type}`;
    return [
      ...refuse(path.length > 1, place, 'a member of a group cannot be written', 'take it out of the group'),
      ...refuse(isMade, place, `column ${column} is not the client's to set`, 'remove it'),
      ...refuse(isReserved, place, `${path[0]} is a parameter of every statement`, 'give the field another name'),
      ...refuse(fieldType(type).writeSchema === undefined, place, `type ${type} cannot be written`, 'remove it'),
      ...refuse(canFail(field), place, 'a value inside an encoded or JSON cell cannot be written', 'remove it'),
      ...refuse(lacksBounds, `${place}/schema`, `a written ${type} has no bounds`, bound),
      ...refuse(isLeftOut, place, 'POST may leave it out, and it cannot be NULL', present),
      ...refuse(
        isUnknown,
        `${place}/references`,
        `no resource reads view ${references}`,
        "use the view of another resource's definition",
      ),
      ...refuse(isMisfit, `${place}/references`, otherType, 'use the same type'),
    ];
  },
];

function idTypeOf(file: DefinitionFile): string | undefined {
  return leaves(file).find(({ field }) => field.column === 'id')?.field.type;
}

const keyIdPlaceholder = '{keyId}';
const afterKeyId = /^[^A-Za-z0-9_.-]/;

/** Keys that mean nothing to a cipher. */
const meaningless: Readonly<Record<Codec['cipher'], readonly (keyof Codec)[]>> = {
  none: ['legacyPrefix', 'keyId', 'layout', 'aad'],
  'aes-256-gcm': [],
  module: ['legacyPrefix', 'layout', 'aad'],
};

/** Flaws of a codec, each with its place in the codec. */
const ofCodec: readonly ((codec: Codec, examined: Examined) => Flaw[])[] = [
  function keys(codec) {
    return meaningless[codec.cipher].flatMap((key) =>
      refuse(codec[key] !== undefined, `/${key}`, `cipher ${codec.cipher} has no ${key}`, 'remove it'),
    );
  },
  /** The id of the key stands in exactly one place. */
  function keySource({ cipher, prefix = '', keyId }) {
    const inPrefix = prefix.includes(keyIdPlaceholder);
    const isTwice = inPrefix && keyId !== undefined;
    const isMissing = cipher === 'aes-256-gcm' && !inPrefix && keyId === undefined;
    const isMeaningless = inPrefix && !isTwice && cipher === 'none';
    const remedy = `put ${keyIdPlaceholder} into the prefix, or set keyId`;
    return [
      ...refuse(isTwice, '/keyId', 'the prefix has the id of the key, too', 'remove one of them'),
      ...refuse(isMeaningless, '/prefix', 'cipher none has no key', `remove ${keyIdPlaceholder}`),
      ...refuse(isMissing, '', 'nothing says which key seals a value', remedy),
    ];
  },
  function shape({ cipher, encoding, layout = [], prefix }) {
    const isSealed = cipher === 'aes-256-gcm';
    const lacksPart = isSealed && sealLayout(layout) === null;
    const isText = isSealed && encoding === 'text';
    const isBytea = encoding === 'bytea' && prefix !== undefined;
    const parts = 'it does not have nonce, data and tag, each once';
    const layoutRemedy = 'write it such as ["nonce12", "data", "tag16"]';
    return [
      ...refuse(lacksPart, '/layout', parts, layoutRemedy),
      ...refuse(isText, '/encoding', 'sealed bytes are no text', 'use base64, base64url, hex or bytea'),
      ...refuse(isBytea, '/prefix', 'a bytea has no text before its bytes', 'remove it'),
    ];
  },
  function prefixes({ prefix, legacyPrefix, aad }) {
    const flaws = Object.entries({ prefix, legacyPrefix }).flatMap(([key, template]): Flaw[] => {
      const [head, name, tail, ...more] = templatePieces(template ?? '');
      const at = `/${key}`;
      const hasBrace = [head, tail, ...more].some((text) => /[{}]/.test(text ?? ''));
      const isOther = hasBrace || more.length > 0 || (name ?? 'keyId') !== 'keyId';
      const isEndless = !isOther && tail !== undefined && !afterKeyId.test(tail);
      const remedy = 'put a character behind it that no key id has, such as :';
      return [
        ...refuse(isOther, at, `it has braces other than one ${keyIdPlaceholder}`, 'remove them'),
        ...refuse(isEndless, at, `nothing ends ${keyIdPlaceholder}`, remedy),
      ];
    });
    if (legacyPrefix === undefined || flaws.length > 0) return flaws;
    const at = '/legacyPrefix';
    const [head = '', keyId] = templatePieces(prefix ?? '');
    const [legacyHead = '', legacyKeyId] = templatePieces(legacyPrefix);
    const oneKeyId = `only one of both prefixes has ${keyIdPlaceholder}`;
    const noAad = 'values without aad are legacy, and none has it';
    const begins = legacyHead.startsWith(head);
    return [
      ...refuse(begins, at, 'a legacy value begins as others do', 'give both another beginning'),
      ...refuse(keyId !== legacyKeyId, at, oneKeyId, 'use it in both or in none'),
      ...refuse(aad === undefined, at, noAad, 'set aad, or remove it'),
    ];
  },
  function associatedData({ aad = '' }, examined) {
    const at = '/aad';
    return templatePieces(aad).flatMap((piece, i): Flaw[] => {
      if (i % 2 === 0) return refuse(/[{}]/.test(piece), at, 'it has a brace that is no placeholder', 'remove it');
      if (aadPlaceholders.includes(piece)) return [];
      const isColumn = /^[a-z_][a-z0-9_]{0,62}$/.test(piece);
      const remedy = `use ${aadPlaceholders.join(', ')} or the name of a column`;
      return isColumn ? readable(piece, at, examined) : refuse(true, at, `there is no placeholder {${piece}}`, remedy);
    });
  },
  function keyColumn({ keyId }, examined) {
    return typeof keyId === 'object' ? readable(keyId.column, '/keyId/column', examined) : [];
  },
  /** The older values of a codec can be told from the others, and have no older ones themselves. */
  function olderValues(codec, { file: { codecs } }) {
    if (codec.older === undefined) return [];
    const at = '/older';
    const older = Object.hasOwn(codecs, codec.older) ? codecs[codec.older] : undefined;
    if (older === undefined)
      return refuse(true, at, `there is no codec ${codec.older}`, `use ${Object.keys(codecs).join(', ')}`);
    const isOtherColumn = (older.encoding === 'bytea') !== (codec.encoding === 'bytea');
    const [own, others] = [headsOf(codec), headsOf(older)];
    const isSame = own.some((head) => others.some((other) => head.startsWith(other)));
    const isUntold = !isOtherColumn && own.length + others.length === 0;
    const sameColumn = 'use a codec of the same kind of column';
    if (older.older !== undefined)
      return refuse(true, at, `${codec.older} has older values, too`, 'remove one of them');
    return [
      ...refuse(isOtherColumn, at, 'a column is either a bytea or a text', sameColumn),
      ...refuse(isUntold, at, 'no prefix tells older values from others', 'set a prefix'),
      ...refuse(isSame, at, 'an older value begins as others do', 'give both another beginning'),
    ];
  },
];

/** A column that a codec reads beside the encoded ones holds its value as it stands, for good. */
function readable(column: string, at: string, { columns }: Examined): Flaw[] {
  const field = columns.get(column)?.field;
  const written = `column ${column} can be written, which breaks its values`;
  return [
    ...refuse(field?.codec !== undefined, at, `column ${column} is encoded`, 'use another column'),
    ...refuse(field?.write !== undefined, at, written, 'use another column'),
  ];
}

/** The operator's view that entries are inserted through where neither the definition nor a log names one. */
const usualRecords = 'records.logboeken_write';

/**
 * Finds the shape in which each resource logs its writes, by path of the file: that of the log which `write.audit.log` names, else the one shape of all
 * logs, else the usual one. A resource for which this is not unambiguous has a flaw.
 */
export function resolveAuditLogs(files: ReadonlyMap<string, DefinitionFile>): {
  readonly resolved: ReadonlyMap<string, LoggedAs>;
  readonly flaws: readonly (readonly [path: string, flaw: Flaw])[];
} {
  const logs = [...files.values()].flatMap((file) =>
    leaves(file)
      .filter(({ field }) => field.clean === 'audit-diff')
      .map(({ field }) => ({ name: file.name, view: file.view, shape: field.diff ?? usualDiff })),
  );
  const resolved = new Map<string, LoggedAs>();
  const flaws: [string, Flaw][] = [];
  for (const [path, { write }] of files) {
    if (!write?.audit) continue;
    const { log } = write.audit;
    const [first, ...others] = logs.filter(({ name }) => log === undefined || name === log);
    const records = write.audit.view ?? first?.view ?? usualRecords;
    const view = walledWrite(records);
    const diff = first?.shape ?? usualDiff;
    const other = others.find(({ shape }) => !isSameShape(shape, diff));
    const rival = [...resolved].find(([, each]) => each.view === view && !isSameShape(each.diff, diff));
    resolved.set(path, { ...write.audit, view, records, diff });
    const at = '/write/audit';
    const names = logs.map(({ name }) => name).join(', ');
    const unknown = refuse(
      log !== undefined && first === undefined,
      `${at}/log`,
      `${log} is no resource with a field of clean audit-diff`,
      names === '' ? 'remove it, or define the log' : `use ${names}`,
    );
    const ambiguous =
      log === undefined
        ? refuse(
            other !== undefined,
            at,
            `${first?.name} and ${other?.name} store changes in different shapes, and nothing says which of them logs the writes`,
            'name it in /write/audit/log',
          )
        : refuse(
            other !== undefined,
            `${at}/log`,
            `two fields of ${log} store changes in different shapes`,
            'give both the same diff',
          );
    const contested = refuse(
      rival !== undefined,
      at,
      `${rival?.[0]} adds entries of another shape through ${records}`,
      'name the same log, or set /write/audit/view to a view of its own',
    );
    const [flaw] = [...unknown, ...ambiguous, ...contested];
    if (flaw !== undefined) flaws.push([path, flaw]);
  }
  return { resolved, flaws };
}

function isSameShape(one: DiffShape, other: DiffShape): boolean {
  return one.field === other.field && one.old === other.old && one.new === other.new;
}
