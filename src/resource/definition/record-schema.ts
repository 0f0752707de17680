import { fieldType, type JsonSchema } from './field-types.js';
import { type Field, leaves, type Part, pointer, type Resource } from './resource.js';

export function readSchema(field: Field): JsonSchema {
  return partSchema(field, mayLackValue(field));
}

export function partSchema(part: Part, isNullable = part.nullable === true): JsonSchema {
  const { hasValuesWithoutJson } = fieldType(part.type);
  const reference = part.references === undefined ? {} : { 'x-references': part.references };
  const schema = { ...ownSchema(part), ...listed(part), ...part.schema, ...reference };
  return annotated(part, isNullable || hasValuesWithoutJson ? orNull(schema) : schema);
}

function ownSchema({ type, items, fields }: Part): JsonSchema {
  if (items !== undefined) return { type: 'array', items: partSchema(items) };
  if (fields === undefined) return fieldType(type).schema;
  const properties = Object.entries(fields).map(([name, part]) => [name, partSchema(part)]);
  return { type: 'object', required: Object.keys(fields), properties: Object.fromEntries(properties) };
}

/** Its column can be NULL, or its value undecodable. */
export function mayLackValue({ nullable, codec }: Field): boolean {
  return nullable === true || codec !== undefined;
}

export function writeSchema(field: Field): JsonSchema {
  const bounded = { ...fieldType(field.type).writeSchema, ...listed(field), ...field.schema, ...field.write?.schema };
  return annotated(field, field.nullable && !field.write?.required ? orNull(bounded) : bounded);
}

function annotated({ description = '', show, example }: Part, schema: JsonSchema): JsonSchema {
  const shown = show === undefined ? '' : `Only these members are shown: ${show.join(', ')}.`;
  const prose = [description, shown].filter((text) => text !== '').join(' ');
  return {
    ...schema,
    ...(prose === '' ? {} : { description: prose }),
    ...(example === undefined ? {} : { examples: [example] }),
  };
}

function listed({ values }: Part): JsonSchema {
  return values === undefined ? {} : { enum: values };
}

/** A type array (2020-12 has no `nullable`), or a choice without a type. */
function orNull(schema: JsonSchema): JsonSchema {
  const values = Array.isArray(schema.enum) ? { enum: [...new Set([...schema.enum, null])] } : {};
  if (typeof schema.type === 'string') return { ...schema, type: [schema.type, 'null'], ...values };
  return Object.keys(schema).length === 0 ? schema : { anyOf: [schema, { type: 'null' }] };
}

/** Every member is present; later versions may add members. */
export function recordSchema(resource: Resource): JsonSchema {
  const encoded = leaves(resource).filter(({ field }) => canFail(field));
  const record = objectOf(resource, response);
  if (encoded.length === 0) return record;
  const decodeErrors = {
    type: 'array',
    minItems: 1,
    uniqueItems: true,
    items: { type: 'string', enum: encoded.map(({ path }) => pointer(path)) },
    description:
      'Only present when stored values of this record could not be decoded: the pointers (RFC 6901) of the members that are null for that reason.',
  };
  return { ...record, properties: { ...(record.properties as object), decodeErrors } };
}

/** Adds the version of a sync pass. `x-record` names the record, for programs that make tables. */
export function versionedSchema(resource: Resource): JsonSchema {
  const { required, properties, ...schema } = recordSchema(resource) as { required: string[]; properties: object };
  return {
    ...schema,
    'x-record': resource.record,
    required: [...required, 'syncVersion'],
    properties: { ...properties, syncVersion: { $ref: '#/components/schemas/SyncVersion' } },
  };
}

export function writeScopeSchema(resource: Resource): JsonSchema {
  const description = 'Response to a write by a token without the read scope.';
  const keep = (field: Field): boolean => visibleToWriteScope(resource, field);
  return objectOf({ ...resource, description }, { ...response, keep });
}

/** The member is then null and named in `decodeErrors`. */
export function canFail({ codec, pointer }: Field): boolean {
  return codec !== undefined || pointer !== undefined;
}

export function visibleToWriteScope(resource: Resource, field: Field): boolean {
  return isWritable(field) || ['id', resource.version].includes(field.column) || field.type === 'timestamp';
}

export function createSchema(resource: Resource): JsonSchema {
  return bodyOf(
    resource,
    `A new ${resource.record}. A member left out is null.`,
    ({ write }) => write?.required === true,
  );
}

/** Follows RFC 7396, merge patch. */
export function patchSchema(resource: Resource): JsonSchema {
  return bodyOf(resource, 'Members left out stay as they are, null clears a nullable field.', () => false);
}

/** `closed` refuses other members: in requests alone. */
interface RecordForm {
  readonly keep: (field: Field) => boolean;
  readonly required: (field: Field) => boolean;
  readonly schema: (field: Field) => JsonSchema;
  readonly closed: boolean;
}

const isWritable = ({ write }: Field): boolean => write !== undefined;
const response: RecordForm = { keep: () => true, required: () => true, schema: readSchema, closed: false };

function bodyOf(resource: Resource, prose: string, required: RecordForm['required']): JsonSchema {
  const readOnly = leaves(resource).flatMap(({ field, path }) => (isWritable(field) ? [] : `\`${path.join('.')}\``));
  const description = `${prose} Read-only, refused with code \`read_only\`: ${readOnly.join(', ')}. Any other member is refused with code \`unknown_field\`.`;
  return objectOf({ ...resource, description }, { keep: isWritable, required, schema: writeSchema, closed: true });
}

function objectOf({ description, fields }: Pick<Resource, 'description' | 'fields'>, form: RecordForm): JsonSchema {
  const members = Object.entries(fields).flatMap(([name, member]) => {
    if (!('group' in member))
      return form.keep(member) ? [{ name, schema: form.schema(member), isRequired: form.required(member) }] : [];
    const schema = objectOf({ description: member.description, fields: member.group }, form);
    const isEmpty = Object.keys(schema.properties as object).length === 0;
    return isEmpty ? [] : [{ name, schema, isRequired: 'required' in schema }];
  });
  const required = members.flatMap(({ name, isRequired }) => (isRequired ? [name] : []));
  return {
    type: 'object',
    description,
    ...(form.closed && { additionalProperties: false }),
    ...(required.length > 0 && { required }),
    properties: Object.fromEntries(members.map(({ name, schema }) => [name, schema])),
  };
}
