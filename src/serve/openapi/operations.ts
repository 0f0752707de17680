import { type Filter, getFilterForm, getKind, listFilterRanges } from '../../resource/definition/filter-kinds.js';
import {
  makeCreateSchema,
  makePatchSchema,
  makeRecordSchema,
  makeVersionedSchema,
  makeWriteScopeSchema,
} from '../../resource/definition/record-schema.js';
import { listLeaves, type Resource } from '../../resource/definition/resource.js';
import { bodyDepthMax } from '../write/strict-json.js';
import {
  type ApiParameter,
  type ApiResponse,
  type Components,
  type MediaType,
  makeRef,
  type Operation,
  type Paths,
} from './document.js';
import { type ErrorSet, makeErrors, makeHeaders, type SuccessKind, successHeaders } from './responses.js';
import { readData } from './texts.js';
import { isWritable, makeExamples, type OpenApiOptions } from './values.js';

export type OperationWords = Pick<Operation, 'operationId' | 'summary' | 'description'>;

interface OperationDescription extends OperationWords, Pick<Operation, 'requestBody'> {
  readonly tag: string;
  /** Absent: the operation needs no scope; null: nor a token. */
  readonly scope?: string | null;
  readonly parameters: readonly string[];
  readonly responses: Readonly<Record<string, string>>;
  readonly errors: ErrorSet;
}

/** Makes an operation without its samples, which need the whole document. */
export function makeOperation(options: OpenApiOptions, described: OperationDescription): Operation {
  const { tag, scope, parameters, responses, errors, description, ...own } = described;
  const scopes = scope ? [scope] : [];
  return {
    ...own,
    description: scope ? `${description} Needs the scope \`${scope}\`.` : description,
    ...(scope && { 'x-required-scope': scope }),
    security: scope === null ? [] : [{ bearer: scopes }, ...(options.basicAuth ? [{ basic: scopes }] : [])],
    tags: [tag],
    parameters: [...parameters, 'requestId'].map((name) => makeRef('parameters', name)),
    responses: {
      ...Object.fromEntries(Object.entries(responses).map(([status, name]) => [status, makeRef('responses', name)])),
      ...makeErrors(errors),
    },
    'x-codeSamples': [],
  };
}

type OperationKind = 'list' | 'get' | 'create' | 'update' | 'sync' | 'digest' | 'periods' | 'ids';
/** Words for the operations of a resource, and its parameter `fields`. */
type ResourceTexts = Readonly<Record<OperationKind, OperationWords>> & { readonly fields: ApiParameter };

export function makeResourceSection(resource: Resource, options: OpenApiOptions) {
  const { name, record, description, fields, filters } = resource;
  const [{ lower, upper } = { lower: '', upper: '' }] = listFilterRanges(filters);
  const texts = readData('resource.json', {
    ...{ name, record, description, lower, upper, Name: capitalize(name), Record: capitalize(record) },
    order: describeOrder(resource),
    fieldNames: Object.keys(fields),
  }) as ResourceTexts;
  return {
    tag: { name: spaceWords(name), description },
    paths: makePaths(resource, options, texts),
    schemas: makeSchemas(resource, options),
    parameters: makeParameters(resource, options, texts),
    responses: makeResponses(resource, options),
  };
}

function makePaths(resource: Resource, options: OpenApiOptions, texts: ResourceTexts): Paths {
  const { name, record, detail, version, sync, filters } = resource;
  const common = { tag: spaceWords(name), scope: `read:${name}` };
  const list = makeOperation(options, {
    ...{ ...common, ...texts.list },
    parameters: [
      ...['perPage', 'page', 'cursor', 'total', 'order', `${name}.fields`],
      ...Object.keys(filters).map((filter) => `${name}.${filter}`),
    ],
    responses: { 200: `${name}.page` },
    errors: 'list',
  });
  const get = makeOperation(options, {
    ...{ ...common, ...texts.get },
    parameters: version === undefined ? ['id'] : ['id', 'ifNoneMatch', 'ifMatch'],
    responses: { 200: record, ...(version !== undefined && { 304: 'NotModified', 412: 'PreconditionFailed' }) },
    errors: 'detail',
  });
  const { post, patch } = isWritable(resource, options) ? makeWrites(resource, options, texts) : {};
  return {
    [`/${name}`]: { get: list, ...(post && resource.write?.creates && { post }) },
    ...(detail && { [`/${name}/{id}`]: { get, ...(patch && { patch }) } }),
    ...(sync && makeSyncPaths(resource, options, texts)),
  };
}

