import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import isJsonSchema from './json-schema-validator.cjs';
import type { JsonSchema } from './resource.js';

/** Throws an Error when the schema is none. */
export type CompileSchema = (schema: JsonSchema) => ValidateFunction;

/**
 * Compiles the schemas of all fields. Most of them differ in their description and examples alone, which say nothing about a value: a
 * start compiles equal ones once. The schema of schemas is compiled already.
 */
export function schemaCompiler(): CompileSchema {
  const ajv = new Ajv2020({
    strictTypes: false,
    strict: true,
    meta: false,
    validateSchema: false,
    code: { optimize: false }, // costs more than it saves for a few values
  });
  formats.default(ajv);
  const compiled = new Map<string, ValidateFunction>();
  return ({ description, examples, ...schema }) => {
    const key = JSON.stringify(schema);
    const known = compiled.get(key);
    if (known !== undefined) return known;
    if (!isJsonSchema(schema)) throw new Error(ajv.errorsText(isJsonSchema.errors, { dataVar: 'schema' }));
    const validate = ajv.compile(schema);
    compiled.set(key, validate);
    return validate;
  };
}
