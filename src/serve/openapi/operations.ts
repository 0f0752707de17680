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
import { mapValues, readData } from './texts.js';
import { isWritable, makeExamples, type OpenApiOptions } from './values.js';

export type OperationWords = Pick<Operation, 'operationId' | 'summary' | 'description'>;

interface OperationDescription extends Pick<Operation, 'requestBody'> {
  readonly words: OperationWords;
  readonly tag: string;
  /** Absent: the operation needs no scope; null: nor a token. */
  readonly scope?: string | null;
  readonly parameters: readonly string[];
  readonly responses: Readonly<Record<string, string>>;
  readonly errors: ErrorSet;
}

/** Makes an operation without its samples, which need the whole document. */
export function makeOperation(options: OpenApiOptions, described: OperationDescription): Operation {
  const { words, tag, scope, parameters, requestBody, responses, errors } = described;
  const scopes = scope ? [scope] : [];
  return {
    ...words,
    description: scope ? `${words.description} Needs the scope \`${scope}\`.` : words.description,
    ...(scope && { 'x-required-scope': scope }),
    security: scope === null ? [] : [{ bearer: scopes }, ...(options.basicAuth ? [{ basic: scopes }] : [])],
    tags: [tag],
    parameters: [...parameters, 'requestId'].map((name) => makeRef('parameters', name)),
    ...(requestBody && { requestBody }),
    responses: { ...mapValues(responses, (name) => makeRef('responses', name)), ...makeErrors(errors) },
    'x-codeSamples': [],
  };
}

type OperationKind = 'list' | 'get' | 'create' | 'update' | 'sync' | 'digest' | 'periods' | 'ids';
/** Words for the operations of a resource, and its parameter `fields`. */
type ResourceTexts = Readonly<Record<OperationKind, OperationWords>> & { readonly fields: ApiParameter };

export function makeResourceSection(resource: Resource, options: OpenApiOptions) {
  const { name, record, description, fields, filters } = resource;
  const [{ lower, upper } = { lower: '', upper: '' }] = listFilterRanges(filters);
  const names = { name, record, Name: capitalize(name), Record: capitalize(record), fieldNames: Object.keys(fields) };
  const values = { ...names, description, lower, upper, order: describeOrder(resource) };
  const texts = readData('resource.json', values) as ResourceTexts;
  return {
    tag: { name: toWords(name), description },
    paths: makePaths(resource, options, texts),
    schemas: makeSchemas(resource, options),
    parameters: makeParameters(resource, options, texts),
    responses: makeResponses(resource, options),
  };
}

const pagingParameters = ['perPage', 'page', 'cursor', 'total', 'order'];

