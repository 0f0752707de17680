import { isDate, isInstant } from './dates.js';

/**
 * The keywords of JSON Schema 2020-12 that are understood here. A start judges its definitions by them and leaves all else to ajv,
 * which takes 0.16 s of processor time to load and to compile its schemas.
 */
interface Keywords {
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly if?: Schema;
  readonly then?: Schema;
  readonly else?: Schema;
  readonly $ref?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly format?: string;
  readonly items?: Schema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly uniqueItems?: boolean;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema;
  readonly propertyNames?: Schema;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly default?: unknown;
  readonly $defs?: Readonly<Record<string, Schema>>;
}
type Schema = Keywords | boolean;
type Members = Record<string, unknown>;

const types: Readonly<Record<string, (value: unknown) => boolean>> = {
  null: (value) => value === null,
  boolean: (value) => typeof value === 'boolean',
  integer: (value) => Number.isInteger(value),
  number: (value) => typeof value === 'number',
  string: (value) => typeof value === 'string',
  array: (value) => Array.isArray(value),
  object: isObject,
};

const formats: Readonly<Record<string, (value: unknown) => boolean>> = {
  date: (value) => typeof value !== 'string' || isDate(value),
  'date-time': (value) => typeof value !== 'string' || isInstant(value),
  int64: (value) => typeof value !== 'number' || Number.isInteger(value),
};

const isCount = (limit: unknown): boolean => Number.isInteger(limit) && Number(limit) >= 0;
const isList = (limit: unknown): limit is unknown[] => Array.isArray(limit) && limit.length > 0;

/** The keywords of a plain schema, each with the values that ajv takes in its strict mode. */
const plainKeywords: Readonly<Record<string, (limit: never, schema: Keywords) => boolean>> = {
  description: types.string as () => boolean,
  examples: Array.isArray,
  type: (limit: unknown) => {
    const names = [limit].flat();
    return (
      isList(names) && new Set(names).size === names.length && names.every((name) => Object.hasOwn(types, String(name)))
    );
  },
  const: () => true,
  anyOf: (limit: unknown) => isList(limit) && limit.every(isPlainSchema),
  minimum: types.number as () => boolean,
  maximum: types.number as () => boolean,
  minLength: isCount,
  maxLength: isCount,
  pattern: isPattern,
  format: (limit) => Object.hasOwn(formats, limit),
  items: isPlainSchema,
  minItems: isCount,
  maxItems: isCount,
  required: (limit: unknown, { properties = {} }) =>
    Array.isArray(limit) &&
    new Set(limit).size === limit.length &&
    limit.every((name) => typeof name === 'string' && Object.hasOwn(properties, name)),
  properties: (limit: unknown) => isObject(limit) && Object.values(limit).every(isPlainSchema),
  additionalProperties: (limit: unknown) => typeof limit === 'boolean' || isPlainSchema(limit),
};

/** Whether the value is a JSON Schema that ajv compiles in its strict mode. False also where this cannot be told: then ajv decides. */
export function isPlainSchema(value: unknown): boolean {
  if (!isObject(value)) return false;
  return Object.entries(value).every(([name, limit]) => plainKeywords[name]?.(limit as never, value) ?? false);
}

/** The document that `$ref` points into, and whether members that are missing get their defaults. */
interface Document {
  readonly root: Keywords;
  readonly fillsDefaults: boolean;
}

/** Whether the value fits a schema that has no other keywords than those above and annotations. */
export function fits(schema: object, value: unknown): boolean {
  return fitsIn({ root: schema, fillsDefaults: false }, schema, value);
}

/** The same; members with a default that are missing are added to the value, as ajv does with `useDefaults`. */
export function fitsWithDefaults(schema: object, value: unknown): boolean {
  return fitsIn({ root: schema, fillsDefaults: true }, schema, value);
}

function fitsIn(document: Document, schema: Schema, value: unknown): boolean {
  if (typeof schema === 'boolean') return schema;
  const { $ref, type, format, anyOf, enum: values } = schema;
  const isOneOf = { ...document, fillsDefaults: false };
  if ($ref !== undefined && !fitsIn(document, document.root.$defs?.[$ref.replace('#/$defs/', '')] ?? false, value))
    return false;
  if (type !== undefined && ![type].flat().some((name) => types[name]?.(value))) return false;
  if (format !== undefined && !formats[format]?.(value)) return false;
  if (values !== undefined && !values.includes(value)) return false;
  if ('const' in schema && schema.const !== value) return false;
  if (anyOf !== undefined && !anyOf.some((each) => fitsIn(isOneOf, each, value))) return false;
  if (schema.if !== undefined) {
    const branch = fitsIn(isOneOf, schema.if, value) ? schema.then : schema.else;
    if (!fitsIn(document, branch ?? true, value)) return false;
  }
  if (typeof value === 'number') return value >= (schema.minimum ?? value) && value <= (schema.maximum ?? value);
  if (typeof value === 'string') return fitsText(schema, value);
  if (Array.isArray(value)) return fitsList(document, schema, value);
  return !isObject(value) || fitsMembers(document, schema, value);
}

function fitsText({ minLength = 0, maxLength = Infinity, pattern = '' }: Keywords, text: string): boolean {
  const { length } = [...text]; // code points, as JSON Schema counts
  return length >= minLength && length <= maxLength && new RegExp(pattern, 'u').test(text);
}

function fitsList(document: Document, schema: Keywords, list: readonly unknown[]): boolean {
  const { minItems = 0, maxItems = Infinity, uniqueItems = false, items = true } = schema;
  if (list.length < minItems || list.length > maxItems) return false;
  if (uniqueItems && new Set(list).size < list.length) return false;
  return list.every((item) => fitsIn(document, items, item));
}

function fitsMembers(document: Document, schema: Keywords, value: Members): boolean {
  const { required = [], properties = {}, additionalProperties = true, propertyNames = true } = schema;
  const { minProperties = 0, maxProperties = Infinity } = schema;
  if (document.fillsDefaults) addDefaults(properties, value);
  const names = Object.keys(value);
  if (names.length < minProperties || names.length > maxProperties) return false;
  return (
    required.every((name) => Object.hasOwn(value, name)) &&
    names.every((name) => {
      const member = Object.hasOwn(properties, name) ? (properties[name] as Schema) : additionalProperties;
      return fitsIn(document, propertyNames, name) && fitsIn(document, member, value[name]);
    })
  );
}

function addDefaults(properties: Readonly<Record<string, Schema>>, value: Members): void {
  for (const [name, schema] of Object.entries(properties))
    if (typeof schema === 'object' && schema.default !== undefined && !Object.hasOwn(value, name))
      value[name] = structuredClone(schema.default);
}

function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isPattern(limit: unknown): boolean {
  try {
    return typeof limit === 'string' && new RegExp(limit, 'u') instanceof RegExp;
  } catch {
    return false;
  }
}
