import { type Filter, filterForm, filterKind, filterRanges } from '../../resource/definition/filter-kinds.js';
import {
  createSchema,
  patchSchema,
  recordSchema,
  versionedSchema,
  writeScopeSchema,
} from '../../resource/definition/record-schema.js';
import { leaves, type Resource } from '../../resource/definition/resource.js';
import { bodyDepthMax } from '../write/strict-json.js';
import {
  type ApiResponse,
  type Components,
  component,
  type MediaType,
  type Operation,
  type Paths,
} from './document.js';
import { type ErrorSet, errorsOf, headersOf, type SuccessKind, successHeaders } from './responses.js';
import { examplesOf, isWritable, type OpenApiOptions } from './values.js';

type Own = Pick<Operation, 'operationId' | 'summary' | 'description' | 'requestBody'>;

interface Described extends Own {
  readonly tag: string;
  /** Absent: the operation needs no scope; null: nor a token. */
  readonly scope?: string | null;
  readonly parameters: readonly string[];
  readonly responses: Readonly<Record<string, string>>;
  readonly errors: ErrorSet;
}

/** Its samples are made when the whole document is known. */
export function operation(options: OpenApiOptions, described: Described): Operation {
  const { tag, scope, parameters, responses, errors, description, ...own } = described;
  const scopes = scope ? [scope] : [];
  return {
    ...own,
    description: scope ? `${description} Needs the scope \`${scope}\`.` : description,
    ...(scope && { 'x-required-scope': scope }),
    security: scope === null ? [] : [{ bearer: scopes }, ...(options.basicAuth ? [{ basic: scopes }] : [])],
    tags: [tag],
    parameters: [...parameters, 'requestId'].map((name) => component('parameters', name)),
    responses: {
      ...Object.fromEntries(Object.entries(responses).map(([status, name]) => [status, component('responses', name)])),
      ...errorsOf(errors),
    },
    'x-codeSamples': [],
  };
}

/** All that the document has of a resource. */
export function resourcePart(resource: Resource, options: OpenApiOptions) {
  const { name, description } = resource;
  return {
    tag: { name: spaced(name), description },
    paths: pathsOf(resource, options),
    schemas: schemasOf(resource, options),
    parameters: parametersOf(resource, options),
    responses: responsesOf(resource, options),
  };
}

function pathsOf(resource: Resource, options: OpenApiOptions): Paths {
  const { name, record, detail, version, sync, filters } = resource;
  const common = { tag: spaced(name), scope: `read:${name}` };
  const list = operation(options, {
    ...common,
    operationId: `list${capital(name)}`,
    summary: `List ${name}`,
    description: `${resource.description} In the order of ${orderProse(resource)}, ascending unless \`order=desc\`. Filters combine with AND.`,
    parameters: [
      ...['perPage', 'page', 'cursor', 'total', 'order', `${name}.fields`],
      ...Object.keys(filters).map((filter) => `${name}.${filter}`),
    ],
    responses: { 200: `${name}.page` },
    errors: 'list',
  });
  const get = operation(options, {
    ...common,
    operationId: `get${capital(record)}`,
    summary: `Read one ${record}`,
    description: 'An identifier that is unknown, malformed or of another workspace gives the same 404.',
    parameters: version === undefined ? ['id'] : ['id', 'ifNoneMatch', 'ifMatch'],
    responses: { 200: record, ...(version !== undefined && { 304: 'NotModified', 412: 'PreconditionFailed' }) },
    errors: 'detail',
  });
  const { post, patch } = isWritable(resource, options) ? writesOf(resource, options) : {};
  return {
    [`/${name}`]: { get: list, ...(post && resource.write?.creates && { post }) },
    ...(detail && { [`/${name}/{id}`]: { get, ...(patch && { patch }) } }),
    ...(sync && syncPaths(resource, options)),
  };
}

