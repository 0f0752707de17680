import type { Examined, Flaw, PlacedField } from './contradictions.js';
import { readSchema, writeSchema } from './field-schema.js';
import { fieldType } from './field-types.js';
import { parameterNames } from './filter-kinds.js';
import { canFail } from './record-schema.js';
import type { Field, JsonSchema, WriteRule } from './resource.js';
import type { CompileSchema } from './schema-compiler.js';

/** Cleaners and the type whose values they read. */
const cleanedType = { 'text-images': 'text', 'json-images': 'json', 'audit-diff': 'json' } as const;
/** Types whose written values must be bounded: PostgreSQL refuses a number that does not fit its column. */
const boundedTypes: readonly string[] = ['integer', 'number'];

/** Everything in which a field contradicts itself or the rest of its definition. */
export function contradictionsOfField(placed: PlacedField, examined: Examined): Flaw[] {
  const { field, path, at } = placed;
  const first = examined.columns.get(field.column) as PlacedField;
  return [
    ...(first.at === at ? [] : sharing(placed, first)),
    ...(path[0] === 'decodeErrors'
      ? [{ at, wrong: "decodeErrors is the gateway's own member", remedy: 'rename it' }]
      : []),
    ...pointing(placed),
    ...decoding(placed, examined),
    ...diffShape(placed),
    ...shapes(placed, examined.compileSchema),
    ...(field.write === undefined ? [] : writing(placed, field.write, examined)),
  ];
}

/** Two fields share a column only where both are members of the JSON in it. */
function sharing({ field, at }: PlacedField, first: PlacedField): Flaw[] {
  const isShared = field.pointer !== undefined && first.field.pointer !== undefined;
  if (!isShared) {
    const remedy = 'show it once, or give both a pointer';
    return [{ at: `${at}/column`, wrong: `${first.at} shows it, too`, remedy }];
  }
  if (field.codec === first.field.codec) return [];
  return [{ at: `${at}/codec`, wrong: `${first.at} has another codec for the column`, remedy: 'use the same' }];
}

function pointing({ field, at }: PlacedField): Flaw[] {
  const { pointer, type, nullable, clean } = field;
  if (pointer === undefined) return [];
  const flaws: Flaw[] = [];
  if (fieldType(type).isMember === undefined)
    flaws.push({ at: `${at}/type`, wrong: `a member of a JSON cell cannot be of type ${type}`, remedy: 'use text' });
  if (!nullable)
    flaws.push({ at: `${at}/pointer`, wrong: 'there may be nothing at it', remedy: 'make the field nullable' });
  if (clean === 'audit-diff')
    flaws.push({ at: `${at}/clean`, wrong: 'an audit diff is a whole column', remedy: 'remove the pointer' });
  return flaws;
}

function decoding({ field, at }: PlacedField, { file }: Examined): Flaw[] {
  const { codec, clean, type } = field;
  const flaws: Flaw[] = [];
  if (codec && !Object.hasOwn(file.codecs, codec)) {
    const remedy = `use ${Object.keys(file.codecs).join(', ')}, or describe it in /codecs`;
    flaws.push({ at: `${at}/codec`, wrong: `there is no codec ${codec}`, remedy });
  }
  if (codec && field.pointer === undefined && type !== 'text' && type !== 'json') {
    flaws.push({
      at: `${at}/codec`,
      wrong: `decoded values are texts or JSON, not of type ${type}`,
      remedy: 'set type to text or json',
    });
  }
  if (clean && clean !== 'json-images' && codec && field.pointer === undefined) {
    flaws.push({ at: `${at}/clean`, wrong: 'an encoded value cannot be cleaned', remedy: 'remove clean or codec' });
  }
  if (clean && cleanedType[clean] !== type) {
    flaws.push({
      at: `${at}/clean`,
      wrong: `${clean} does not fit type ${type}`,
      remedy: `it fits ${cleanedType[clean]}`,
    });
  }
  if (clean === 'audit-diff' && !('column' in (file.fields.entity ?? {}))) {
    const wrong = 'audit-diff decides by the field entity, which is not there';
    flaws.push({ at: `${at}/clean`, wrong, remedy: 'add a field named entity' });
  }
  return flaws;
}