function makeWrites(resource: Resource, options: OpenApiOptions, texts: ResourceTexts) {
  const { name, record } = resource;
  const common = { tag: spaceWords(name), scope: `write:${name}` };
  const { createExample, patchExample } = makeExamples(resource);
  const { bodyBytesMax } = options;
  const bytes = bodyBytesMax % 1024 === 0 ? `${bodyBytesMax / 1024} KiB` : `${bodyBytesMax} bytes`;
  const body = (end: string, example: unknown, ...types: readonly string[]) => ({
    required: true,
    description: `UTF-8, at most ${bytes} and ${bodyDepthMax} levels deep, without duplicate members.`,
    content: Object.fromEntries(
      types.map((type) => [type, { schema: makeRef('schemas', `${capitalize(record)}${end}`), example }]),
    ),
  });
  const post = makeOperation(options, {
    ...{ ...common, ...texts.create },
    parameters: ['dryRun', 'idempotencyKey'],
    requestBody: body('Create', createExample, 'application/json'),
    responses: { 201: `${record}.created` },
    errors: 'create',
  });
  const patch = makeOperation(options, {
    ...{ ...common, ...texts.update },
    parameters: ['id', 'dryRun', 'idempotencyKey', 'ifMatchRequired'],
    requestBody: body('Patch', patchExample, 'application/json', 'application/merge-patch+json'),
    responses: { 200: `${record}.updated` },
    errors: 'update',
  });
  return { post, patch };
}

function makeSyncPaths({ name, filters }: Resource, options: OpenApiOptions, texts: ResourceTexts): Paths {
  const { sync, digest, periods, ids } = texts;
  const [days] = listFilterRanges(filters);
  const describe = (described: Omit<OperationDescription, 'tag' | 'scope' | 'errors'>) => ({
    get: makeOperation(options, { ...described, tag: 'Sync', scope: `read:${name}`, errors: 'sync' }),
  });
  const ofPeriod = days === undefined ? [] : [`${name}.${days.lower}`, `${name}.${days.upper}`, 'by'];
  const description = digest.description + (days ? periods.description : '');
  return {
    [`/sync/${name}`]: describe({
      ...sync,
      parameters: ['perPage', 'since', 'syncCursor', 'prefix', `${name}.fields`],
      responses: { 200: `${name}.sync` },
    }),
    [`/sync/${name}/digest`]: describe({
      ...{ ...digest, description },
      parameters: ['depth', ...ofPeriod, 'since'],
      responses: { 200: 'Digest' },
    }),
    [`/sync/${name}/ids`]: describe({ ...ids, parameters: ['prefix', 'since'], responses: { 200: 'Ids' } }),
  };
}

function makeSchemas(resource: Resource, options: OpenApiOptions): Components['schemas'] {
  const { name, record, sync } = resource;
  const Record = capitalize(record);
  const pageOf = (what: string, itemSchema: string, pagination: string) => ({
    type: 'object',
    description: `A page of ${what}. Members in this order; the last bytes, \`"complete":true}}\`, show that the page is whole.`,
    required: ['data', 'pagination'],
    properties: {
      data: { type: 'array', items: makeRef('schemas', itemSchema) },
      pagination: makeRef('schemas', pagination),
    },
  });
  return {
    [Record]: makeRecordSchema(resource),
    [`${Record}Page`]: pageOf(name, Record, 'Pagination'),
    ...(isWritable(resource, options) && {
      ...(resource.write?.creates && { [`${Record}Create`]: makeCreateSchema(resource) }),
      [`${Record}Patch`]: makePatchSchema(resource),
      [`${Record}Written`]: makeWriteScopeSchema(resource),
    }),
    ...(sync && {
      [`${Record}Versioned`]: makeVersionedSchema(resource),
      [`${Record}Sync`]: pageOf(`a pass over ${name}`, `${Record}Versioned`, 'SyncPagination'),
    }),
  };
}

