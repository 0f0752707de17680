import type { Resource } from '../definition/resource.js';
import { type ApiResponse, type Components, component, type OpenApiDocument } from './document.js';
import { errorParts } from './errors.js';
import { expand, fill, mapValues, readData, readText, type Sets, type Values } from './template.js';
import { commonValues, filterValues, type OpenApiOptions, resourceValues } from './values.js';

/** The header components, sets of their names, and the header of each component that has another name. */
type HeaderData = { readonly headers: object; readonly sets: Sets; readonly names: Readonly<Record<string, string>> };

/**
 * The OpenAPI 3.1 description of the API: the templates in config/openapi, filled from the resource definitions, the
 * settings and the table of problems. The gateway makes it once, at start-up.
 */
export function openapi(resources: readonly Resource[], options: OpenApiOptions): OpenApiDocument {
  const values = commonValues(resources, options);
  const { headers, names, sets } = fill(readData('headers.json'), values) as HeaderData;
  // A later component replaces an earlier component of the same header.
  const reference = (name: string) => [names[name] ?? name, component('headers', name)];
  const headersOf = (set: readonly string[]): ApiResponse['headers'] =>
    Object.fromEntries(expand(['every', ...set], sets).map(reference));
  const errors = errorParts(headersOf);
  const common: Values = {
    ...values,
    introduction: fill(readText('introduction.md').trim(), values),
    headers,
    ...prefixed('headers', mapValues(sets, headersOf)),
    ...prefixed('errors', errors.references),
  };
  const parts = resources.map((resource) =>
    resourcePart(resource, { ...common, ...resourceValues(resource, options) }),
  );
  const merged = (kind: keyof ResourcePart): object => Object.assign({}, ...parts.map((part) => part[kind]));
  const document = fill(readData('document.json'), {
    ...common,
    tags: parts.map(({ tag }) => tag),
    paths: merged('paths'),
    schemas: merged('schemas'),
    parameters: merged('parameters'),
    responses: { ...merged('responses'), ...errors.components },
  });
  return withoutUnused(document as OpenApiDocument);
}

type ResourcePart = Readonly<Record<'tag' | 'paths' | 'schemas' | 'parameters' | 'responses', object>>;

function resourcePart({ name, filters }: Resource, values: Values): ResourcePart {
  const { filter: filterTemplate, ...template } = readData('resource.json') as Record<string, object>;
  const parameters = Object.entries(filters).map(([filter, each]) => [
    `${name}.${filter}`,
    fill(filterTemplate, { filter, ...filterValues(each, String(values.timeZone)) }),
  ]);
  return { ...(fill(template, values) as ResourcePart), parameters: Object.fromEntries(parameters) };
}

function prefixed(prefix: string, values: Values): Values {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [`${prefix}.${name}`, value]));
}

/** The document without unused components, such as those of writes on a gateway without a primary. */
function withoutUnused(document: OpenApiDocument): OpenApiDocument {
  const used = new Set(JSON.stringify(document).match(/(?<="\$ref":"#\/components\/)[^"]+/g));
  const components = Object.entries(document.components).map(([kind, members]) => {
    const kept = Object.entries(members).filter(([name]) => kind === 'securitySchemes' || used.has(`${kind}/${name}`));
    return [kind, Object.fromEntries(kept)];
  });
  const smaller = { ...document, components: Object.fromEntries(components) as Components };
  return JSON.stringify(smaller) === JSON.stringify(document) ? document : withoutUnused(smaller);
}