/** The parts of a change stand at different places of one array or of one object, and are shown under different names. */
function diffShape({ field: { diff, words, clean }, at: place }: PlacedField): Flaw[] {
  return Object.entries({ diff, words }).flatMap(([key, parts]): Flaw[] => {
    if (parts === undefined) return [];
    const at = `${place}/${key}`;
    const places = Object.values(parts);
    const kinds = new Set(places.map((each) => typeof each));
    return [
      ...(clean === 'audit-diff' ? [] : [{ at, wrong: 'only audit-diff reads it', remedy: 'set clean, or remove it' }]),
      ...(new Set(places).size < places.length
        ? [{ at, wrong: 'two parts of a change have the same place', remedy: 'give each its own' }]
        : []),
      ...(kinds.size > 1
        ? [{ at, wrong: 'a change is an array or an object, not both', remedy: 'use numbers only, or names only' }]
        : []),
    ];
  });
}

/** JSON Schemas that cannot be compiled, and an example that does not fit its own. */
function shapes({ field, at }: PlacedField, compileSchema: CompileSchema): Flaw[] {
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
  if (field.example !== undefined && isShown?.(field.example) === false) {
    flaws.push({ at: `${at}/example`, wrong: 'it does not fit the field', remedy: 'correct the example' });
  }
  if (field.write?.schema) compiled(writeSchema(field), `${at}/write/schema`);
  return flaws;
}

function writing({ field, path, at }: PlacedField, rule: WriteRule, { views }: Examined): Flaw[] {
  const place = `${at}/write`;
  const { type, column } = field;
  const flaw = (wrong: string, remedy: string, key = ''): Flaw => ({ at: place + key, wrong, remedy });
  const bounds = { ...field.schema, ...rule.schema };
  const isBounded = 'minimum' in bounds && 'maximum' in bounds;
  const target = rule.references === undefined ? undefined : views?.get(rule.references);
  const isMade = column === 'id' || column === 'workspace_id';
  return [
    ...(path.length > 1 ? [flaw('a member of a group cannot be written', 'take it out of the group')] : []),
    ...(isMade ? [flaw(`column ${column} is not the client's to set`, 'remove it')] : []),
    ...(parameterNames.some((reserved) => reserved.test(path[0] as string))
      ? [flaw(`${path[0]} is a parameter of every statement`, 'give the field another name')]
      : []),
    ...(fieldType(type).writeSchema === undefined ? [flaw(`type ${type} cannot be written`, 'remove it')] : []),
    ...(canFail(field) ? [flaw('a value inside an encoded or JSON cell cannot be written', 'remove it')] : []),
    ...(boundedTypes.includes(type) && !isBounded
      ? [flaw(`a written ${type} has no bounds`, 'set minimum and maximum to what the column holds', '/schema')]
      : []),
    ...(field.nullable || rule.required
      ? []
      : [flaw('POST may leave it out, and it cannot be NULL', 'set required, or make the field nullable')]),
    ...(rule.references !== undefined && views !== null && target === undefined
      ? [
          flaw(
            `no resource reads view ${rule.references}`,
            "use the view of another resource's definition",
            '/references',
          ),
        ]
      : []),
    ...(target && idTypeOf(target.fields) !== type
      ? [flaw(`the ids of ${target.name} are of another type than ${type}`, 'use the same type', '/references')]
      : []),
  ];
}

function idTypeOf(fields: Examined['file']['fields']): string | undefined {
  return Object.values(fields)
    .flatMap((field): Field[] => ('group' in field ? Object.values(field.group) : [field]))
    .find(({ column }) => column === 'id')?.type;
}
