import { fieldType } from './field-types.js';
import type { Field, JsonSchema } from './resource.js';

/** A member as it is given back. A value with a codec is null when it cannot be decoded, a text that is an image is null as well. */
export function readSchema(field: Field): JsonSchema {
  const schema = { ...fieldType(field.type).schema, ...field.schema };
  return annotated(field, field.nullable || field.codec || field.clean === 'text-images' ? orNull(schema) : schema);
}

/** A member as it may be written. */
export function writeSchema(field: Field): JsonSchema {
  const bounded = { ...fieldType(field.type).writeSchema, ...field.schema, ...field.write?.schema };
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
