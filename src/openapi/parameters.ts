import { dateSchema } from '../definition/field-schema.js';
import { type Filter, type JsonSchema, leaves, type Resource } from '../definition/resource.js';
import { component, type Parameter, type Reference } from './document.js';
import { requestIdPattern } from './headers.js';

/** Sizes of a page, from the settings. */
export interface PageLimits {
  readonly perPageDefault: number;
  readonly perPageMax: number;
}

const digits = 'Decimal digits only.';
const entityTag = '(W/)?"[!#-~]*"';

/** Every parameter as a component: those all lists have, those of writes and conditions, and each resource's filters. */
export function parameterComponents(resources: readonly Resource[], limits: PageLimits): Record<string, Parameter> {
  const filters = resources.flatMap((resource) =>
    Object.entries(resource.filters).map(([name, filter]) => [
      filterName(resource, name),
      filterParameter(name, filter),
    ]),
  );
  return { ...pageParameters(limits), ...otherParameters, ...Object.fromEntries(filters) };
}

/** The query parameters of a list. */
export function listParameters(resource: Resource): Reference[] {
  const names = [
    'perPage',
    'page',
    'cursor',
    'total',
    ...Object.keys(resource.filters).map((name) => filterName(resource, name)),
  ];
  return parameters(...names, 'requestId');
}

/** References to parameters by component name. */
export function parameters(...names: readonly string[]): Reference[] {
  return names.map((name) => component('parameters', name));
}

/** "createdAt, id": the members a resource is ordered by. */
export function orderProse(resource: Resource): string {
  const paths = new Map(leaves(resource).map(({ field, path }) => [field.column, path.join('.')]));
  return resource.order.map(({ column }) => `\`${paths.get(column) ?? column}\``).join(', ');
}

function pageParameters({ perPageDefault, perPageMax }: PageLimits): Record<string, Parameter> {
  return {
    perPage: {
      name: 'perPage',
      in: 'query',
      description: `Records per page. ${digits}`,
      schema: { type: 'integer', minimum: 1, maximum: perPageMax, default: Math.min(perPageDefault, perPageMax) },
    },
    page: {
      name: 'page',
      in: 'query',
      description: `Number of the page, from 1; past the end, \`data\` is empty. Not together with \`cursor\`. ${digits}`,
      schema: { type: 'integer', minimum: 1, maximum: 999_999_999, default: 1 },
    },
    cursor: {
      name: 'cursor',
      in: 'query',
      description:
        'Continue where the page that gave this `nextCursor` ended. It belongs to its workspace, resource and filters; any other use is refused.',
      schema: { type: 'string', pattern: '^[A-Za-z0-9_-]+$' },
    },
    total: {
      name: 'total',
      in: 'query',
      description: 'Whether to count all records of the list, exactly; nothing is counted otherwise.',
      schema: { type: 'boolean', default: false },
    },
  };
}

const otherParameters: Readonly<Record<string, Parameter>> = {
  id: {
    name: 'id',
    in: 'path',
    required: true,
    description: 'Identifier of the record.',
    schema: { type: 'string', minLength: 1 },
    example: '5f0d7c1e-8a43-4c52-9b1d-3f6e2a9c7d10',
  },
  requestId: {
    name: 'X-Request-Id',
    in: 'header',
    description: 'Your name for the request, kept in the response and in logs.',
    schema: { type: 'string', pattern: requestIdPattern },
  },
  ifNoneMatch: {
    name: 'If-None-Match',
    in: 'header',
    description: 'Validators of the record as you know it, or `*`; if one holds, the answer is 304 without a body.',
    schema: { type: 'string', minLength: 1 },
    example: '"v3"',
  },
  ifMatch: {
    name: 'If-Match',
    in: 'header',
    description: 'Validators, of which one must hold, or `*`; weak ones never do.',
    schema: { type: 'string', minLength: 1 },
    example: '"v3"',
  },
  ifMatchRequired: {
    name: 'If-Match',
    in: 'header',
    required: true,
    description:
      'The `ETag` of the version that the change was made to, or a list of which one must hold. Weak validators never hold; `*` is refused.',
    schema: { type: 'string', pattern: `^${entityTag}( *, *${entityTag})*$` },
    example: '"v3"',
  },
  idempotencyKey: {
    name: 'Idempotency-Key',
    in: 'header',
    required: true,
    description:
      'Names this write among those of the token for at least 24 hours: 1 to 255 visible ASCII characters, bare or as a quoted string. Sending the same request again repeats its outcome and does nothing twice.',
    schema: { type: 'string', pattern: '^([!#-~][!-~]{0,254}|"[!-~]{1,255}")$' },
    example: '7c4a8d09-ca37-4e2b-9c0d-5f1b2a3c4d5e',
  },
};

function filterName(resource: Resource, name: string): string {
  return `${resource.name}.${name}`;
}

function filterParameter(name: string, { kind, description }: Filter): Parameter {
  const zoned =
    kind === 'dayFrom' || kind === 'dayTo' ? " A day in the gateway's time zone, daylight saving included." : '';
  const schema: JsonSchema = kind === 'equals' ? { type: 'string', minLength: 1 } : dateSchema;
  return { name, in: 'query', description: `${description}${zoned}`, schema };
}