function makePaths(resource: Resource, options: OpenApiOptions, texts: ResourceTexts): Paths {
  const { name, record, detail, version, sync, filters } = resource;
  const common = { tag: toWords(name), scope: `read:${name}` };
  const ownParameters = ['fields', ...Object.keys(filters)].map((parameter) => `${name}.${parameter}`);
  const list = makeOperation(options, {
    ...common,
    words: texts.list,
    parameters: [...pagingParameters, ...ownParameters],
    responses: { 200: `${name}.page` },
    errors: 'list',
  });
  const get = makeOperation(options, {
    ...common,
    words: texts.get,
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
  const common = { tag: toWords(name), scope: `write:${name}` };
  const { createExample, patchExample } = makeExamples(resource);
  const { bodyBytesMax } = options;
  const bytes = bodyBytesMax % 1024 === 0 ? `${bodyBytesMax / 1024} KiB` : `${bodyBytesMax} bytes`;
  const describeBody = (end: 'Create' | 'Patch', example: unknown, ...types: readonly string[]) => {
    const media = { schema: makeRef('schemas', `${capitalize(record)}${end}`), example };
    const description = `UTF-8, at most ${bytes} and ${bodyDepthMax} levels deep, without duplicate members.`;
    return { required: true, description, content: Object.fromEntries(types.map((type) => [type, media])) };
  };
  const post = makeOperation(options, {
    ...common,
    words: texts.create,
    parameters: ['dryRun', 'idempotencyKey'],
    requestBody: describeBody('Create', createExample, 'application/json'),
    responses: { 201: `${record}.created` },
    errors: 'create',
  });
  const patch = makeOperation(options, {
    ...common,
    words: texts.update,
    parameters: ['id', 'dryRun', 'idempotencyKey', 'ifMatchRequired'],
    requestBody: describeBody('Patch', patchExample, 'application/json', 'application/merge-patch+json'),
    responses: { 200: `${record}.updated` },
    errors: 'update',
  });
  return { post, patch };
}

function makeSyncPaths({ name, filters }: Resource, options: OpenApiOptions, texts: ResourceTexts): Paths {
  const { sync, digest, periods, ids } = texts;
  const [days] = listFilterRanges(filters);
  const common = { tag: 'Sync', scope: `read:${name}`, errors: 'sync' } as const;
  const makePath = (words: OperationWords, parameters: readonly string[], response: string) => ({
    get: makeOperation(options, { ...common, words, parameters, responses: { 200: response } }),
  });
  const periodParameters = days === undefined ? [] : [`${name}.${days.lower}`, `${name}.${days.upper}`, 'by'];
  const description = digest.description + (days ? periods.description : '');
  const feedParameters = ['perPage', 'since', 'syncCursor', 'prefix', `${name}.fields`];
  return {
    [`/sync/${name}`]: makePath(sync, feedParameters, `${name}.sync`),
    [`/sync/${name}/digest`]: makePath({ ...digest, description }, ['depth', ...periodParameters, 'since'], 'Digest'),
    [`/sync/${name}/ids`]: makePath(ids, ['prefix', 'since'], 'Ids'),
  };
}

function makeSchemas(resource: Resource, options: OpenApiOptions): Components['schemas'] {
  const { name, record, sync } = resource;
  const schemaName = capitalize(record);
  const makePageSchema = (what: string, itemSchema: string, pagination: string) => ({
    type: 'object',
    description: `A page of ${what}. Members in this order; the last bytes, \`"complete":true}}\`, show that the page is whole.`,
    required: ['data', 'pagination'],
    properties: {
      data: { type: 'array', items: makeRef('schemas', itemSchema) },
      pagination: makeRef('schemas', pagination),
    },
  });
  return {
    [schemaName]: makeRecordSchema(resource),
    [`${schemaName}Page`]: makePageSchema(name, schemaName, 'Pagination'),
    ...(isWritable(resource, options) && {
      ...(resource.write?.creates && { [`${schemaName}Create`]: makeCreateSchema(resource) }),
      [`${schemaName}Patch`]: makePatchSchema(resource),
      [`${schemaName}Written`]: makeWriteScopeSchema(resource),
    }),
    ...(sync && {
      [`${schemaName}Versioned`]: makeVersionedSchema(resource),
      [`${schemaName}Sync`]: makePageSchema(`a pass over ${name}`, `${schemaName}Versioned`, 'SyncPagination'),
    }),
  };
}

function makeParameters(resource: Resource, options: OpenApiOptions, texts: ResourceTexts): Components['parameters'] {
  const { name, filters } = resource;
  const filterParameters = Object.entries(filters).map(([filterName, filter]) => [
    `${name}.${filterName}`,
    makeFilterParameter(filterName, filter, resource, options),
  ]);
  return { [`${name}.fields`]: texts.fields, ...Object.fromEntries(filterParameters) };
}

function makeResponses(resource: Resource, options: OpenApiOptions): Components['responses'] {
  const { name, record, sync, detail, version } = resource;
  const referTo = (end = '') => makeRef('schemas', `${capitalize(record)}${end}`);
  const makeResponse = (description: string, kind: SuccessKind, media: MediaType): ApiResponse => ({
    description,
    headers: makeHeaders(successHeaders[kind]),
    content: { 'application/json': media },
  });
  const example = makeExamples(resource).recordExample;
  const makePage = (what: string, kind: 'page' | 'sync', end: string, data: object, pagination: object): ApiResponse =>
    makeResponse(`A page of ${what}. It is whole if it ends in \`"complete":true}}\`.`, kind, {
      schema: referTo(end),
      example: { data: [data], pagination: { ...pagination, complete: true } },
    });
  const writtenRecord = { schema: { anyOf: [referTo(), referTo('Written')] }, example };
  const shownToWriters = `only the members that the write scope may see if the token lacks \`read:${name}\`.`;
  const perPage = Math.min(options.perPageDefault, options.perPageMax);
  const onlyPage = { perPage, count: 1, hasMore: false, nextCursor: null, next: null };
  const listExample = { page: 1, ...onlyPage, endCursor: 'y4Qq7wZ0m1JpXw3n' };
  const versioned = { ...example, syncVersion: '9f2c4e6a81b3d507' };
  return {
    [`${name}.page`]: makePage(name, 'page', 'Page', example, listExample),
    ...(detail && {
      [record]: makeResponse(`The ${record}.`, version === undefined ? 'detail' : 'versioned', {
        schema: referTo(),
        example,
      }),
    }),
    ...(isWritable(resource, options) && {
      ...(resource.write?.creates && {
        [`${record}.created`]: makeResponse(`The new ${record}; ${shownToWriters}`, 'created', writtenRecord),
      }),
      [`${record}.updated`]: makeResponse(
        `The ${record} after the change; ${shownToWriters}`,
        'updated',
        writtenRecord,
      ),
    }),
    ...(sync && {
      [`${name}.sync`]: makePage(`a pass over ${name}`, 'sync', 'Sync', versioned, {
        ...onlyPage,
        since: 'b3JkZXJfMTIzNA',
      }),
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
function toWords(name: string): string {
  const [first = '', ...others] = name.split(/-|(?=[A-Z])/).map((word) => word.toLowerCase());
  return [capitalize(first), ...others].join(' ');
}