function makeParameters(resource: Resource, options: OpenApiOptions, texts: ResourceTexts): Components['parameters'] {
  const { name, filters } = resource;
  const ofFilters = Object.entries(filters).map(([filter, each]) => [
    `${name}.${filter}`,
    makeFilterParameter(filter, each, resource, options),
  ]);
  return { [`${name}.fields`]: texts.fields, ...Object.fromEntries(ofFilters) };
}

function makeResponses(resource: Resource, options: OpenApiOptions): Components['responses'] {
  const { name, record, sync, detail, version } = resource;
  const schema = (end = '') => makeRef('schemas', `${capitalize(record)}${end}`);
  const response = (description: string, kind: SuccessKind, media: MediaType): ApiResponse => ({
    description,
    headers: makeHeaders(successHeaders[kind]),
    content: { 'application/json': media },
  });
  const example = makeExamples(resource).recordExample;
  const page = (what: string, kind: 'page' | 'sync', end: string, data: object, pagination: object): ApiResponse =>
    response(`A page of ${what}. It is whole if it ends in \`"complete":true}}\`.`, kind, {
      schema: schema(end),
      example: { data: [data], pagination: { ...pagination, complete: true } },
    });
  const ofWrite = { schema: { anyOf: [schema(), schema('Written')] }, example };
  const shownToWriters = `only the members that the write scope may see if the token lacks \`read:${name}\`.`;
  const perPage = Math.min(options.perPageDefault, options.perPageMax);
  const single = { perPage, count: 1, hasMore: false, nextCursor: null, next: null };
  const listExample = { page: 1, ...single, endCursor: 'y4Qq7wZ0m1JpXw3n' };
  const versioned = { ...example, syncVersion: '9f2c4e6a81b3d507' };
  return {
    [`${name}.page`]: page(name, 'page', 'Page', example, listExample),
    ...(detail && {
      [record]: response(`The ${record}.`, version === undefined ? 'detail' : 'versioned', {
        schema: schema(),
        example,
      }),
    }),
    ...(isWritable(resource, options) && {
      ...(resource.write?.creates && {
        [`${record}.created`]: response(`The new ${record}; ${shownToWriters}`, 'created', ofWrite),
      }),
      [`${record}.updated`]: response(`The ${record} after the change; ${shownToWriters}`, 'updated', ofWrite),
    }),
    ...(sync && {
      [`${name}.sync`]: page(`a pass over ${name}`, 'sync', 'Sync', versioned, { ...single, since: 'b3JkZXJfMTIzNA' }),
    }),
  };
}

function makeFilterParameter(name: string, filter: Filter, resource: Resource, { timeZone }: OpenApiOptions) {
  const takesDay = filter.type === 'timestamp' && getKind(filter.kind).takesDays;
  const day = takesDay ? ` A day in time zone ${timeZone}, daylight saving included.` : '';
  const { values } = listLeaves(resource).find(({ field }) => field.column === filter.column)?.field ?? {};
  const valueList = values === undefined ? '' : ` One of: ${values.join(', ')}.`;
  const { schema } = getFilterForm(filter);
  const description = `${filter.description}${day}${valueList}`;
  return { name, in: 'query' as const, description, ...(schema.type === 'array' && { explode: false }), schema };
}

/** Returns text such as "`createdAt`, `id`". */
function describeOrder(resource: Resource): string {
  const paths = new Map(listLeaves(resource).map(({ field, path }) => [field.column, path.join('.')]));
  return resource.order.map(({ column }) => `\`${paths.get(column) ?? column}\``).join(', ');
}

/** Turns "serviceVisits" and "service-visits" into "ServiceVisits". */
function capitalize(name: string): string {
  return name.replace(/(?:^|-)(.)/g, (_, letter: string) => letter.toUpperCase());
}

/** Turns "serviceVisits" and "service-visits" into "Service visits". */
function spaceWords(name: string): string {
  const [first = '', ...others] = name.split(/-|(?=[A-Z])/).map((word) => word.toLowerCase());
  return [capitalize(first), ...others].join(' ');
}
