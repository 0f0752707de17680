import { toPointer } from '../../base/members.js';
import { getType, type JsonSchema } from './field-types.js';
import { type Field, type JsonShape, listLeaves, type Resource } from './resource.js';

export function makeReadSchema(field: Field): JsonSchema {
  return makeShapeSchema(field, mayLackValue(field));
}

export function makeShapeSchema(shape: JsonShape, isNullable = shape.nullable === true): JsonSchema {
  const { hasValuesWithoutJson } = getType(shape.type);
  const reference = shape.references === undefined ? {} : { 'x-references': shape.references };
  const schema = { ...makeOwnSchema(shape), ...addValues(shape), ...shape.schema, ...reference };
  return annotate(shape, isNullable || hasValuesWithoutJson ? allowNull(schema) : schema);
}

function makeOwnSchema({ type, items, fields }: JsonShape): JsonSchema {
  if (items !== undefined) return { type: 'array', items: makeShapeSchema(items) };
  if (fields === undefined) return getType(type).schema;
  const properties = Object.entries(fields).map(([name, shape]) => [name, makeShapeSchema(shape)]);
  return { type: 'object', required: Object.keys(fields), properties: Object.fromEntries(properties) };
}

/** The column can be NULL, or its value undecodable. */
export function mayLackValue({ nullable, codec }: Field): boolean {
  return nullable === true || codec !== undefined;
}

export function makeWriteSchema(field: Field): JsonSchema {
  const bounded = { ...getType(field.type).writeSchema, ...addValues(field), ...field.schema, ...field.write?.schema };
  return annotate(field, field.nullable && !field.write?.required ? allowNull(bounded) : bounded);
}

function annotate({ description = '', show, example }: JsonShape, schema: JsonSchema): JsonSchema {
  const shownNote = show === undefined ? '' : `Only these members are shown: ${show.join(', ')}.`;
  const prose = [description, shownNote].filter((text) => text !== '').join(' ');
  return {
    ...schema,
    ...(prose === '' ? {} : { description: prose }),
    ...(example === undefined ? {} : { examples: [example] }),
  };
}

function addValues({ values }: JsonShape): JsonSchema {
  return values === undefined ? {} : { enum: values };
}

/** Adds null to a type array (2020-12 has no `nullable`), or to a choice without a type. */
function allowNull(schema: JsonSchema): JsonSchema {
  const values = Array.isArray(schema.enum) ? { enum: [...new Set([...schema.enum, null])] } : {};
  if (typeof schema.type === 'string') return { ...schema, type: [schema.type, 'null'], ...values };
  return Object.keys(schema).length === 0 ? schema : { anyOf: [schema, { type: 'null' }] };
}

/** Requires every member; later versions may add members. */
export function makeRecordSchema(resource: Resource): JsonSchema {
  const encoded = listLeaves(resource).filter(({ field }) => canFail(field));
  const record = makeObjectSchema(resource, response);
  if (encoded.length === 0) return record;
  const decodeErrors = {
    type: 'array',
    minItems: 1,
    uniqueItems: true,
    items: { type: 'string', enum: encoded.map(({ path }) => toPointer(path)) },
    description:
      'Only present when stored values of this record could not be decoded: the pointers (RFC 6901) of the members that are null for that reason.',
  };
  return { ...record, properties: { ...(record.properties as object), decodeErrors } };
}

/** Adds the version of a sync pass. `x-record` names the record, for programs that make tables. */
export function makeVersionedSchema(resource: Resource): JsonSchema {
  const { required, properties, ...schema } = makeRecordSchema(resource) as { required: string[]; properties: object };
  return {
    ...schema,
    'x-record': resource.record,
    required: [...required, 'syncVersion'],
    properties: { ...properties, syncVersion: { $ref: '#/components/schemas/SyncVersion' } },
  };
}

export function makeWriteScopeSchema(resource: Resource): JsonSchema {
  const description = 'Response to a write by a token without the read scope.';
  const keep = (field: Field): boolean => isVisibleToWriteScope(resource, field);
  return makeObjectSchema({ ...resource, description }, { ...response, keep });
}

/** The member can fail to decode; it is then null and named in `decodeErrors`. */
export function canFail({ codec, pointer }: Field): boolean {
  return codec !== undefined || pointer !== undefined;
}

export function isVisibleToWriteScope(resource: Resource, field: Field): boolean {
  return isWritable(field) || ['id', resource.version].includes(field.column) || field.type === 'timestamp';
}

export function makeCreateSchema(resource: Resource): JsonSchema {
  return makeBodySchema(
    resource,
    `A new ${resource.record}. A member left out is null.`,
    ({ write }) => write?.required === true,
  );
}

/** Follows RFC 7396, merge patch. */
export function makePatchSchema(resource: Resource): JsonSchema {
  return makeBodySchema(resource, 'Members left out stay as they are, null clears a nullable field.', () => false);
}

/** `isClosed` refuses other members, which only requests need. */
interface RecordForm {
  readonly keep: (field: Field) => boolean;
  readonly isRequired: (field: Field) => boolean;
  readonly schema: (field: Field) => JsonSchema;
  readonly isClosed: boolean;
}

const isWritable = ({ write }: Field): boolean => write !== undefined;
const response: RecordForm = { keep: () => true, isRequired: () => true, schema: makeReadSchema, isClosed: false };

function makeBodySchema(resource: Resource, prose: string, isRequired: RecordForm['isRequired']): JsonSchema {
  const readOnly = listLeaves(resource).flatMap(({ field, path }) =>
    isWritable(field) ? [] : `\`${path.join('.')}\``,
  );
  const description = `${prose} Read-only, refused with code \`read_only\`: ${readOnly.join(', ')}. Any other member is refused with code \`unknown_field\`.`;
  return makeObjectSchema(
    { ...resource, description },
    { keep: isWritable, isRequired, schema: makeWriteSchema, isClosed: true },
  );
}

function makeObjectSchema(resource: Pick<Resource, 'description' | 'fields'>, form: RecordForm): JsonSchema {
  const { description, fields } = resource;
  const members = Object.entries(fields).flatMap(([name, member]) => {
    if (!('group' in member))
      return form.keep(member) ? [{ name, schema: form.schema(member), isRequired: form.isRequired(member) }] : [];
    const schema = makeObjectSchema({ description: member.description, fields: member.group }, form);
    const isEmpty = Object.keys(schema.properties as object).length === 0;
    return isEmpty ? [] : [{ name, schema, isRequired: 'required' in schema }];
  });
  const required = members.flatMap(({ name, isRequired }) => (isRequired ? [name] : []));
  return {
    type: 'object',
    description,
    ...(form.isClosed && { additionalProperties: false }),
    ...(required.length > 0 && { required }),
    properties: Object.fromEntries(members.map(({ name, schema }) => [name, schema])),
  };
}