function writesOf(resource: Resource, options: OpenApiOptions) {
  const { name, record } = resource;
  const common = { tag: spaced(name), scope: `write:${name}` };
  const { createExample, patchExample } = examplesOf(resource);
  const { bodyBytesMax } = options;
  const bytes = bodyBytesMax % 1024 === 0 ? `${bodyBytesMax / 1024} KiB` : `${bodyBytesMax} bytes`;
  const body = (end: string, example: unknown, ...types: readonly string[]) => ({
    required: true,
    description: `UTF-8, at most ${bytes} and ${bodyDepthMax} levels deep, without duplicate members.`,
    content: Object.fromEntries(
      types.map((type) => [type, { schema: component('schemas', `${capital(record)}${end}`), example }]),
    ),
  });
  const post = operation(options, {
    ...common,
    operationId: `create${capital(record)}`,
    summary: `Create one ${record}`,
    description: 'Repeat it with the same `Idempotency-Key` after a lost or a 5xx answer: it takes effect once.',
    parameters: ['dryRun', 'idempotencyKey'],
    requestBody: body('Create', createExample, 'application/json'),
    responses: { 201: `${record}.created` },
    errors: 'create',
  });
  const patch = operation(options, {
    ...common,
    operationId: `update${capital(record)}`,
    summary: `Change one ${record}`,
    description:
      'Changes the record only if the version in `If-Match` is still the current version. Repeat it with the same `Idempotency-Key` and `If-Match` after a lost or a 5xx answer: it takes effect once. An empty object changes nothing.',
    parameters: ['id', 'dryRun', 'idempotencyKey', 'ifMatchRequired'],
    requestBody: body('Patch', patchExample, 'application/json', 'application/merge-patch+json'),
    responses: { 200: `${record}.updated` },
    errors: 'update',
  });
  return { post, patch };
}

function syncPaths(resource: Resource, options: OpenApiOptions): Paths {
  const { name, filters } = resource;
  const Name = capital(name);
  const [days] = filterRanges(filters);
  const describe = (described: Omit<Described, 'tag' | 'scope' | 'errors'>) => ({
    get: operation(options, { ...described, tag: 'Sync', scope: `read:${name}`, errors: 'sync' }),
  });
  const ofPeriod = days === undefined ? [] : [`${name}.${days.lower}`, `${name}.${days.upper}`, 'by'];
  const periodProse = days
    ? ` With \`${days.lower}\` and \`${days.upper}\` it counts and hashes the records of that period, with \`by=month\` month by month: a month whose hash differs from an earlier one has records that were added, changed, moved or deleted.`
    : '';
  return {
    [`/sync/${name}`]: describe({
      operationId: `sync${Name}`,
      summary: `Sync ${name}`,
      description:
        'Without `since` it returns every record. With the `since` of an earlier pass it returns the records that were inserted or changed after it, however late that was committed. A record can come twice; keep its last appearance. The last page has the `since` of the next pass. The digest finds deleted records.',
      parameters: ['perPage', 'since', 'syncCursor', 'prefix', `${name}.fields`],
      responses: { 200: `${name}.sync` },
    }),
    [`/sync/${name}/digest`]: describe({
      operationId: `digest${Name}`,
      summary: `Sync digest of ${name}`,
      description: `Groups all records by the first hexadecimal digits of the SHA-256 of their identifiers, and gives the count and the hash of the ids and versions of each group. A group that differs from the client's copy has records that were changed or deleted, or that the copy lacks.${periodProse}`,
      parameters: ['depth', ...ofPeriod, 'since'],
      responses: { 200: 'Digest' },
    }),
    [`/sync/${name}/ids`]: describe({
      operationId: `ids${Name}`,
      summary: `Sync identifiers of ${name}`,
      description: 'The identifiers whose SHA-256 begins with one of the prefixes, at most 100,000, in no order.',
      parameters: ['prefix', 'since'],
      responses: { 200: 'Ids' },
    }),
  };
}

function schemasOf(resource: Resource, options: OpenApiOptions): Components['schemas'] {
  const { name, record, sync } = resource;
  const Record = capital(record);
  const pageOf = (what: string, itemSchema: string, pagination: string) => ({
    type: 'object',
    description: `A page of ${what}. Members in this order; the last bytes, \`"complete":true}}\`, show that the page is whole.`,
    required: ['data', 'pagination'],
    properties: {
      data: { type: 'array', items: component('schemas', itemSchema) },
      pagination: component('schemas', pagination),
    },
  });
  return {
    [Record]: recordSchema(resource),
    [`${Record}Page`]: pageOf(name, Record, 'Pagination'),
    ...(isWritable(resource, options) && {
      ...(resource.write?.creates && { [`${Record}Create`]: createSchema(resource) }),
      [`${Record}Patch`]: patchSchema(resource),
      [`${Record}Written`]: writeScopeSchema(resource),
    }),
    ...(sync && {
      [`${Record}Versioned`]: versionedSchema(resource),
      [`${Record}Sync`]: pageOf(`a pass over ${name}`, `${Record}Versioned`, 'SyncPagination'),
    }),
  };
}

