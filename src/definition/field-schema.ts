import type { Field, FieldType, JsonSchema } from './resource.js';

/** RFC 3339 in UTC with milliseconds, the only form of a timestamp in the API. */
export const timestampSchema: JsonSchema = {
  type: 'string',
  format: 'date-time',
  pattern: '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z$',
};

/** A calendar date. Year 0000 exists in ISO 8601 but not in PostgreSQL. */
export const dateSchema: JsonSchema = {
  type: 'string',
  format: 'date',
  pattern: '^(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}$',
};

const identifier: JsonSchema = { type: 'string', minLength: 1 };
const uuidPattern = '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$';

const typeSchemas: Readonly<Record<FieldType, JsonSchema>> = {
  uuid: identifier,
  bigint: identifier,
  text: { type: 'string' },
  integer: { type: 'integer', format: 'int64' },
  number: { type: 'number' },
  boolean: { type: 'boolean' },
  date: dateSchema,
  timestamp: timestampSchema,
  json: {},
};

/** A member as it is given back. A value with a codec is null when it cannot be decoded. */
export function readSchema(field: Field): JsonSchema {
  const schema = { ...typeSchemas[field.type], ...field.schema };
  return annotated(field, field.nullable || field.codec ? orNull(schema) : schema);
}

/** A member as it may be written. */
export function writeSchema(field: Field): JsonSchema {
  const schema = field.type === 'uuid' ? { type: 'string', pattern: uuidPattern } : typeSchemas[field.type];
  const bounded = { ...schema, ...field.schema, ...field.write?.schema };
  return annotated(field, field.nullable && !field.write?.required ? orNull(bounded) : bounded);
}

function annotated(field: Field, schema: JsonSchema): JsonSchema {
  return {
    ...schema,
    description: field.description,
    ...(field.example === undefined ? {} : { examples: [field.example] }),
  };
}

/** The same schema with null allowed: a type array (2020-12 has no `nullable`), or a choice where there is no type. */
function orNull(schema: JsonSchema): JsonSchema {
  if (typeof schema.type === 'string') return { ...schema, type: [schema.type, 'null'] };
  return Object.keys(schema).length === 0 ? schema : { anyOf: [schema, { type: 'null' }] };
}
