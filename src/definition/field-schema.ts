import { fieldType } from './field-types.js';
import type { Field, JsonSchema } from './resource.js';

/** A member as it is given back. */
export function readSchema(field: Field): JsonSchema {
  const { schema: ofType, hasValuesWithoutJson } = fieldType(field.type);
  const schema = { ...ofType, ...field.schema };
  return annotated(field, mayLackValue(field) || hasValuesWithoutJson ? orNull(schema) : schema);
}

/** Whether the column can be NULL or its text not be shown: a value with a codec that cannot be decoded, and a text that is an image, are null. */
export function mayLackValue({ nullable, codec, clean }: Field): boolean {
  return nullable === true || codec !== undefined || clean === 'text-images';
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
