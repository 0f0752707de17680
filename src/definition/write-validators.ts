import { createContext, Script } from 'node:vm';
import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import type { FieldError, FieldErrorCode } from '../errors.js';
import { type FieldType, type FieldTypeRow, fieldType, fieldTypes, type IdType } from './field-types.js';
import { createSchema, patchSchema } from './record-schema.js';
import { type JsonSchema, leaves, type Resource } from './resource.js';

/** Checks the bodies of writes; made once from the definition of the resource. */
export interface WriteValidators {
  /** All faults of a body; none when it may be written. */
  readonly create: (body: unknown) => readonly FieldError[];
  readonly patch: (body: unknown) => readonly FieldError[];
  /** A value of an accepted body as PostgreSQL prints it; not null. */
  readonly toText: (member: string, value: unknown) => string;
  readonly idType: IdType;
  /** The writable members and their columns, in the order of the definition. */
  readonly writable: readonly WritableMember[];
}

export interface WritableMember {
  readonly name: string;
  readonly column: string;
  readonly type: FieldType;
  /** Name of the member in the app's audit log. */
  readonly auditName: string;
}

/** ajv keyword → our code and detail. `null` where null is not allowed has a code of its own. */
const codes: Readonly<Record<string, (error: ErrorObject) => readonly [FieldErrorCode, string]>> = {
  required: () => ['required', 'This field is required.'],
  type: (error) =>
    error.data === null
      ? ['not_nullable', 'This field cannot be null.']
      : ['invalid_type', `This must be of type ${allowedTypes(error)}.`],
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

/** The forms that the patterns and formats of the types ask for, in words. */
const forms: ReadonlyMap<unknown, string> = new Map(
  Object.values<FieldTypeRow>(fieldTypes).flatMap(({ writeSchema: { pattern, format } = {}, writeForm = '' }) =>
    writeForm === '' ? [] : [pattern, format].map((each) => [each, writeForm] as const),
  ),
);

export function compileWriteValidators(resource: Resource): WriteValidators {
  const known = new Set(leaves(resource).map(({ path }) => path[0] as string));
  /** Compiles at the first body: a start does not wait for it, and the schema of each field was compiled with the definition. */
  const rule = (schema: JsonSchema) => {
    let validate: ValidateFunction | undefined;
    return (body: unknown) => {
      validate ??= bodyCompiler().compile(schema);
      return validate(body) ? [] : faults(validate.errors ?? [], known);
    };
  };
  const writable = leaves(resource)
    .filter(({ field }) => field.write !== undefined)
    .map(({ path, field: { column, type, write } }) => ({
      name: path[0] as string,
      column,
      type,
      auditName: write?.auditName ?? column,
    }));
  const types = new Map(writable.map(({ name, type }) => [name, fieldType(type)]));
  return {
    create: rule(createSchema(resource)),
    patch: rule(patchSchema(resource)),
    toText: (member, value) => types.get(member)?.toText?.(value) ?? String(value),
    idType: resource.idType,
    writable,
  };
}

/** Longer than any test of a pattern without repetitions in repetitions takes. */
const patternMsMax = 200;
const patternTest = new Script('pattern.test(text)');

/**
 * A pattern of a definition, whose test ends: one that backtracks without end, such as ^(a+)+$, would stop the gateway with one value of a
 * client. A value that it cannot judge in time does not match.
 */
function boundedPattern(source: string, flags: string): { readonly test: (text: string) => boolean } {
  const pattern = new RegExp(source, flags);
  if (forms.has(source)) return pattern;
  const context = createContext({ pattern, text: '' });
  return {
    test: (text) => {
      context.text = text;
      for (;;) {
        const before = process.cpuUsage();
        try {
          return patternTest.runInContext(context, { timeout: patternMsMax });
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error;
          const { user, system } = process.cpuUsage(before);
          if (user + system > patternMsMax * 500) return false; // in less than half of the time the process had no processor: again
        }
      }
    },
  };
}

function bodyCompiler(): Ajv2020 {
  const ajv = new Ajv2020({
    allErrors: true,
    verbose: true,
    strictTypes: false,
    strict: true,
    meta: false,
    code: { regExp: Object.assign(boundedPattern, { code: 'boundedPattern' }) },
    validateSchema: false, // the definition was validated with the schemas of its fields
  });
  formats.default(ajv);
  ajv.addFormat('int64', true); // documentation only: the type refuses fractions already
  return ajv;
}

/** One fault per place and code, in the order ajv found them. */
function faults(errors: readonly ErrorObject[], known: ReadonlySet<string>): FieldError[] {
  const found = new Map<string, FieldError>();
  for (const error of errors) {
    const { pointer, code, detail } = fault(error, known);
    found.set(`${pointer} ${code}`, { pointer, code, detail });
  }
  return [...found.values()];
}

function fault(error: ErrorObject, known: ReadonlySet<string>): FieldError & { pointer: string } {
  const { instancePath, keyword, params } = error;
  if (keyword === 'additionalProperties') {
    const name = String(params.additionalProperty);
    const pointer = `${instancePath}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
    return known.has(name)
      ? { pointer, code: 'read_only', detail: 'This field cannot be written.' }
      : { pointer, code: 'unknown_field', detail: 'There is no such field.' };
  }
  const pointer = keyword === 'required' ? `${instancePath}/${params.missingProperty}` : instancePath;
  const [code, detail] = codes[keyword]?.(error) ?? ['invalid', 'This is not valid.'];
  return { pointer, code, detail };
}

function allowedTypes({ params }: ErrorObject): string {
  return [params.type].flat().join(' or ');
}
