import { createSchema, patchSchema, recordSchema, writeScopeSchema } from '../definition/record-schema.js';
import type { JsonSchema, Resource } from '../definition/resource.js';
import type { OpenApiDocument } from './document.js';
import { errorComponents, errorReferences } from './errors.js';
import { headers } from './headers.js';
import { type PageLimits, parameterComponents } from './parameters.js';
import { paths } from './paths.js';
import { problemSchema } from './problem.js';
import { pageSchema, paginationSchema, successComponents } from './responses.js';

/** What the document depends on beside the definitions. */
interface OpenApiOptions extends PageLimits {
  /** Version of the API: 1.x.y. */
  readonly version: string;
  /** Origin that clients use, such as https://api.example.com; empty when unknown. */
  readonly publicUrl: string;
}

/** The OpenAPI 3.1 description of the API, from the resource definitions and the table of problems. Made once, at start-up. */
export function openapi(resources: readonly Resource[], options: OpenApiOptions): OpenApiDocument {
  return {
    openapi: '3.1.1',
    info: {
      title: 'Workspace data API',
      version: options.version,
      description: introduction,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: `${options.publicUrl.replace(/\/+$/, '')}/api/v1`, description: 'Version 1 of the API.' }],
    tags: [
      ...resources.map(({ name, description }) => ({ name, description })),
      { name: 'openapi.json', description: 'The description of this API.' },
    ],
    paths: paths(resources),
    components: {
      securitySchemes: { bearer },
      schemas: schemas(resources, options.perPageMax),
      parameters: parameterComponents(resources, options),
      headers,
      responses: { ...successComponents(resources, options.perPageDefault), ...errorComponents() },
    },
    'x-other-responses': errorReferences('other'),
  };
}

const introduction = [
  "Read access to a workspace's customers, installations, work orders and audit log, and guarded writes of installations.",
  'Every body is JSON. Identifiers are opaque strings, timestamps RFC 3339 in UTC with milliseconds, dates YYYY-MM-DD. A value that is absent is null, never left out.',
  'HEAD works wherever GET does; OPTIONS tells the methods of a path. Paths are case-sensitive and have no trailing slash. Unknown, repeated or empty query parameters are refused.',
  'Lists are walked with the addresses in `pagination.next` or in the `Link` header; a walk returns every record that existed throughout exactly once, also while others are being added.',
  'Errors are problem details (RFC 9457) with a stable `code`. Checks come in this order: path and method, token, rate limit, scope, Accept, media type and size, headers and query, If-Match present, body, idempotency, existence, precondition.',
].join('\n\n');

const bearer: JsonSchema = {
  type: 'http',
  scheme: 'bearer',
  bearerFormat: 'wdg_ and 49 letters and digits',
  description:
    'An access token of a workspace, in the Authorization header and nowhere else. Each operation names the scope that the token must have (`x-required-scope`). A token may make 60 requests a minute unless the RateLimit-Policy header says otherwise.',
};

function schemas(resources: readonly Resource[], perPageMax: number): Record<string, JsonSchema> {
  const all: Record<string, JsonSchema> = { problem: problemSchema(), pagination: paginationSchema(perPageMax) };
  for (const resource of resources) {
    all[resource.record] = recordSchema(resource);
    all[`${resource.name}.page`] = pageSchema(resource, perPageMax);
    if (!resource.writeView) continue;
    all[`${resource.record}.create`] = createSchema(resource);
    all[`${resource.record}.patch`] = patchSchema(resource);
    all[`${resource.record}.written`] = writeScopeSchema(resource);
  }
  return all;
}