function parametersOf(resource: Resource, options: OpenApiOptions): Components['parameters'] {
  const { name, fields, filters } = resource;
  const ofFilters = Object.entries(filters).map(([filter, each]) => [
    `${name}.${filter}`,
    filterParameter(filter, each, resource, options),
  ]);
  return {
    [`${name}.fields`]: {
      name: 'fields',
      in: 'query',
      description:
        'Only these fields of each record, separated by commas or in repeated parameters. `id` always comes, and in a pass `syncVersion`. Fields that were not asked for are missing from the response, although the schema of a record requires them: a client that validates responses must not use `fields`, or must make all fields optional.',
      style: 'form',
      explode: false,
      schema: { type: 'array', minItems: 1, items: { type: 'string', enum: Object.keys(fields) } },
    },
    ...Object.fromEntries(ofFilters),
  };
}

function responsesOf(resource: Resource, options: OpenApiOptions): Components['responses'] {
  const { name, record, sync, detail, version } = resource;
  const schema = (end = '') => component('schemas', `${capital(record)}${end}`);
  const response = (description: string, kind: SuccessKind, media: MediaType): ApiResponse => ({
    description,
    headers: headersOf(successHeaders[kind]),
    content: { 'application/json': media },
  });
  const example = examplesOf(resource).recordExample;
  const page = (what: string, kind: 'page' | 'sync', end: string, data: object, pagination: object): ApiResponse =>
    response(`A page of ${what}. It is whole if it ends in \`"complete":true}}\`.`, kind, {
      schema: schema(end),
      example: { data: [data], pagination: { ...pagination, complete: true } },
    });
  const ofWrite = { schema: { anyOf: [schema(), schema('Written')] }, example };
  const shown = `only the members that the write scope may see if the token lacks \`read:${name}\`.`;
  const perPage = Math.min(options.perPageDefault, options.perPageMax);
  const single = { perPage, count: 1, hasMore: false, nextCursor: null, next: null };
  const listed = { page: 1, ...single, endCursor: 'y4Qq7wZ0m1JpXw3n' };
  const versioned = { ...example, syncVersion: '9f2c4e6a81b3d507' };
  return {
    [`${name}.page`]: page(name, 'page', 'Page', example, listed),
    ...(detail && {
      [record]: response(`The ${record}.`, version === undefined ? 'detail' : 'versioned', {
        schema: schema(),
        example,
      }),
    }),
    ...(isWritable(resource, options) && {
      ...(resource.write?.creates && {
        [`${record}.created`]: response(`The new ${record}; ${shown}`, 'created', ofWrite),
      }),
      [`${record}.updated`]: response(`The ${record} after the change; ${shown}`, 'updated', ofWrite),
    }),
    ...(sync && {
      [`${name}.sync`]: page(`a pass over ${name}`, 'sync', 'Sync', versioned, { ...single, since: 'b3JkZXJfMTIzNA' }),
    }),
  };
}

function filterParameter(name: string, filter: Filter, resource: Resource, { timeZone }: OpenApiOptions) {
  const takesDay = filter.type === 'timestamp' && filterKind(filter.kind).takesDays;
  const day = takesDay ? ` A day in time zone ${timeZone}, daylight saving included.` : '';
  const { values } = leaves(resource).find(({ field }) => field.column === filter.column)?.field ?? {};
  const listed = values === undefined ? '' : ` One of: ${values.join(', ')}.`;
  const { schema } = filterForm(filter);
  const description = `${filter.description}${day}${listed}`;
  return { name, in: 'query' as const, description, ...(schema.type === 'array' && { explode: false }), schema };
}

/** "`createdAt`, `id`". */
function orderProse(resource: Resource): string {
  const paths = new Map(leaves(resource).map(({ field, path }) => [field.column, path.join('.')]));
  return resource.order.map(({ column }) => `\`${paths.get(column) ?? column}\``).join(', ');
}

/** "serviceVisits" and "service-visits" → "ServiceVisits". */
function capital(name: string): string {
  return name.replace(/(?:^|-)(.)/g, (_, letter: string) => letter.toUpperCase());
}

/** "serviceVisits" and "service-visits" as "Service visits". */
function spaced(name: string): string {
  const [first = '', ...others] = name.split(/-|(?=[A-Z])/).map((word) => word.toLowerCase());
  return [capital(first), ...others].join(' ');
}
