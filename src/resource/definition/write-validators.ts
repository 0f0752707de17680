import { createContext, Script } from 'node:vm';
import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import type { FieldError, FieldErrorCode } from '../../base/errors.js';
import { toPointer } from '../../base/members.js';
import { type FieldTypeRow, fieldTypes, type JsonSchema } from './field-types.js';
import { makeCreateSchema, makePatchSchema } from './record-schema.js';
import { listLeaves, type Resource } from './resource.js';

export type BodyCheck = (body: unknown) => readonly FieldError[];

/** The gateway's code and detail for a keyword of ajv. */
const codes: Readonly<Record<string, (error: ErrorObject) => readonly [FieldErrorCode, string]>> = {
  required: () => ['required', 'This field is required.'],
  type: (error) =>
    error.data === null
      ? ['not_nullable', 'This field cannot be null.']
      : ['invalid_type', `This must be of type ${[error.params.type].flat().join(' or ')}.`],
  enum: ({ params }) => ['invalid', `This must be one of: ${params.allowedValues.map(String).join(', ')}.`],
  minLength: () => ['too_short', 'This is too short.'],
  maxLength: ({ params }) => ['too_long', `This is longer than ${params.limit} characters.`],
  minimum: ({ params }) => ['out_of_range', `This is below ${params.limit}.`],
  maximum: ({ params }) => ['out_of_range', `This is above ${params.limit}.`],
  format: ({ params }) => ['invalid_format', `This must be ${forms.get(params.format) ?? `a valid ${params.format}`}.`],
  pattern: ({ params }) => [
    'invalid_format',
    `This must ${forms.has(params.pattern) ? `be ${forms.get(params.pattern)}` : `match the pattern ${params.pattern}`}.`,
  ],
};

const forms: ReadonlyMap<unknown, string> = new Map(
  Object.values<FieldTypeRow>(fieldTypes).flatMap(({ writeSchema: { pattern, format } = {}, writeForm = '' }) =>
    writeForm === '' ? [] : [pattern, format].map((each) => [each, writeForm] as const),
  ),
);

/** Compiles at the first body, so that a start does not wait for it. */
export function compileBodyChecks(resource: Resource): { readonly create: BodyCheck; readonly patch: BodyCheck } {
  const knownMembers = new Set(listLeaves(resource).map(({ path }) => path[0] as string));
  const check = (schema: JsonSchema): BodyCheck => {
    let validate: ValidateFunction | undefined;
    return (body) => {
      validate ??= makeBodyCompiler().compile(schema);
      return validate(body) ? [] : listBodyFaults(validate.errors ?? [], knownMembers);
    };
  };
  return { create: check(makeCreateSchema(resource)), patch: check(makePatchSchema(resource)) };
}

/** Matches repetitions of an open number or of a group: without one, the test of a pattern is linear. */
const repetition = /[*+?]|\{\d+,|\)\{/;
const patternTest = new Script('pattern.test(text)');

/** Bounds a pattern that backtracks without end, such as ^(a+)+$: after a second the value does not match. Costs 0.1 ms. */
function compileBoundedPattern(source: string, flags: string): { readonly test: (text: string) => boolean } {
  const pattern = new RegExp(source, flags);
  if (forms.has(source) || !repetition.test(source)) return pattern;
  const context = createContext({ pattern, text: '' });
  return {
    test: (text) => {
      context.text = text;
      try {
        return patternTest.runInContext(context, { timeout: 1000 });
      } catch {
        return false;
      }
    },
  };
}

function makeBodyCompiler(): Ajv2020 {
  const ajv = new Ajv2020({
    allErrors: true,
    verbose: true,
    strictTypes: false,
    strict: true,
    meta: false,
    code: { regExp: Object.assign(compileBoundedPattern, { code: 'boundedPattern' }) },
    validateSchema: false, // the definition was validated with the schemas of its fields
  });
  formats.default(ajv);
  ajv.addFormat('int64', true); // documentation only: the type refuses fractions already
  return ajv;
}

function listBodyFaults(errors: readonly ErrorObject[], known: ReadonlySet<string>): FieldError[] {
  const byPointer = new Map<string, FieldError>();
  for (const error of errors) {
    if (error.keyword === 'enum' && errors.some((other) => namesTypeOf(error, other))) continue;
    const { pointer, code, detail } = describeBodyFault(error, known);
    byPointer.set(`${pointer} ${code}`, { pointer, code, detail });
  }
  return [...byPointer.values()];
}

/** An error excuses another one only if the list has both, so every refused value has a fault. */
function namesTypeOf({ instancePath, parentSchema }: ErrorObject, other: ErrorObject): boolean {
  return other.keyword === 'type' && other.instancePath === instancePath && other.parentSchema === parentSchema;
}

function describeBodyFault(error: ErrorObject, known: ReadonlySet<string>): FieldError & { pointer: string } {
  const { instancePath, keyword, params } = error;
  if (keyword === 'additionalProperties') {
    const name = String(params.additionalProperty);
    const pointer = instancePath + toPointer([name]);
    return known.has(name)
      ? { pointer, code: 'read_only', detail: 'This field cannot be written.' }
      : { pointer, code: 'unknown_field', detail: 'There is no such field.' };
  }
  const pointer = keyword === 'required' ? instancePath + toPointer([params.missingProperty]) : instancePath;
  const [code, detail] = codes[keyword]?.(error) ?? ['invalid', 'This is not valid.'];
  return { pointer, code, detail };
}
